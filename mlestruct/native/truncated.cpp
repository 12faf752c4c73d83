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

// One visit to a factor: its slots, where their states begin, and its numbers on the tape.
struct Visit {
    int64_t factor, first, last, table, size, states, at, cards = 0;  // 0: of any number

    Visit(const Graph &g, const Order &order, int64_t v) {
        factor = order.factor[v];
        first = g.scope_start[factor], last = g.scope_start[factor + 1];
        table = g.table_start[factor], size = g.table_start[factor + 1] - table;
        states = g.place[last] - g.place[first];
        at = order.tape[v];
    }
    bool pair() const { return last - first == 2; }
    bool binary() const { return pair() && size == 4 && states == 4; }
    // The same, with sizes that compilers know: loops over them become straight code.
    Visit as_binary() const {
        Visit known = *this;
        known.last = first + 2, known.size = 4, known.states = 4, known.cards = 2;
        return known;
    }
};

// The state is (log-belief b of every variable, message m of every slot). A visit does
//
//     n_s = b - m_s,    m_s' = log sum exp(score / c + sum over r != s of n_r),
//     b' = b + share (m_s' - m_s).
//
// Beliefs do not see a constant added to a message, so none is subtracted on the way back. The tape
// keeps u = exp n and the sums before the logarithm: the way back needs neither exp nor log. Where
// all numbers count 1 and scores fit, the state is kept exponentiated, and the way there needs none
// too.
struct Messages {
    const Graph &g;
    const Order &order;
    int64_t *state;
    Numbers belief, message;

    // A slot's share of the counting numbers around its node.
    double share(const Visit &visit, int64_t s) const {
        return g.counts[visit.factor] / g.whole[g.scope[s]];
    }

    template <bool LINEAR>
    INLINE void read(const Visit &visit, Numbers u) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            Row top = row_of(-INF);
            for (int64_t k = 0; k < cards; ++k) {
                const Row b = belief[home + k], m = message[sent + k];
                u.set(k, LINEAR ? b / m : b - m);
                top = larger(top, u[k]);
            }
            for (int64_t k = 0; !LINEAR && k < cards; ++k) u.set(k, exponential(u[k] - top));
            u = u.from(cards);
        }
    }

    // Every slot's state: the sum of the entries that agree times the other slots' u.
    INLINE void add_up(const Visit &visit, Numbers table, Numbers u, Numbers sums) const {
        for (int64_t k = 0; k < visit.states; ++k) sums.set(k, row_of(0.0));
        if (visit.pair()) {
            const int64_t rows =
                visit.cards ? visit.cards : g.place[visit.first + 1] - g.place[visit.first];
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

    // The largest of every new message is 1, or its logarithm 0.
    template <bool LINEAR>
    INLINE void send(const Visit &visit, Numbers sums) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            Row top = row_of(LEAST);
            for (int64_t k = 0; k < cards; ++k) top = larger(top, sums[k]);
            for (int64_t k = 0; k < cards; ++k) {
                const Row b = belief[home + k], m = message[sent + k];
                if (LINEAR) {
                    const Row once = sums[k] / (top * m);
                    belief.set(home + k, b * once);
                    message.set(sent + k, m * once);
                    continue;
                }
                const Row fresh = logarithm(larger(sums[k] / top, row_of(LEAST)));
                belief.set(home + k, b + (fresh - m) * share(visit, s));
                message.set(sent + k, fresh);
                sums.set(k, larger(sums[k], row_of(LEAST)));
            }
            sums = sums.from(cards);
        }
    }

    // Sums become their slopes; what is left to the old messages stays there.
    INLINE void unsend(const Visit &visit, Numbers sums) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            Row common = row_of(0.0);
            for (int64_t k = 0; k < cards; ++k)
                common = common + message[sent + k] + belief[home + k] * share(visit, s);
            common = common / static_cast<double>(cards);  // only rounding, which would grow
            for (int64_t k = 0; k < cards; ++k) {
                const Row moved = belief[home + k] * share(visit, s);
                sums.set(k, (message[sent + k] + moved - common) / sums[k]);
                message.set(sent + k, row_of(0.0) - moved);
            }
            sums = sums.from(cards);
        }
    }

    // Slopes by sums become those by the table, and u becomes the slopes by n; `ahead` is scratch.
    INLINE void spread(const Visit &visit, const Iteration &now, Numbers ahead) const {
        const Numbers u = now.near.from(visit.at), back = now.sums.from(visit.at);
        const Numbers table = now.table.from(visit.table), slope = now.slope.from(visit.table);
        const double scale = 1.0 / g.counts[visit.factor];
        for (int64_t k = 0; k < visit.states; ++k) ahead.set(k, row_of(0.0));
        if (visit.pair()) {
            const int64_t rows =
                visit.cards ? visit.cards : g.place[visit.first + 1] - g.place[visit.first];
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

    // Beliefs take the slopes by n, messages their negative.
    INLINE void unread(const Visit &visit, Numbers near) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            for (int64_t k = 0; k < cards; ++k) {
                belief.add(home + k, near[k]);
                message.set(sent + k, message[sent + k] - near[k]);
            }
            near = near.from(cards);
        }
    }

    template <bool LINEAR>
    INLINE void answer(const Visit &visit, const Iteration &now) const {
        const Numbers sums = now.sums.from(visit.at);
        add_up(visit, now.table.from(visit.table), now.near.from(visit.at), sums);
        send<LINEAR>(visit, sums);
    }
    INLINE void unanswer(const Visit &visit, const Iteration &now, Numbers ahead) const {
        unsend(visit, now.sums.from(visit.at));
        spread(visit, now, ahead);
    }

    // Another iteration's scores of nodes take the place of the last one's.
    template <bool LINEAR>
    void exchange(Numbers fresh, Numbers old) const {
        for (int64_t i = 0; i < g.nodes; ++i) {
            Row top = row_of(-INF);  // a constant that beliefs do not see
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k)
                top = larger(top, fresh[k] - old[k]);
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
                const Row change = (fresh[k] - old[k] - top) / g.whole[i];
                belief.set(k, LINEAR ? belief[k] * exponential(change) : belief[k] + change);
            }
        }
    }
    void unexchange(Numbers fresh, Numbers old) const {
        for (int64_t i = 0; i < g.nodes; ++i)
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
                fresh.add(k, belief[k] / g.whole[i]);
                old.set(k, old[k] - belief[k] / g.whole[i]);
            }
    }

    template <bool LINEAR>
    void forward(const Run &run) const {
        for (int64_t t = 0; t < run.length; ++t) {
            const Iteration now(run, t, nullptr);
            if (t > 0 && t < run.sets)
                exchange<LINEAR>(now.score, Iteration(run, t - 1, nullptr).score);
            for (int64_t i = 0; i < order.groups; ++i) {
                for (int64_t v = order.group[i]; v < order.group[i + 1]; ++v) {
                    const Visit visit(g, order, v);
                    visit.binary() ? read<LINEAR>(visit.as_binary(), now.near.from(visit.at))
                                   : read<LINEAR>(visit, now.near.from(visit.at));
                }
                for (int64_t v = order.group[i]; v < order.group[i + 1]; ++v) {
                    const Visit visit(g, order, v);
                    visit.binary() ? answer<LINEAR>(visit.as_binary(), now)
                                   : answer<LINEAR>(visit, now);
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
                    visit.binary() ? unanswer(visit.as_binary(), now, ahead)
                                   : unanswer(visit, now, ahead);
                }
                for (int64_t v = order.group[i + 1] - 1; v >= order.group[i]; --v) {
                    const Visit visit(g, order, v);
                    visit.binary() ? unread(visit.as_binary(), now.near.from(visit.at))
                                   : unread(visit, now.near.from(visit.at));
                }
            }
            if (t > 0 && t < run.sets) unexchange(now.slope, Iteration(run, t - 1, slope).slope);
        }
    }
};

}  // namespace

status send_truncated(const Graph *graph, const Order *order, const Run *run, bool linear,
                      double *belief, double *message) {
    Arena arena;
    const Messages all{
        *graph, *order, arena.array<int64_t>(Widest(*graph).order), {belief}, {message}};
    if (arena.failed) return NO_MEMORY;
    linear ? all.forward<true>(*run) : all.forward<false>(*run);
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
