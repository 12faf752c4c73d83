// Iterations of messages or mean field that are cut short, and the exact way back through them.
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

// Where numbers of iteration t lie; the first of the tape is `begin`.
template <class T>
struct Iteration {
    Numbers<T> score, table, near, sums, slope;

    Iteration(const Run &run, int64_t t, int64_t begin, double *slopes) {
        const int64_t set = (t < run.sets ? t : run.sets - 1) * run.size * Numbers<T>::LANES;
        const int64_t tape = (t - begin) * run.width * Numbers<T>::LANES;
        score = {const_cast<double *>(run.score) + set};
        table = {run.table ? const_cast<double *>(run.table) + set : nullptr};
        near = {run.near + tape};
        sums = {run.sums ? run.sums + tape : nullptr};
        slope = {slopes ? slopes + set : nullptr};
    }
};

// One visit to a factor: its slots, where their states begin, and its numbers on the tape.
struct Visit {
    int64_t factor, first, last, table, size, states, at, cards = 0;  // 0: of any number

    Visit(int64_t f, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t i, int64_t k)
        : factor(f), first(a), last(b), table(c), size(d), states(e), at(i), cards(k) {}
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
    Visit as_binary() const { return {factor, first, first + 2, table, 4, 4, at, 2}; }
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
                sums.set(k, larger(sums[k], top * LEAST));
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
    void forward(const Run &run, int64_t begin, int64_t end) const {
        for (int64_t t = begin; t < end; ++t) {
            const Iteration<T> now(run, t, begin, nullptr);
            if (t > 0 && t < run.sets)
                exchange<LINEAR>(now.score, Iteration<T>(run, t - 1, begin, nullptr).score);
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

    void backward(const Run &run, int64_t begin, int64_t end, double *slope,
                  Numbers<T> ahead) const {
        for (int64_t t = end - 1; t >= begin; --t) {
            const Iteration<T> now(run, t, begin, slope);
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
            if (t > 0 && t < run.sets)
                unexchange(now.slope, Iteration<T>(run, t - 1, begin, slope).slope);
        }
    }
};

// Mean field: q_i proportional to exp(expected score of its states), node after node.
template <class T>
struct Field {
    const Graph &g;
    Numbers<T> q;

    // The product of q over an entry's other nodes' states.
    T others(const int64_t *node, int64_t s, int64_t order) const {
        T chance = everywhere<T>(1.0);
        for (int64_t r = 0; r < order; ++r)
            if (r != s) chance = chance * q[node[r]];
        return chance;
    }

    void update(int64_t i, Numbers<T> score) const {
        const int64_t first = g.node_start[i], last = g.node_start[i + 1];
        for (int64_t k = first; k < last; ++k) q.set(k, score[k]);
        for (int64_t p = g.start[i]; p < g.start[i + 1]; ++p) {
            const int64_t f = g.owner[g.slot[p]], s = g.slot[p] - g.scope_start[f];
            const int64_t order = g.scope_start[f + 1] - g.scope_start[f];
            const int64_t *node = g.node + g.pair[f];
            for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k, node += order)
                q.add(node[s], score[k] * others(node, s, order));
        }
        T top = everywhere<T>(-INF), mass = everywhere<T>(0.0);
        for (int64_t k = first; k < last; ++k) top = larger(top, q[k]);
        for (int64_t k = first; k < last; ++k) {
            q.set(k, exponential(q[k] - top));
            mass = mass + q[k];
        }
        for (int64_t k = first; k < last; ++k) q.set(k, q[k] / mass);
    }

    // `log_q` holds slopes by log q; in between, those of node i are by its expected scores.
    void revert(int64_t i, const Iteration<T> &now, Numbers<T> log_q) const {
        const int64_t first = g.node_start[i], last = g.node_start[i + 1];
        T held = everywhere<T>(0.0);
        for (int64_t k = first; k < last; ++k) held = held + log_q[k];
        for (int64_t k = first; k < last; ++k) {
            log_q.set(k, log_q[k] - q[k] * held);
            now.slope.add(k, log_q[k]);
            q.set(k, now.near[k]);
        }
        for (int64_t p = g.start[i]; p < g.start[i + 1]; ++p) {
            const int64_t f = g.owner[g.slot[p]], s = g.slot[p] - g.scope_start[f];
            const int64_t order = g.scope_start[f + 1] - g.scope_start[f];
            const int64_t *node = g.node + g.pair[f];
            for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k, node += order) {
                const T change = log_q[node[s]] * others(node, s, order);
                now.slope.add(k, change);
                for (int64_t r = 0; r < order; ++r)
                    if (r != s) log_q.add(node[r], change * now.score[k]);
            }
        }
        for (int64_t k = first; k < last; ++k) log_q.set(k, everywhere<T>(0.0));
    }

    void forward(const Run &run, int64_t begin, int64_t end) const {
        for (int64_t t = begin; t < end; ++t) {
            const Iteration<T> now(run, t, begin, nullptr);
            for (int64_t k = 0; k < run.width; ++k) now.near.set(k, q[k]);
            for (int64_t i = 0; i < g.nodes; ++i) update(i, now.score);
        }
    }

    void backward(const Run &run, int64_t begin, int64_t end, double *log_q, double *slope) const {
        for (int64_t t = end - 1; t >= begin; --t) {
            const Iteration<T> now(run, t, begin, slope);
            for (int64_t i = g.nodes - 1; i >= 0; --i) revert(i, now, {log_q});
        }
    }
};

constexpr double RANGE = 600.0;  // of log-beliefs that are safe as plain numbers

INLINE bool beyond(double x) { return x > RANGE; }
INLINE bool beyond(Row x) { return any(x > row_of(RANGE)); }

// The largest entry of a table, and what it has above the least.
template <class T>
INLINE T span(Numbers<T> x, int64_t first, int64_t last, T *top) {
    T low = *top = x[first];
    for (int64_t k = first + 1; k < last; ++k) {
        low = smaller(low, x[k]);
        *top = larger(*top, x[k]);
    }
    return *top - low;
}

template <class T>
bool begin(const Graph &g, Numbers<T> score, Numbers<T> table, Numbers<T> belief,
           Numbers<T> reach) {
    bool fits = true;
    T top;
    for (int64_t i = 0; i < g.nodes; ++i) {
        reach.set(i, span(score, g.node_start[i], g.node_start[i + 1], &top));
        for (int64_t k = g.node_start[i]; belief.first && k < g.node_start[i + 1]; ++k)
            belief.set(k, (score[k] - top) / g.whole[i]);
    }
    for (int64_t f = 0; f < g.factors; ++f) {
        const T wide = span(score, g.table_start[f], g.table_start[f + 1], &top);
        for (int64_t s = g.scope_start[f]; s < g.scope_start[f + 1]; ++s)
            reach.add(g.scope[s], wide);
        for (int64_t k = g.table_start[f]; k < g.table_start[f + 1]; ++k)
            table.set(k, exponential((score[k] - top) / g.counts[f]));
    }
    for (int64_t i = 0; i < g.nodes; ++i) fits &= !beyond(reach[i]);
    return fits;
}

template <class T>
void normalise(int64_t tables, const int64_t *start, Numbers<T> x) {
    for (int64_t i = 0; i < tables; ++i) {
        T top, mass = everywhere<T>(0.0);
        span(x, start[i], start[i + 1], &top);
        for (int64_t k = start[i]; k < start[i + 1]; ++k) {
            x.set(k, exponential(x[k] - top));
            mass = mass + x[k];
        }
        for (int64_t k = start[i]; k < start[i + 1]; ++k) x.set(k, x[k] / mass);
    }
}

template <class T>
void send_all(const Graph &g, const Run &run, bool linear, int64_t begin, int64_t end,
              double *belief, double *message) {
    const Messages<T> all{g, {belief}, {message}};
    linear ? all.template forward<true>(run, begin, end)
           : all.template forward<false>(run, begin, end);
}

}  // namespace

bool begin_truncated(const truncated_graph *graph, int64_t sets, int64_t lanes, const double *score,
                     double *table, double *belief, double *reach) {
    bool fits = true;
    for (int64_t k = 0; k < sets; ++k) {
        const int64_t at = k * graph->table_start[graph->factors] * lanes;
        double *given = const_cast<double *>(score) + at, *beliefs = k ? nullptr : belief;
        fits &= lanes == 1 ? begin<double>(*graph, {given}, {table + at}, {beliefs}, {reach})
                           : begin<Row>(*graph, {given}, {table + at}, {beliefs}, {reach});
    }
    return fits;
}

void normalise_tables(int64_t tables, const int64_t *start, int64_t lanes, double *x) {
    lanes == 1 ? normalise<double>(tables, start, {x}) : normalise<Row>(tables, start, {x});
}

void send_truncated(const truncated_graph *graph, const truncated_run *run, bool linear,
                    int64_t begin, int64_t end, double *belief, double *message) {
    (run->lanes == 1 ? send_all<double> : send_all<Row>)(*graph, *run, linear, begin, end, belief,
                                                         message);
}

status unsend_truncated(const truncated_graph *graph, const truncated_run *run, int64_t begin,
                        int64_t end, double *belief, double *message, double *slope) {
    int64_t most = 0;
    for (int64_t v = 0; v < graph->visits; ++v) {
        const int64_t states = graph->tape[v + 1] - graph->tape[v];
        most = states > most ? states : most;
    }
    Arena arena;
    double *ahead = arena.array<double>(most * run->lanes);
    if (arena.failed) return NO_MEMORY;
    if (run->lanes == 1)
        Messages<double>{*graph, {belief}, {message}}.backward(*run, begin, end, slope, {ahead});
    else
        Messages<Row>{*graph, {belief}, {message}}.backward(*run, begin, end, slope, {ahead});
    return OK;
}

void sweep_truncated(const truncated_graph *graph, const truncated_run *run, int64_t begin,
                     int64_t end, double *q) {
    if (run->lanes == 1)
        Field<double>{*graph, {q}}.forward(*run, begin, end);
    else
        Field<Row>{*graph, {q}}.forward(*run, begin, end);
}

void unsweep_truncated(const truncated_graph *graph, const truncated_run *run, int64_t begin,
                       int64_t end, double *q, double *log_q, double *slope) {
    if (run->lanes == 1)
        Field<double>{*graph, {q}}.backward(*run, begin, end, log_q, slope);
    else
        Field<Row>{*graph, {q}}.backward(*run, begin, end, log_q, slope);
}
