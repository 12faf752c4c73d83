// Iterations of messages that are cut short, and the exact way back through them.
#include "truncated.h"

#include "lanes.h"

namespace {

using Graph = truncated_graph;
using Run = truncated_run;

constexpr double LEAST = 1e-300;  // sums are raised to this: their logarithm stays finite

// Numbers of one example, or of eight side by side.
template <class T>
struct Numbers {
    static constexpr int64_t LANES = sizeof(T) / sizeof(double);
    double *first;

    T operator[](int64_t k) const;
    void set(int64_t k, T x) const;
    void add(int64_t k, T x) const { set(k, (*this)[k] + x); }
    Numbers from(int64_t k) const { return {first + k * LANES}; }
};
template <>
INLINE double Numbers<double>::operator[](int64_t k) const {
    return first[k];
}
template <>
INLINE void Numbers<double>::set(int64_t k, double x) const {
    first[k] = x;
}
template <>
INLINE Row Numbers<Row>::operator[](int64_t k) const {
    return load(first + k * EIGHT);
}
template <>
INLINE void Numbers<Row>::set(int64_t k, Row x) const {
    store(first + k * EIGHT, x);
}

// Where numbers of iteration t lie.
template <class T>
struct Iteration {
    Numbers<T> score, table, near, sums, slope;

    Iteration(const Run &run, int64_t t, double *slopes) {
        const int64_t set = (t < run.sets ? t : run.sets - 1) * run.size * Numbers<T>::LANES;
        const int64_t tape = t * run.width * Numbers<T>::LANES;
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

    Visit(const Graph &g, int64_t v) {
        factor = g.factor[v];
        first = g.scope_start[factor], last = g.scope_start[factor + 1];
        table = g.table_start[factor], size = g.table_start[factor + 1] - table;
        states = g.place[last] - g.place[first];
        at = g.tape[v];
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
template <class T>
struct Messages {
    const Graph &g;
    Numbers<T> belief, message;

    template <bool LINEAR>
    INLINE void read(const Visit &visit, Numbers<T> u) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            T top = everywhere<T>(-INF);
            for (int64_t k = 0; k < cards; ++k) {
                const T b = belief[home + k], m = message[sent + k];
                u.set(k, LINEAR ? b / m : b - m);
                top = larger(top, u[k]);
            }
            for (int64_t k = 0; !LINEAR && k < cards; ++k) u.set(k, exponential(u[k] - top));
            u = u.from(cards);
        }
    }

    // Every slot's state: the sum of the entries that agree times the other slots' u.
    INLINE void add_up(const Visit &visit, Numbers<T> table, Numbers<T> u, Numbers<T> sums) const {
        for (int64_t k = 0; k < visit.states; ++k) sums.set(k, everywhere<T>(0.0));
        if (visit.pair()) {
            const int64_t rows =
                visit.cards ? visit.cards : g.place[visit.first + 1] - g.place[visit.first];
            for (int64_t a = 0, e = 0; a < rows; ++a) {
                T mass = everywhere<T>(0.0);
                const T own = u[a];
                for (int64_t b = rows; b < visit.states; ++b, ++e) {
                    mass = add_product(mass, table[e], u[b]);
                    sums.set(b, add_product(sums[b], table[e], own));
                }
                sums.set(a, mass);
            }
            return;
        }
        const int64_t order = visit.last - visit.first;
        const int64_t *state = g.state + g.pair[visit.factor];
        for (int64_t e = 0; e < visit.size; ++e, state += order)
            for (int64_t s = 0; s < order; ++s)
                sums.add(state[s], others(table[e], u, state, s, order));
    }

    // An entry times all slots' u but one's.
    T others(T chance, Numbers<T> u, const int64_t *state, int64_t s, int64_t order) const {
        for (int64_t r = 0; r < order; ++r)
            if (r != s) chance = chance * u[state[r]];
        return chance;
    }

    // The largest of every new message is 1, or its logarithm 0.
    template <bool LINEAR>
    INLINE void send(const Visit &visit, Numbers<T> sums) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            T top = everywhere<T>(LEAST);
            for (int64_t k = 0; k < cards; ++k) top = larger(top, sums[k]);
            for (int64_t k = 0; k < cards; ++k) {
                const T b = belief[home + k], m = message[sent + k];
                if (LINEAR) {
                    const T once = sums[k] / (top * m);
                    belief.set(home + k, b * once);
                    message.set(sent + k, m * once);
                    continue;
                }
                const T fresh = logarithm(larger(sums[k] / top, everywhere<T>(LEAST)));
                belief.set(home + k, b + (fresh - m) * g.share[s]);
                message.set(sent + k, fresh);
                sums.set(k, larger(sums[k], everywhere<T>(LEAST)));
            }
            sums = sums.from(cards);
        }
    }

    // Sums become their slopes; what is left to the old messages stays there.
    INLINE void unsend(const Visit &visit, Numbers<T> sums) const {
        for (int64_t s = visit.first; s < visit.last; ++s) {
            const int64_t home = g.node_start[g.scope[s]], sent = g.place[s];
            const int64_t cards = visit.cards ? visit.cards : g.place[s + 1] - sent;
            T common = everywhere<T>(0.0);
            for (int64_t k = 0; k < cards; ++k)
                common = common + message[sent + k] + belief[home + k] * g.share[s];
            common = common / static_cast<double>(cards);  // only rounding, which would grow
            for (int64_t k = 0; k < cards; ++k) {
                const T moved = belief[home + k] * g.share[s];
                sums.set(k, (message[sent + k] + moved - common) / sums[k]);
                message.set(sent + k, everywhere<T>(0.0) - moved);
            }
            sums = sums.from(cards);
        }
    }

    // Slopes by sums become those by the table, and u becomes the slopes by n; `ahead` is scratch.
    INLINE void spread(const Visit &visit, const Iteration<T> &now, Numbers<T> ahead) const {
        const Numbers<T> u = now.near.from(visit.at), back = now.sums.from(visit.at);
        const Numbers<T> table = now.table.from(visit.table), slope = now.slope.from(visit.table);
        const double scale = 1.0 / g.counts[visit.factor];
        for (int64_t k = 0; k < visit.states; ++k) ahead.set(k, everywhere<T>(0.0));
        if (visit.pair()) {
            const int64_t rows =
                visit.cards ? visit.cards : g.place[visit.first + 1] - g.place[visit.first];
            for (int64_t a = 0, e = 0; a < rows; ++a) {
                T mass = everywhere<T>(0.0);
                const T own = u[a], pull = back[a];
                for (int64_t b = rows; b < visit.states; ++b, ++e) {
                    const T entry = table[e], other = back[b];
                    slope.add(e, entry * (u[b] * pull + own * other) * scale);
                    mass = mass + entry * other;
                    ahead.add(b, entry * pull);
                }
                ahead.set(a, mass);
            }
            for (int64_t k = 0; k < visit.states; ++k) u.set(k, u[k] * ahead[k]);
            return;
        }
        const int64_t order = visit.last - visit.first;
        const int64_t *state = g.state + g.pair[visit.factor];
        for (int64_t e = 0; e < visit.size; ++e, state += order)
            for (int64_t s = 0; s < order; ++s) {
                const T chance = others(table[e] * back[state[s]], u, state, s, order);
                slope.add(e, chance * scale);
                for (int64_t r = 0; r < order; ++r)
                    if (r != s) ahead.add(state[r], chance);
            }
        for (int64_t k = 0; k < visit.states; ++k) u.set(k, ahead[k]);
    }

    // Beliefs take the slopes by n, messages their negative.
    INLINE void unread(const Visit &visit, Numbers<T> near) const {
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
    INLINE void answer(const Visit &visit, const Iteration<T> &now) const {
        const Numbers<T> sums = now.sums.from(visit.at);
        add_up(visit, now.table.from(visit.table), now.near.from(visit.at), sums);
        send<LINEAR>(visit, sums);
    }
    INLINE void unanswer(const Visit &visit, const Iteration<T> &now, Numbers<T> ahead) const {
        unsend(visit, now.sums.from(visit.at));
        spread(visit, now, ahead);
    }

    // Another iteration's scores of nodes take the place of the last one's.
    template <bool LINEAR>
    void exchange(Numbers<T> fresh, Numbers<T> old) const {
        for (int64_t i = 0; i < g.nodes; ++i) {
            T top = everywhere<T>(-INF);  // a constant that beliefs do not see
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k)
                top = larger(top, fresh[k] - old[k]);
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
                const T change = (fresh[k] - old[k] - top) / g.whole[i];
                belief.set(k, LINEAR ? belief[k] * exponential(change) : belief[k] + change);
            }
        }
    }
    void unexchange(Numbers<T> fresh, Numbers<T> old) const {
        for (int64_t i = 0; i < g.nodes; ++i)
            for (int64_t k = g.node_start[i]; k < g.node_start[i + 1]; ++k) {
                fresh.add(k, belief[k] / g.whole[i]);
                old.set(k, old[k] - belief[k] / g.whole[i]);
            }
    }

    template <bool LINEAR>
    void forward(const Run &run) const {
        for (int64_t t = 0; t < run.length; ++t) {
            const Iteration<T> now(run, t, nullptr);
            if (t > 0 && t < run.sets)
                exchange<LINEAR>(now.score, Iteration<T>(run, t - 1, nullptr).score);
            for (int64_t i = 0; i < g.groups; ++i) {
                for (int64_t v = g.group[i]; v < g.group[i + 1]; ++v) {
                    const Visit visit(g, v);
                    visit.binary() ? read<LINEAR>(visit.as_binary(), now.near.from(visit.at))
                                   : read<LINEAR>(visit, now.near.from(visit.at));
                }
                for (int64_t v = g.group[i]; v < g.group[i + 1]; ++v) {
                    const Visit visit(g, v);
                    visit.binary() ? answer<LINEAR>(visit.as_binary(), now)
                                   : answer<LINEAR>(visit, now);
                }
            }
        }
    }

    void backward(const Run &run, double *slope, Numbers<T> ahead) const {
        for (int64_t t = run.length - 1; t >= 0; --t) {
            const Iteration<T> now(run, t, slope);
            for (int64_t i = g.groups - 1; i >= 0; --i) {
                for (int64_t v = g.group[i + 1] - 1; v >= g.group[i]; --v) {
                    const Visit visit(g, v);
                    visit.binary() ? unanswer(visit.as_binary(), now, ahead)
                                   : unanswer(visit, now, ahead);
                }
                for (int64_t v = g.group[i + 1] - 1; v >= g.group[i]; --v) {
                    const Visit visit(g, v);
                    visit.binary() ? unread(visit.as_binary(), now.near.from(visit.at))
                                   : unread(visit, now.near.from(visit.at));
                }
            }
            if (t > 0 && t < run.sets) unexchange(now.slope, Iteration<T>(run, t - 1, slope).slope);
        }
    }
};

template <class T>
void send_all(const Graph &g, const Run &run, bool linear, double *belief, double *message) {
    const Messages<T> all{g, {belief}, {message}};
    linear ? all.template forward<true>(run) : all.template forward<false>(run);
}

}  // namespace

void send_truncated(const truncated_graph *graph, const truncated_run *run, bool linear,
                    double *belief, double *message) {
    (run->lanes == 1 ? send_all<double> : send_all<Row>)(*graph, *run, linear, belief, message);
}

status unsend_truncated(const truncated_graph *graph, const truncated_run *run, double *belief,
                        double *message, double *slope) {
    int64_t most = 0;
    for (int64_t v = 0; v < graph->visits; ++v) {
        const int64_t states = graph->tape[v + 1] - graph->tape[v];
        most = states > most ? states : most;
    }
    Arena arena;
    double *ahead = arena.array<double>(most * run->lanes);
    if (arena.failed) return NO_MEMORY;
    if (run->lanes == 1)
        Messages<double>{*graph, {belief}, {message}}.backward(*run, slope, {ahead});
    else
        Messages<Row>{*graph, {belief}, {message}}.backward(*run, slope, {ahead});
    return OK;
}
