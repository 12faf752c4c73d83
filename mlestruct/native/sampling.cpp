// Random outcomes: Gibbs sampling of labels, swaps of matchings, paths, and annealed pairings.
#include "sampling.h"

#include "lanes.h"
#include "random.h"

namespace {

// One variable's scores given its neighbours, and a state that is drawn by them.
struct Redraw {
    const gibbs_graph *graph;
    const double *score;
    double *local;  // padded to whole eights

    int64_t states_of(int64_t v) const { return graph->node_start[v + 1] - graph->node_start[v]; }

    void find_scores(int64_t v, const int64_t *states) const {
        const int64_t cards = states_of(v);
        const double *own = score + graph->node_start[v];
        for (int64_t x = 0; x < cards; ++x) local[x] = own[x];
        for (int64_t x = cards; x < whole_eights(cards); ++x) local[x] = -INF;
        for (int64_t k = graph->start[v]; k < graph->start[v + 1]; ++k) {
            const int64_t slot = graph->around[k], f = graph->owner[slot];
            const int64_t stride = graph->stride[slot];
            const double *table = score + graph->table_start[f];
            for (int64_t o = graph->scope_start[f]; o < graph->scope_start[f + 1]; ++o)
                if (o != slot) table += graph->stride[o] * states[graph->scope[o]];
            for (int64_t x = 0; x < cards; ++x) local[x] += table[x * stride];
        }
    }

    // A state with probability proportional to exp(local).
    int64_t pick(int64_t cards, const Random &random) const {
        Row tops = row_of(-INF), masses = row_of(0.0);
        for (int64_t x = 0; x < cards; x += EIGHT) tops = larger(tops, load(local + x));
        const double top = largest(tops);
        for (int64_t x = 0; x < cards; x += EIGHT) {
            const Row chance = exponential(load(local + x) - top);
            store(local + x, chance);
            masses = masses + chance;
        }
        double left = random.number() * sum(masses);
        int64_t last = 0;
        for (int64_t x = 0; x < cards; ++x) {
            if (!(local[x] > 0.0)) continue;
            last = x;
            left -= local[x];
            if (left < 0.0) break;
        }
        return last;
    }
};

// Metropolis's rule.
bool accepted(double gain, const Random &random) {
    return gain >= 0.0 || random.number() < exponential(gain);
}

int64_t moves_before(const matching_chain *chain, int64_t row) {
    return chain->thin + (row == 0 ? chain->burn : 0);
}

// Perfect matchings between two temperatures.
struct Pairing {
    int64_t n, count;
    const double *table;
    int64_t *pairs;

    double worth(int64_t u, int64_t v) const { return table[u * n + v]; }

    // Redraw how the ends of two pairs are paired, by its conditional probability; return the gain.
    double redraw(double heat, const Random &random) const {
        const int64_t i = static_cast<int64_t>(random.number() * static_cast<double>(count));
        int64_t j = static_cast<int64_t>(random.number() * static_cast<double>(count - 1));
        j += j >= i;
        int64_t *one = pairs + 2 * i, *other = pairs + 2 * j;
        const int64_t a = one[0], b = one[1], c = other[0], d = other[1];
        const double here = worth(a, b) + worth(c, d);
        const double first = worth(a, c) + worth(b, d), second = worth(a, d) + worth(b, c);
        const double top = larger(larger(here, first), second);
        const double stay = exponential(heat * (here - top));
        const double change = exponential(heat * (first - top));
        const double cross = exponential(heat * (second - top));
        const double left = random.number() * (stay + change + cross);
        if (left < stay) return 0.0;
        if (left < stay + change) {
            one[1] = c;
            other[0] = b;
            other[1] = d;
            return first - here;
        }
        one[1] = d;
        other[0] = b;
        other[1] = c;
        return second - here;
    }
};

}  // namespace

status gibbs_sweeps(const gibbs_graph *graph, const double *score, int64_t rows, int64_t *states,
                    int64_t sweeps, bool one, const int64_t *random) {
    Redraw redraw{graph, score, nullptr};
    int64_t most = 1;
    for (int64_t v = 0; v < graph->nodes; ++v)
        most = redraw.states_of(v) > most ? redraw.states_of(v) : most;
    Arena arena;
    redraw.local = arena.array<double>(whole_eights(most));
    if (arena.failed) return NO_MEMORY;
    const Random numbers(random);
    for (int64_t row = 0; row < rows; ++row, states += graph->nodes) {
        for (int64_t v = 0; one && row > 0 && v < graph->nodes; ++v)
            states[v] = states[v - graph->nodes];
        for (int64_t sweep = 0; sweep < sweeps; ++sweep)
            for (int64_t k = 0; k < graph->nodes; ++k) {
                const int64_t v = graph->order[k];
                redraw.find_scores(v, states);
                states[v] = redraw.pick(redraw.states_of(v), numbers);
            }
    }
    return OK;
}

status swap_columns(const matching_chain *chain, int64_t rows, int64_t columns,
                    int64_t *column_of) {
    Arena arena;
    int64_t *row_of_column = arena.array<int64_t>(columns, -1);
    if (arena.failed) return NO_MEMORY;
    const Random random(chain->random);
    const double *score = chain->score;
    for (int64_t i = 0; i < rows; ++i) row_of_column[column_of[i]] = i;
    for (int64_t n = 0; n < chain->count; ++n) {
        for (int64_t k = moves_before(chain, n); k > 0; --k) {
            const int64_t i = random.below(rows), j = random.below(columns);
            const int64_t here = column_of[i], other = row_of_column[j];
            if (here == j) continue;
            double gain = score[i * columns + j] - score[i * columns + here];
            if (other >= 0) gain += score[other * columns + here] - score[other * columns + j];
            if (!accepted(gain, random)) continue;
            column_of[i] = j;
            row_of_column[j] = i;
            row_of_column[here] = other;
            if (other >= 0) column_of[other] = here;
        }
        double *out = chain->out + n * chain->size;
        for (int64_t i = 0; i < rows; ++i) out[i * columns + column_of[i]] = 1.0;
    }
    return OK;
}

void exchange_ends(const matching_chain *chain, int64_t nodes, const int64_t *place, int64_t edges,
                   int64_t *pairs) {
    const Random random(chain->random);
    const double *score = chain->score;
    for (int64_t n = 0; n < chain->count; ++n) {
        for (int64_t k = edges > 1 ? moves_before(chain, n) : 0; k > 0; --k) {
            const int64_t e = random.below(edges), f = random.below(edges), turn = random.below(2);
            if (e == f) continue;
            int64_t *one = pairs + 2 * e, *other = pairs + 2 * f;
            const int64_t a = one[0], b = one[1], c = other[turn], d = other[1 - turn];
            const int64_t first = place[a * nodes + c], second = place[b * nodes + d];
            if (first < 0 || second < 0) continue;
            double gain = score[first] + score[second];
            gain -= score[place[a * nodes + b]] + score[place[c * nodes + d]];
            if (!accepted(gain, random)) continue;
            one[0] = a;
            one[1] = c;
            other[0] = b;
            other[1] = d;
        }
        double *out = chain->out + n * chain->size;
        for (int64_t e = 0; e < edges; ++e)
            out[place[pairs[2 * e] * nodes + pairs[2 * e + 1]]] = 1.0;
    }
}

status slide_edges(const matching_chain *chain, int64_t nodes, const int64_t *ends,
                   const bool *keep, const double *begin) {
    Arena arena;
    int64_t *at = arena.array<int64_t>(nodes, -1);  // the edge that matches a node
    if (arena.failed) return NO_MEMORY;
    for (int64_t e = 0; e < chain->size; ++e)
        if (begin[e] > 0.5) at[ends[2 * e]] = at[ends[2 * e + 1]] = e;
    const Random random(chain->random);
    const double *score = chain->score;
    for (int64_t n = 0; n < chain->count; ++n) {
        for (int64_t k = moves_before(chain, n); k > 0; --k) {
            const int64_t e = random.below(chain->size), u = ends[2 * e], v = ends[2 * e + 1];
            const int64_t gone = at[u] >= 0 ? at[u] : at[v];
            if ((at[u] >= 0 && at[v] >= 0 && at[u] != at[v]) || (gone >= 0 && keep[gone])) continue;
            double gain = -score[e];
            if (gone != e) gain = score[e] - (gone >= 0 ? score[gone] : 0.0);
            if (!accepted(gain, random)) continue;
            if (gone >= 0) at[ends[2 * gone]] = at[ends[2 * gone + 1]] = -1;
            if (gone != e) at[u] = at[v] = e;
        }
        double *out = chain->out + n * chain->size;
        for (int64_t e = 0; e < chain->size; ++e)
            if (at[ends[2 * e]] == e) out[e] = 1.0;
    }
    return OK;
}

int64_t draw_paths(const dag *graph, const int64_t *by_tail, const int64_t *leaving,
                   const double *score, const int64_t *random, int64_t count, double *out) {
    Arena arena;
    double *after = arena.array<double>(graph->nodes);
    if (arena.failed) return NO_MEMORY;
    sums_to_sink(graph, score, after);
    if (after[graph->source] == -INF) return 0;
    const Random numbers(random);
    for (int64_t n = 0; n < count; ++n, out += graph->arcs)
        for (int64_t node = graph->source; node != graph->sink;) {
            double left = numbers.number();
            int64_t last = -1;
            for (int64_t k = leaving[node]; k < leaving[node + 1]; ++k) {
                const int64_t arc = by_tail[k];
                const double p =
                    exponential(score[arc] + after[graph->ends[2 * arc + 1]] - after[node]);
                if (!(p > 0.0)) continue;
                last = arc;
                left -= p;
                if (left < 0.0) break;
            }
            if (last < 0) return 0;
            out[last] = 1.0;
            node = graph->ends[2 * last + 1];
        }
    return 1;
}

double anneal_pairs(int64_t n, const double *table, int64_t steps, const double *ladder,
                    int64_t count, int64_t *pairs, const int64_t *random) {
    const Pairing pairing{n, count, table, pairs};
    const Random numbers(random);
    double found = 0.0, total = 0.0;
    for (int64_t i = 0; i < count; ++i) total += pairing.worth(pairs[2 * i], pairs[2 * i + 1]);
    for (int64_t k = 1; k < steps; ++k) {
        found += (ladder[k] - ladder[k - 1]) * total;
        for (int64_t i = 0; count > 1 && i < count; ++i)
            total += pairing.redraw(ladder[k], numbers);
    }
    return found;
}
