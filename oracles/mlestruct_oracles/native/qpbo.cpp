// Binary pairwise models as minimum cuts (roof duality: Boros & Hammer 2002, Kolmogorov & Rother
// 2007): penalties for forbidden entries, signs, whole numbers, the flow graph, and the answer.
//
// With s = q - 1/2 in [-1/2, 1/2] for q = P(state 1), and every edge's table at its best for the
// q's, twice the relaxed score is a constant plus
//
//     sum_i field_i s_i - sum_e |coupling_e| |s_i - sign(coupling_e) s_j|,
//     coupling = p00 + p11 - p01 - p10,
//     field_i = 2(u1 - u0) + sum_e (sum of row 1 - sum of row 0 of e's table, seen from i).
//
// Where flipping some nodes makes all couplings of a component attract, that is a cut of one flow
// node per node. Elsewhere s and -s become two flow nodes, and s = 0 where they are on one side.
//
// Differences of scores are scaled by a power of two and rounded to whole numbers, of which all
// sums are exact. What rounding may cost is added to the bound; whole scores lose nothing.
#include "qpbo.h"

#include <initializer_list>

#include "include/max_flow.h"

namespace {

constexpr double ROUNDING = 1.8e-15;  // of an edge's scores: if it repels by less, it does not
constexpr double TINIEST = 4.9406564584124654e-324;
constexpr double LARGEST = 1e280;  // larger scores could overflow once added up and penalised
enum Refusal : int64_t { SOLVED, NODE_SHUT, EDGE_SHUT, EDGE_REPELS, ALL_SHUT, NO_SCORE };

// x = m 2^e with 1/2 <= m < 1: return e, and 0 for 0 and numbers so small that they have no m.
int64_t exponent(double x) {
    const int64_t field = bits_of(x) >> 52 & 2047;
    return field ? field - 1022 : 0;
}

// 2^k for k of normal numbers.
double power_of_two(int64_t k) { return from_bits((k + 1023) << 52); }

// The next number above one that is finite.
double next_above(double x) { return x == 0 ? TINIEST : from_bits(bits_of(x) + (x > 0 ? 1 : -1)); }

// Well above the bound, on the grid of its digits.
double well_above(double bound) { return bound > 0 ? 2 * bound : 1.0; }

// a + b as rounded, and what rounding took from it (Knuth).
struct Sum {
    double total, slip;
};
INLINE Sum two_sum(double a, double b) {
    const double total = a + b, part = total - a;
    return {total, (a - (total - part)) + (b - part)};
}

// Largest minus least finite score, -1 if there is none.
double range(const double *score, int64_t count) {
    double low = INF, high = -INF;
    for (int64_t k = 0; k < count; ++k)
        if (score[k] > -INF) {
            low = smaller(low, score[k]);
            high = larger(high, score[k]);
        }
    return low <= high ? high - low : -1.0;
}

// Let forbidden entries lie that far below the least finite one.
void fill(double *score, int64_t count, double cost) {
    double low = INF;
    for (int64_t k = 0; k < count; ++k)
        if (score[k] > -INF) low = smaller(low, score[k]);
    for (int64_t k = 0; k < count; ++k)
        if (score[k] == -INF) score[k] = low - cost;
}

// Forbid a state at the edge's node (0 or 1) where the edge forbids it with every other. Return
// false if the whole table is forbidden.
bool lift(double *table, int end, double *node) {
    const int step = end == 0 ? 2 : 1, other = 3 - step;
    for (int a = 0; a < 2; ++a) {
        double *own = table + a * step, *twin = table + (1 - a) * step;
        if (own[0] > -INF || own[other] > -INF) continue;
        node[a] = -INF;
        own[0] = twin[0];
        own[other] = twin[other];
        if (own[0] == -INF && own[other] == -INF) return false;
    }
    return true;
}

// The edges of every node, and what flipping nodes makes of components.
struct Components {
    const pairwise &p;
    int64_t *start, *edge, *queue;

    Components(const pairwise &given, Arena &arena) : p(given) {
        start = arena.array<int64_t>(p.nodes + 2, 0);
        edge = arena.array<int64_t>(2 * p.edges);
        queue = arena.array<int64_t>(p.nodes);
        if (arena.failed) return;
        for (int64_t k = 0; k < 2 * p.edges; ++k) ++start[p.ends[k] + 2];
        for (int64_t i = 2; i < p.nodes + 2; ++i) start[i] += start[i - 1];
        for (int64_t k = 0; k < 2 * p.edges; ++k) edge[start[p.ends[k] + 1]++] = k / 2;
    }

    // Flip nodes so that couplings attract, in components under couplings other than 0 between
    // nodes where `among` (if given) is 0; never a component's first node. A component is balanced
    // if none is left that repels.
    void gauge(const double *coupling, const int8_t *among, int8_t *flip, bool *balanced) const {
        bool repels = false;
        for (int64_t e = 0; e < p.edges; ++e) repels |= coupling[e] < 0;
        for (int64_t i = 0; i < p.nodes; ++i) {
            flip[i] = !repels;
            balanced[i] = true;
        }
        for (int64_t i = 0; i < p.nodes; ++i) {
            if (flip[i]) continue;
            int64_t count = 1;
            bool good = true;
            flip[i] = 1;
            queue[0] = i;
            for (int64_t k = 0; k < count; ++k) {
                const int64_t u = queue[k];
                for (int64_t a = start[u]; a < start[u + 1]; ++a) {
                    const int64_t e = edge[a], v = p.ends[2 * e] + p.ends[2 * e + 1] - u;
                    if (coupling[e] == 0 || (among && (among[u] || among[v]))) continue;
                    const int8_t wanted = coupling[e] > 0 ? flip[u] : -flip[u];
                    good = good && (!flip[v] || flip[v] == wanted);
                    if (flip[v]) continue;
                    flip[v] = wanted;
                    queue[count++] = v;
                }
            }
            for (int64_t k = 0; k < count; ++k) balanced[queue[k]] = good;
        }
    }
};

// Differences of scores in whole numbers, and what rounding took from them.
struct Rounding {
    double scale, lost = 0.0, slips = 0.0;

    double difference(double a, double b) {
        const Sum exact = two_sum(a, -b);
        const double scaled = scale * exact.total, whole = static_cast<double>(static_cast<int64_t>(
                                                       scaled + __builtin_copysign(0.5, scaled)));
        lost += scaled == 0 && exact.total != 0 ? TINIEST : __builtin_fabs(scaled - whole);
        slips += __builtin_fabs(exact.slip);
        return whole;
    }

    // All of it, in scores; the factor covers the rounding of these sums themselves.
    double cost() const {
        const double all = (lost / scale + slips) * (1 + 1e-9);
        return lost > 0 ? larger(all, TINIEST) : all;
    }
};

// A sum with a second word for what rounding took, and that word's size.
struct Total {
    double total = 0.0, lost = 0.0, slips = 0.0;

    void add(double term) {
        const Sum sum = two_sum(total, term);
        const double slip = sum.slip == sum.slip ? sum.slip : 0.0;  // -inf makes it NaN
        total = sum.total;
        lost += slip;
        slips += __builtin_fabs(slip);
    }
};

// One model at a time: its finite scores, its signed form, and its cut.
struct Model {
    const pairwise &p;
    bool attractive;
    double *unary, *pair;  // scores, finite ones in the place of minus infinity
    double *reach, *field, *coupling;
    int8_t *flip, *side, *other_flip;
    bool *balanced, *other_balanced;
    int32_t *first;  // a node's first flow node
    int64_t *place;
    double cost;
    Components components;
    Cut cut{};

    Model(const pairwise &given, bool cuts, Arena &arena, int64_t *where)
        : p(given), attractive(cuts), place(where), components(given, arena) {
        unary = arena.array<double>(size());
        pair = unary + 2 * p.nodes;
        for (double **each : {&reach, &field}) *each = arena.array<double>(p.nodes);
        coupling = arena.array<double>(p.edges);
        for (int8_t **each : {&flip, &side, &other_flip}) *each = arena.array<int8_t>(p.nodes);
        for (bool **each : {&balanced, &other_balanced}) *each = arena.array<bool>(p.nodes);
        first = arena.array<int32_t>(p.nodes);
        if (!cut.reserve(arena, 2 * p.nodes, 2 * p.edges)) arena.failed = true;
    }

    int64_t size() const { return 2 * p.nodes + 4 * p.edges; }

    Refusal refuse(Refusal why, int64_t at) const {
        place[1] = at;
        return why;
    }

    // Make the flow graph of a model.
    Refusal prepare(int64_t k) {
        place[0] = k;
        double least = 0.0;
        for (int64_t c = 0; c < size(); ++c) {
            const double score = unary[c] = p.score[k * size() + c];
            if (!(score <= LARGEST && (score >= -LARGEST || score == -INF)))
                return refuse(NO_SCORE, c);
            least = smaller(score, least);
        }
        Refusal found = least == -INF ? soften() : SOLVED;
        if (found == SOLVED) found = sign();
        if (found != SOLVED) return found;
        components.gauge(coupling, nullptr, flip, balanced);
        cut.nodes = cut.edges = 0;
        for (int64_t i = 0; i < p.nodes; ++i) {
            first[i] = cut.add_node(balanced[i] ? field[i] * flip[i] : field[i]);
            if (!balanced[i]) cut.add_node(-field[i]);
        }
        for (int64_t e = 0; e < p.edges; ++e) {
            const int64_t i = p.ends[2 * e], j = p.ends[2 * e + 1];
            const double most = __builtin_fabs(coupling[e]);
            if (most == 0) continue;
            const int32_t crossed = !balanced[i] && coupling[e] < 0;
            cut.add_edge(first[i], first[j] + crossed, most);
            if (!balanced[i]) cut.add_edge(first[i] + 1, first[j] + 1 - crossed, most);
        }
        return SOLVED;
    }

    // A vertex that uses a forbidden entry puts at least 1/2 on it. So an entry costs, below the
    // least finite one of its table: on an edge more than twice the range of all the model's finite
    // scores; at a node more than twice what its own and its edges' tables can give (penalties
    // included), which no neighbour outweighs. The second is local, so clamping nodes costs no
    // precision.
    Refusal soften() {
        for (int64_t e = 0; e < p.edges; ++e)
            for (int end = 0; end < 2; ++end)
                if (!lift(pair + 4 * e, end, unary + 2 * p.ends[2 * e + end]))
                    return refuse(EDGE_SHUT, e);
        double total = 0.0;
        for (int64_t i = 0; i < p.nodes; ++i) {
            reach[i] = range(unary + 2 * i, 2);
            if (reach[i] < 0) return refuse(NODE_SHUT, i);
            total += reach[i];
        }
        for (int64_t e = 0; e < p.edges; ++e) total += range(pair + 4 * e, 4);
        const double price = well_above(2 * total);
        for (int64_t e = 0; e < p.edges; ++e) {
            fill(pair + 4 * e, 4, price);
            const double spread = range(pair + 4 * e, 4);
            reach[p.ends[2 * e]] += spread;
            reach[p.ends[2 * e + 1]] += spread;
        }
        for (int64_t i = 0; i < p.nodes; ++i) fill(unary + 2 * i, 2, well_above(2 * reach[i]));
        return SOLVED;
    }

    // Fields and couplings in whole numbers whose sums stay below 2^52, so that twice a capacity,
    // an arc's most, is exact, too.
    Refusal sign() {
        double most = 0.0;
        for (int64_t i = 0; i < p.nodes; ++i)
            reach[i] = 2 * __builtin_fabs(unary[2 * i + 1] - unary[2 * i]);
        for (int64_t e = 0; e < p.edges; ++e) {
            const double *t = pair + 4 * e, down0 = t[2] - t[0], down1 = t[3] - t[1];
            reach[p.ends[2 * e]] += __builtin_fabs(down0) + __builtin_fabs(down1);
            reach[p.ends[2 * e + 1]] +=
                2 * __builtin_fabs(t[1] - t[0]) + __builtin_fabs(down1 - down0);
        }
        for (int64_t i = 0; i < p.nodes; ++i) most = larger(most, reach[i]);
        const int64_t shift = 52 - exponent(most * (1 + 1e-9));
        Rounding whole{power_of_two(shift < 1000 ? shift : 1000)};
        for (int64_t i = 0; i < p.nodes; ++i)
            field[i] = 2 * whole.difference(unary[2 * i + 1], unary[2 * i]);
        for (int64_t e = 0; e < p.edges; ++e) {
            const double *t = pair + 4 * e;
            const double down0 = whole.difference(t[2], t[0]), right = whole.difference(t[1], t[0]);
            double down1 = whole.difference(t[3], t[1]);
            const double found = (t[3] - t[1]) - (t[2] - t[0]);
            if (attractive && found < 0) {
                double size = 0.0;
                for (int k = 0; k < 4; ++k) size += __builtin_fabs(t[k]);
                if (found < -ROUNDING * size) return refuse(EDGE_REPELS, e);
                whole.lost += down0 - down1;
                down1 = down0;
            }
            coupling[e] = down1 - down0;
            field[p.ends[2 * e]] += down0 + down1;
            field[p.ends[2 * e + 1]] += 2 * right + coupling[e];
        }
        cost = whole.cost();
        return SOLVED;
    }

    // Read 2 s off the cut: 1 or -1, or 0 where both flow nodes of a node are on the same side. The
    // score is constant along a half component without frustration: take its end.
    template <class Sink>
    void read(Sink on_sinks_side) {
        bool halves = false;
        for (int64_t i = 0; i < p.nodes; ++i) {
            const bool sink = on_sinks_side(first[i]);
            side[i] = sink ? 1 : -1;
            if (balanced[i])
                side[i] = static_cast<int8_t>(side[i] * flip[i]);
            else if (sink == on_sinks_side(first[i] + 1))
                side[i] = 0, halves = true;
        }
        if (halves) components.gauge(coupling, side, other_flip, other_balanced);
        for (int64_t i = 0; halves && i < p.nodes; ++i)
            if (side[i] == 0 && other_balanced[i]) side[i] = static_cast<int8_t>(-other_flip[i]);
    }

    // Write the tables of the sides, and a bound on the best score: products of the ends' tables
    // where an end is integral, else 1/2 on one of the diagonals.
    Refusal complete(int64_t k, double *node, double *upper) const {
        const double *own = p.score + k * size();
        Total total;
        for (int64_t i = 0; i < p.nodes; ++i) {
            node[2 * i + 1] = 0.5 + 0.5 * side[i];
            node[2 * i] = 1.0 - node[2 * i + 1];
        }
        for (int64_t e = 0; e < p.edges; ++e) {
            const int64_t i = p.ends[2 * e], j = p.ends[2 * e + 1];
            for (int c = 0; c < 4; ++c) {
                const bool same = c == 0 || c == 3, halves = side[i] == 0 && side[j] == 0;
                node[2 * p.nodes + 4 * e + c] = halves ? (same == (coupling[e] >= 0) ? 0.5 : 0.0)
                                                       : node[2 * i + c / 2] * node[2 * j + c % 2];
            }
        }
        for (int64_t c = 0; c < size(); ++c)
            if (node[c] > 0.0) total.add(node[c] * own[c]);
        const double score = total.total + total.lost;
        const double terms = static_cast<double>(size() + 2);
        const double doubt = cost + total.slips * 1.2e-16 * terms;
        *upper = doubt > 0 ? next_above(score + doubt) : score;
        return score > -INF ? SOLVED : refuse(ALL_SHUT, 0);
    }
};

}  // namespace

int64_t qpbo_solve(const pairwise *p, bool attractive, const bool *sink, double *vertex,
                   double *upper, int64_t *place) {
    Arena arena;
    Model model(*p, attractive, arena, place);
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < p->models; ++k) {
        Refusal found = model.prepare(k);
        if (found != SOLVED) return found;
        if (!sink) model.cut.solve();
        model.read([&](int64_t i) { return sink ? sink[i] : model.cut.on_sinks_side(i); });
        found = model.complete(k, vertex + k * model.size(), upper + k);
        if (found != SOLVED) return found;
    }
    return SOLVED;
}

int64_t qpbo_network(const pairwise *p, bool attractive, int64_t *ends, double *capacity,
                     double *pull, int64_t *place) {
    Arena arena;
    Model model(*p, attractive, arena, place);
    if (arena.failed) return NO_MEMORY;
    const Refusal found = model.prepare(0);
    if (found != SOLVED) return found;
    const Cut &cut = model.cut;
    place[0] = cut.nodes;
    place[1] = cut.edges;
    for (int64_t i = 0; i < cut.nodes; ++i) pull[i] = -cut.excess[i];
    for (int64_t k = 0; k < 2 * cut.edges; ++k) ends[k] = cut.ends[k];
    std::memcpy(capacity, cut.capacity, cut.edges * sizeof(double));
    return SOLVED;
}
