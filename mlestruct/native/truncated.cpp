// Iterations of messages that are cut short, and the exact way back through them.
#include "truncated.h"

#include "factors.h"

namespace {

using Graph = message_graph;
using Order = truncated_order;
using Run = truncated_run;

constexpr double LEAST = 1e-300;  // sums are raised to this: their logarithm stays finite

// Numbers of eight examples side by side.
struct Numbers {
    double *first;

    INLINE Row operator[](int64_t k) const { return load(first + k * EIGHT); }
    INLINE void set(int64_t k, Row x) const { store(first + k * EIGHT, x); }
    INLINE void add(int64_t k, Row x) const { set(k, (*this)[k] + x); }
    Numbers from(int64_t k) const { return {first + k * EIGHT}; }
};

// Where numbers of iteration t lie.
struct Iteration {
    Numbers score, table, near, sums, slope;

    Iteration(const Run &run, int64_t t, double *slopes) {
        const int64_t set = (t < run.sets ? t : run.sets - 1) * run.size * EIGHT;
        const int64_t tape = t * run.width * EIGHT;
        score = {const_cast<double *>(run.score) + set};
        table = {const_cast<double *>(run.table) + set};
        near = {run.near + tape};
        sums = {run.sums + tape};
        slope = {slopes ? slopes + set : nullptr};
    }
};

// One visit to a factor: where its tables and its numbers on the tape are.
struct Visit {
    int64_t factor, first, last, table, size, states, at;

    Visit(const Graph &g, const Order &order, int64_t v) {
        factor = order.factor[v];
        first = g.scope_start[factor], last = g.scope_start[factor + 1];
        table = g.table_start[factor], size = g.table_start[factor + 1] - table;
        states = g.place[last] - g.place[first];
        at = order.tape[v];
    }
    bool is_pair() const { return last - first == 2; }
};

// The state is (log-belief b of every variable, message m of every slot). A visit does
//
//     n_s = b - m_s,    m_s' = log sum exp(score / c + sum over r != s of n_r),
//     b' = b + share (m_s' - m_s).
//
// Beliefs do not see a constant added to a message, so none is subtracted on the way back. The tape
// keeps u = exp n and the sums before the logarithm: the way back needs neither exp nor log.
struct Messages {
    const Graph &g;
    const Order &order;
    int64_t *state;
    Numbers belief, message;

    // Call act(belief, message, its part of `numbers`, states, share) for every slot of a visit,
    // share being the slot's of the counting numbers around its node.
    template <class Act>
    INLINE void each_slot(const Visit &visit, Numbers numbers, Act act) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t node = g.scope[s], cards = g.place[s + 1] - g.place[s];
            act(belief.from(g.node_start[node]), message.from(g.place[s]), numbers, cards,
                g.counts[visit.factor] / g.whole[node]);
            numbers = numbers.from(cards);
        }
    }

    void read(const Visit &visit, Numbers near) const {
        each_slot(visit, near, [](Numbers b, Numbers m, Numbers u, int64_t cards, double) {
            Row top = row_of(-INF);
            for (int64_t k = 0; k < cards; ++k) {
                u.set(k, b[k] - m[k]);
                top = larger(top, u[k]);
            }
            for (int64_t k = 0; k < cards; ++k) u.set(k, exponential(u[k] - top));
        });
    }

    // Beliefs take the slopes by n, messages their negative.
    void unread(const Visit &visit, Numbers near) const {
        each_slot(visit, near, [](Numbers b, Numbers m, Numbers slope, int64_t cards, double) {
            for (int64_t k = 0; k < cards; ++k) {
                b.add(k, slope[k]);
                m.set(k, m[k] - slope[k]);
            }
        });
    }

    // The largest logarithm of every new message is 0.
    void send(const Visit &visit, Numbers sums) const {
        each_slot(visit, sums, [](Numbers b, Numbers m, Numbers sum, int64_t cards, double share) {
            Row top = row_of(LEAST);
            for (int64_t k = 0; k < cards; ++k) top = larger(top, sum[k]);
            for (int64_t k = 0; k < cards; ++k) {
                const Row fresh = logarithm(larger(sum[k] / top, row_of(LEAST)));
                b.add(k, (fresh - m[k]) * share);
                m.set(k, fresh);
                sum.set(k, larger(sum[k], row_of(LEAST)));
            }
        });
    }

    // Sums become their slopes; what is left to the old messages stays there.
    void unsend(const Visit &visit, Numbers sums) const {
        each_slot(visit, sums, [](Numbers b, Numbers m, Numbers sum, int64_t cards, double share) {
            Row common = row_of(0.0);
            for (int64_t k = 0; k < cards; ++k) common = common + m[k] + b[k] * share;
            common = common / static_cast<double>(cards);  // only rounding, which would grow
            for (int64_t k = 0; k < cards; ++k) {
                const Row moved = b[k] * share;
                sum.set(k, (m[k] + moved - common) / sum[k]);
                m.set(k, row_of(0.0) - moved);
            }
        });
    }

    // Every slot's state: the sum of the entries that agree times the other slots' u.
    void add_up(const Visit &visit, Numbers table, Numbers u, Numbers sums) const {
        for (int64_t k = 0; k < visit.states; ++k) sums.set(k, row_of(0.0));
        if (visit.is_pair()) {
            const int64_t rows = g.place[visit.first + 1] - g.place[visit.first];
            for (int64_t a = 0, e = 0; a < rows; ++a) {
                Row mass = row_of(0.0);
                const Row own = u[a];
                for (int64_t b = rows; b < visit.states; ++b, ++e) {
                    mass = add_product(mass, table[e], u[b]);
                    sums.set(b, add_product(sums[b], table[e], own));
                }
                sums.set(a, mass);
            }
            return;
        }
        Factor here(g, visit.factor, state);
        for (int64_t e = 0; e < visit.size; ++e, here.next())
            for (int64_t s = here.first; s < here.last; ++s)
                sums.add(at(here, s), others(here, s, table[e], u));
    }

    // Where the present state of a slot is among its factor's, and an entry times all others' u.
    static int64_t at(const Factor &here, int64_t s) {
        return here.at(s) + here.state[s - here.first];
    }
    static Row others(const Factor &here, int64_t s, Row chance, Numbers u) {
        for (int64_t r = here.first; r < here.last; ++r)
            if (r != s) chance = chance * u[at(here, r)];
        return chance;
    }

    // Slopes by sums become those by the table, and u becomes the slopes by n; `ahead` is scratch.
    void spread(const Visit &visit, const Iteration &now, Numbers ahead) const {
        const Numbers u = now.near.from(visit.at), back = now.sums.from(visit.at);
        const Numbers table = now.table.from(visit.table), slope = now.slope.from(visit.table);
        const double scale = 1.0 / g.counts[visit.factor];
        for (int64_t k = 0; k < visit.states; ++k) ahead.set(k, row_of(0.0));
        if (visit.is_pair()) {
            const int64_t rows = g.place[visit.first + 1] - g.place[visit.first];
            for (int64_t a = 0, e = 0; a < rows; ++a) {
                Row mass = row_of(0.0);
                const Row own = u[a], pull = back[a];
                for (int64_t b = rows; b < visit.states; ++b, ++e) {
                    const Row entry = table[e], other = back[b];
                    slope.add(e, entry * (u[b] * pull + own * other) * scale);
                    mass = mass + entry * other;
                    ahead.add(b, entry * pull);
                }
                ahead.set(a, mass);
            }
            for (int64_t k = 0; k < visit.states; ++k) u.set(k, u[k] * ahead[k]);
            return;
        }
        Factor here(g, visit.factor, state);
        for (int64_t e = 0; e < visit.size; ++e, here.next())
            for (int64_t s = here.first; s < here.last; ++s) {
                const Row chance = others(here, s, table[e] * back[at(here, s)], u);
                slope.add(e, chance * scale);
                for (int64_t r = here.first; r < here.last; ++r)
                    if (r != s) ahead.add(at(here, r), chance);
            }
        for (int64_t k = 0; k < visit.states; ++k) u.set(k, ahead[k]);
    }

    // Another iteration's scores of nodes take the place of the last one's.
    void exchange(Numbers fresh, Numbers old) const {
        for (int64_t i = 0; i < g.nodes; ++i)
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k)
                belief.add(k, (fresh[k] - old[k]) / g.whole[i]);
    }
    void unexchange(Numbers fresh, Numbers old) const {
        for (int64_t i = 0; i < g.nodes; ++i)
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
                fresh.add(k, belief[k] / g.whole[i]);
                old.set(k, old[k] - belief[k] / g.whole[i]);
            }
    }

    void forward(const Run &run) const {
        for (int64_t t = 0; t < run.length; ++t) {
            const Iteration now(run, t, nullptr);
            if (t > 0 && t < run.sets) exchange(now.score, Iteration(run, t - 1, nullptr).score);
            for (int64_t i = 0; i < order.groups; ++i) {
                for (int64_t v = order.group[i]; v < order.group[i + 1]; ++v) {
                    const Visit visit(g, order, v);
                    read(visit, now.near.from(visit.at));
                }
                for (int64_t v = order.group[i]; v < order.group[i + 1]; ++v) {
                    const Visit visit(g, order, v);
                    const Numbers sums = now.sums.from(visit.at);
                    add_up(visit, now.table.from(visit.table), now.near.from(visit.at), sums);
                    send(visit, sums);
                }
            }
        }
    }

    void backward(const Run &run, double *slope, Numbers ahead) const {
        for (int64_t t = run.length - 1; t >= 0; --t) {
            const Iteration now(run, t, slope);
            for (int64_t i = order.groups - 1; i >= 0; --i) {
                for (int64_t v = order.group[i + 1] - 1; v >= order.group[i]; --v) {
                    const Visit visit(g, order, v);
                    unsend(visit, now.sums.from(visit.at));
                    spread(visit, now, ahead);
                }
                for (int64_t v = order.group[i + 1] - 1; v >= order.group[i]; --v) {
                    const Visit visit(g, order, v);
                    unread(visit, now.near.from(visit.at));
                }
            }
            if (t > 0 && t < run.sets) unexchange(now.slope, Iteration(run, t - 1, slope).slope);
        }
    }
};

}  // namespace

status send_truncated(const Graph *graph, const Order *order, const Run *run, double *belief,
                      double *message) {
    Arena arena;
    const Messages all{
        *graph, *order, arena.array<int64_t>(Widest(*graph).order), {belief}, {message}};
    if (arena.failed) return NO_MEMORY;
    all.forward(*run);
    return OK;
}

status unsend_truncated(const Graph *graph, const Order *order, const Run *run, double *belief,
                        double *message, double *slope) {
    const Widest widest(*graph);
    Arena arena;
    double *ahead = arena.array<double>(widest.width * EIGHT);
    const Messages all{*graph, *order, arena.array<int64_t>(widest.order), {belief}, {message}};
    if (arena.failed) return NO_MEMORY;
    all.backward(*run, slope, {ahead});
    return OK;
}
