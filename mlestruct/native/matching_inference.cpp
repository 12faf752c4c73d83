// Marginals of matchings: up to rho = 1/2 by scaling, above it by scaling, by messages, by ascent,
// each as far as it goes, and a node-wise bound that holds at any prices.
//
// Above 1/2 scaling serves while every tau is well below 1 / (2 rho). Else at rho = 1 messages, of
// belief propagation (Huang and Jebara 2009; Bayati, Shah and Sharma 2008),
//
//     m_(v -> e) = 1 / (slack_v + sum_(f != e at v) exp(score_f - x_v - x_u) m_(u -> f)),
//
// or ascent, whose every round is a problem of scaling's.
#include "matchings.h"

namespace {

constexpr double SOFT = 1e-11;   // at rho = 0 the slacks' entropy weighs this, and moves no digit
constexpr int64_t NEARBY = 500;  // sweeps from a warm start
constexpr double SLIGHT = 20.0;  // nats: what a node that may be single pays, or it is none
constexpr double NEAR = 1e-4, AGREE = 1e-7;  // so near to a vertex an answer proves itself, so well
constexpr double FAR = 50.0;                 // nats: of a leap
constexpr int64_t PERIOD = 10;               // sweeps between leaps
constexpr int64_t HUNDRED = 100;             // sweeps in which errors are to halve
constexpr double NOTHING = 1e-17;  // left to the others: the bound is what the likeliest is worth

// Arrays of one call.
struct Room {
    double *degree, *mass, *largest, *slack;  // by node
    double *old, *held, *log_off, *linear, *kept, *worth;
    int64_t *top, *start, *place, *other, *edge;
    bool sided = false;

    Room(const Graph &g, Arena &arena) {
        const int64_t n = g.nodes, m = g.live;
        for (double **array : {&degree, &mass, &largest, &slack, &kept})
            *array = arena.array<double>(n);
        for (double **array : {&old, &held}) *array = arena.array<double>(2 * m);
        log_off = arena.array<double>(m);
        linear = arena.array<double>(m);
        worth = arena.array<double>(whole_eights(n + 1) + EIGHT);
        top = arena.array<int64_t>(n);
        start = arena.array<int64_t>(n + 1);
        place = arena.array<int64_t>(n + 1);
        other = arena.array<int64_t>(2 * m);
        edge = arena.array<int64_t>(2 * m);
    }
};

// Node by node. With b = 2 rho - 1 and r = 1 - tau, the entropy for rho from 1/2 to 1 is a sum over
// nodes of 1/2 sum [-tau log tau + b r log r] - rho s log s over their edges and slack s, each
// concave over what its node can do. Prices x split an edge's score between its ends; let every
// node choose by itself,
//
//     D(x) = 1/2 sum_v { x_v + max_q sum_e [(score_e - x_other) q_e - q_e log q_e + b r_e log r_e]
//                        - x_v s - 2 rho s log s },
//
// and D is convex, nowhere below the maximum over the degrees, and equal to it at best. A tangent
// bounds every node's maximum, at any q: max_e [score_e - x_other - log q_e - b log r_e] (and
// -x_v - 2 rho log s) + b sum_e log r_e.
struct Split {
    const Graph &g;
    Room &room;
    double rho;
    const double *score, *x;

    // Every node's edges, as tail or head: where they start, their other ends, their numbers.
    void find_sides() const {
        if (room.sided) return;
        room.sided = true;
        const int64_t n = g.nodes;
        for (int64_t v = 0; v <= n; ++v) room.start[v] = 0;
        each_edge(g, [&](int64_t, int64_t u, int64_t v) {
            ++room.start[u + 1];
            ++room.start[v + 1];
        });
        for (int64_t v = 0; v < n; ++v) {
            room.start[v + 1] += room.start[v];
            room.place[v] = room.start[v];
        }
        each_edge(g, [&](int64_t e, int64_t u, int64_t v) {
            room.other[room.place[u]] = v;
            room.edge[room.place[u]++] = e;
            room.other[room.place[v]] = u;
            room.edge[room.place[v]++] = e;
        });
    }

    struct Others {
        double rest, curvature, most, off;
    };

    // All but the likeliest at a level: their mass, -its slope, the highest, and b sum log r.
    Others others(int64_t v, int64_t count, int64_t top, double now) const {
        const double b = 2.0 * rho - 1.0, own = top >= 0 ? room.worth[top] : 0.0;
        if (top >= 0) room.worth[top] = -INF;
        Row rest = row_of(0.0), curvature = rest, off = rest, most = row_of(now);
        for (int64_t k = 0; k < count; k += EIGHT) {
            const Row worth = load(room.worth + k);
            const Row q = entry(exponential(smaller(worth - now, row_of(HIGHEST))), -b);
            const Row away = logarithm_of_one_and(-q);
            const Row high = worth - logarithm(larger(q, row_of(1e-307))) - b * away;
            rest = rest + q;
            curvature = curvature + entry_slope(q, -b);
            off = off + b * away;
            most = larger(select(q > row_of(1e-290), high, most), most);
        }
        if (top >= 0) room.worth[top] = own;
        Others found{1e-300 + sum(rest), sum(curvature), largest(most), sum(off)};
        if (!g.strict[v] && top >= 0) {
            const double single = bounded_exponential(-0.5 * (x[v] + now) / rho);
            found.rest += single;
            found.curvature += 0.5 * single / rho;
        }
        return found;
    }

    struct Level {
        double value, now;
        int64_t top;
    };

    // Twice a node's bound, the level at which its outcomes are worth the same, and its likeliest
    // (-1: to stay single). That one takes what the others leave: no digit of its r, their sum, is
    // lost near a vertex, and the bound is tight there too, also where the optimum at rho = 1 is
    // the vertex.
    Level level(int64_t v) const {
        const int64_t first = room.start[v], count = room.start[v + 1] - first;
        int64_t top = 0;
        for (int64_t k = 0; k < count; ++k) {
            room.worth[k] = score[room.edge[first + k]] - x[room.other[first + k]];
            if (room.worth[k] > room.worth[top]) top = k;
        }
        for (int64_t k = count; k < whole_eights(count); ++k) room.worth[k] = -INF;
        const double b = 2.0 * rho - 1.0, price = x[v];
        const double half = 2.0 * rho * 0.6931471805599453 - price;  // every second time single
        if (!g.strict[v] && others(v, count, -1, half).rest < 0.5) top = -1;
        Level best{INF, price, top};
        double now = price, low = -INF, high = INF, step = 1e-6;
        for (int turn = 0; turn < 200; ++turn) {
            Others found = others(v, count, top, now);
            double error = INF, slope = 0.0;
            if (found.rest < 1.0) {
                const double rest = found.rest, left = logarithm_of_one_and(-rest);
                double own = -price - 2.0 * rho * left;
                slope = -2.0 * rho * found.curvature / (1.0 - rest) - 1.0;
                if (top >= 0) {
                    const double log = logarithm(rest);
                    own = room.worth[top] - left - b * log;
                    found.off += b * log;
                    slope = found.curvature * (b / rest - 1.0 / (1.0 - rest)) - 1.0;
                }
                error = own - now;
                const double value = price + larger(own, found.most) + found.off;
                if (value <= best.value) {
                    best.value = value;
                    best.now = now;
                }
                if (magnitude(error) <= 1e-14 * (1.0 + magnitude(now)) ||
                    (rest < NOTHING && error > 0.0))
                    break;
            }
            (error > 0.0 ? low : high) = now;
            // Longer steps until there is a bracket; in it Newton's, or halves where they do not
            // shrink.
            if (low == -INF || high == INF) {
                now += error > 0.0 ? step : -step;
                step *= 8.0;
                continue;
            }
            const double newton = slope < 0.0 ? -error / slope : INF, to = now + newton;
            const bool shrinks = low < to && to < high && magnitude(newton) <= 0.5 * step;
            const double next = shrinks ? to : 0.5 * (low + high);
            step = shrinks ? magnitude(newton) : magnitude(next - now);
            now = next;
        }
        return best;
    }

    // D at these prices, rounded up to a tangent's.
    double value() const {
        find_sides();
        double found = 0.0;
        for (int64_t v = 0; v < g.nodes; ++v)
            if (room.start[v + 1] > room.start[v]) found += level(v).value;
        return 0.5 * found;
    }

    // 2 D, its slope and its Hessian; tau is the mean of what an edge's two ends choose.
    void respond(const matching_response &to, double *q, double *d) const {
        find_sides();
        const int64_t n = g.nodes;
        to.value[0] = 0.0;
        for (int64_t e = 0; e < g.live; ++e) to.tau[e] = 0.0;
        for (int64_t k = 0; k < n * n; ++k) to.curvature[k] = 0.0;
        for (int64_t v = 0; v < n; ++v) to.slope[v] = room.start[v + 1] > room.start[v] ? 1.0 : 0.0;
        for (int64_t v = 0; v < n; ++v)
            if (room.start[v + 1] > room.start[v]) respond_at(v, to, q, d);
    }

    void respond_at(int64_t v, const matching_response &to, double *q, double *d) const {
        const int64_t first = room.start[v], k = room.start[v + 1] - first;
        const double b = 2.0 * rho - 1.0;
        const Level found = level(v);
        const int64_t top = found.top >= 0 ? found.top : k;
        to.value[0] += found.value;
        for (int64_t i = 0; i < k; ++i) {
            const double gain = smaller(room.worth[i] - found.now, HIGHEST);
            q[i] = i == top ? 0.0 : entry(exponential(gain), -b);
            d[i] = i == top ? 0.0 : entry_slope(q[i], -b);
        }
        q[k] = d[k] = 0.0;
        if (!g.strict[v] && top < k) {
            q[k] = bounded_exponential(-0.5 * (x[v] + found.now) / rho);
            d[k] = 0.5 * q[k] / rho;
        }
        double rest = 0.0, moved = 0.0, more = 0.0;
        for (int64_t i = 0; i <= k; ++i) {
            rest += q[i];
            moved += d[i];
            more += d[i] - q[i];
        }
        rest = larger(rest, 1e-300);
        const double far = top < k ? 1.0 / (1.0 - rest) - b / rest : 2.0 * rho / (1.0 - rest);
        // 1 + far * moved, without the difference that vanishes at a vertex
        const double left =
            top < k ? 1.0 - b + moved / (1.0 - rest) - b * more / rest : 1.0 + far * moved;
        q[top] = 1.0 - rest;
        const int64_t *near = room.other + first;
        for (int64_t i = 0; i < k; ++i) to.tau[room.edge[first + i]] += 0.5 * q[i];
        for (int64_t i = 0; i <= k; ++i) to.slope[i < k ? near[i] : v] -= q[i];
        if (rest < NOTHING || !(left > 1e-12)) return;
        d[top] = 0.0;
        const auto hessian = [&](int64_t i, int64_t j) -> double & {
            return to.curvature[(i < k ? near[i] : v) * g.nodes + (j < k ? near[j] : v)];
        };
        for (int64_t i = 0; i <= k; ++i) {
            for (int64_t j = 0; j <= k; ++j) hessian(i, j) -= far / left * d[i] * d[j];
            hessian(i, i) += d[i];
            hessian(i, top) -= d[i] / left;
            hessian(top, i) -= d[i] / left;
        }
        hessian(top, top) += moved / left;
    }
};

// Messages that creep leap along their last step, twice as far as the last time, and back again
// where that has led nowhere. Steps are of the messages' logarithms.
struct Leaps {
    int64_t size;
    double *sent, *old, *held;
    double longest = 1.0, mark = INF;

    void copy(const double *from, double *to) const {
        std::memcpy(to, from, static_cast<size_t>(size) * sizeof(double));
    }

    bool leapt() const { return mark < INF; }

    void take(double worst) {
        if (worst > mark) {
            copy(held, sent);
            longest = larger(0.125 * longest, 1.0);
            mark = INF;
            return;
        }
        copy(sent, held);
        mark = worst;
        for (int64_t e = 0; e < size; ++e) {
            const double step = longest * logarithm(sent[e] / old[e]);
            sent[e] *= exponential(larger(smaller(step, FAR), -FAR));
        }
        longest *= 2.0;
    }
};

// Messages at rho = 1, without logarithms: m_(v -> e) = 1 / (S_v - K m') with
// S_v = sum K m' + slack, tau = z / (1 + z), z = K m m', for K = exp(score - x_u - x_v).
struct Bethe {
    const Example &at;
    Room &room;
    double *sent, *log_off;

    // On return x is moved by log S_v and the messages with it, so that they are 1 / (1 - tau).
    // False, with nothing kept, where a number leaves the range of floats or progress stops.
    bool propagate(bool cold, double residual, int64_t sweeps, double *report) const {
        const Graph &g = at.g;
        for (int64_t v = 0; v < g.nodes; ++v)
            room.slack[v] = g.strict[v] ? 0.0 : bounded_exponential(-at.x[v]);
        each_eight(g, [&](const Eight &e) {
            const Row log = e.edges(at.score) - e.tails(at.x) - e.heads(at.x);
            e.put(at.tau, exponential(smaller(log, row_of(300.0))));
        });
        for (int64_t e = 0; cold && e < 2 * g.live; ++e) sent[e] = 1.0;
        double worst = INF, least = INF, before = INF;
        Leaps leaps{2 * g.live, sent, room.old, room.held};
        bool creeping = false;  // no half in a hundred sweeps
        for (int64_t sweep = 1; sweep <= sweeps; ++sweep) {
            const int64_t phase = sweep % PERIOD;
            if (creeping && phase == 0) leaps.copy(sent, leaps.old);
            if (g.two_sided) {
                worst = exchange<true>(false);
                if (worst < 1e100) worst = larger(exchange<true>(true), worst);
            } else {
                worst = exchange<false>(true);
            }
            report[1] += 1.0;
            if (!(worst < 1e100) && !leaps.leapt()) return false;
            if (worst <= residual) break;
            if (creeping && (phase == 0 || !(worst < 1e100))) leaps.take(worst);
            least = smaller(worst, least);
            if (sweep % HUNDRED) continue;
            if (creeping && least > 0.95 * before) break;
            creeping = creeping || least > 0.5 * before;
            before = least;
        }
        report[0] = worst;
        report[2] = finish();
        return worst <= larger(residual, AGREE);
    }

    // Sums of the terms at every node. Its largest term is left out and held aside, so that no
    // difference cancels.
    void sum_terms() const {
        const Graph &g = at.g;
        const double *tail = sent, *head = sent + g.live;
        for (int64_t v = 0; v < g.nodes; ++v) {
            room.mass[v] = room.slack[v];
            room.largest[v] = -1.0;
            room.top[v] = -1;
        }
        for (int64_t u = 0; u < g.nodes; ++u) {
            double most = room.largest[u], mass = room.mass[u];
            int64_t top = room.top[u];
            for (int64_t e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
                const int64_t v = g.head[e];
                const double a = at.tau[e] * head[e], b = at.tau[e] * tail[e];
                if (a > most) {
                    mass += larger(most, 0.0);
                    most = a;
                    top = e;
                } else {
                    mass += a;
                }
                if (b > room.largest[v]) {
                    room.mass[v] += larger(room.largest[v], 0.0);
                    room.largest[v] = b;
                    room.top[v] = e;
                } else {
                    room.mass[v] += b;
                }
            }
            room.largest[u] = most;
            room.mass[u] = mass;
            room.top[u] = top;
        }
    }

    // All messages of one side's nodes, or of all nodes the geometric mean with the last; the
    // largest change of tau.
    template <bool SIDED>
    double exchange(bool tails) const {
        const Graph &g = at.g;
        double *tail = sent, *head = sent + g.live, worst = 0.0;
        sum_terms();
        for (int64_t u = 0; u < g.nodes; ++u)
            for (int64_t e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
                const int64_t v = g.head[e];
                const double a = at.tau[e] * head[e], b = at.tau[e] * tail[e], z = a * tail[e];
                const double weight = z < 1e150 ? z / ((1.0 + z) * (1.0 + z)) : 0.0;
                double change = 0.0;
                if (!SIDED || tails) change = answer<!SIDED>(tail + e, without(u, e, a));
                if (!SIDED || !tails)
                    change = larger(answer<!SIDED>(head + e, without(v, e, b)), change);
                if (!(change < 1e250)) return INF;
                worst = larger(worst, weight * change);
            }
        return worst;
    }

    INLINE double without(int64_t v, int64_t e, double term) const {
        return e == room.top[v] ? room.mass[v] : room.mass[v] + (room.largest[v] - term);
    }

    // The new message in its place; its relative change.
    template <bool MEAN>
    INLINE double answer(double *place, double rest) const {
        if (!(rest > 1e-120 && rest < 1e120)) return *place = INF;
        const double old = larger(*place, 1e-150), whole = old * rest;
        const double less = MEAN ? square_root(whole) : whole, more = 1.0 / less;
        *place = old * more;
        return larger(less, more) - 1.0;
    }

    // Tau, log(1 - tau), and the prices that belong to the messages; the largest tau.
    double finish() const {
        const Graph &g = at.g;
        double *tail = sent, *head = sent + g.live;
        for (int64_t v = 0; v < g.nodes; ++v) room.mass[v] = room.slack[v];
        each_edge(g, [&](int64_t e, int64_t u, int64_t v) {
            room.mass[u] += at.tau[e] * head[e];
            room.mass[v] += at.tau[e] * tail[e];
        });
        Row most = row_of(0.0);
        each_eight(g, [&](const Eight &e) {
            const Row z = e.edges(at.tau) * e.edges(tail) * e.edges(head), tau = z / (1.0 + z);
            e.put(log_off, -logarithm_of_one_and(z));
            e.put(tail, e.edges(tail) * e.tails(room.mass));
            e.put(head, e.edges(head) * e.heads(room.mass));
            e.put(at.tau, tau);
            most = larger(most, e.only(tau));
        });
        for (int64_t v = 0; v < g.nodes; ++v)
            if (room.mass[v] > 0.0) at.x[v] += logarithm(room.mass[v]);
        return largest(most);
    }
};

// The Lagrangian at any (x, tau): off by second order near a stationary point, no bound.
double stationary_value(const Example &at, const double *log_off) {
    Row found = row_of(0.0);
    each_eight(at.g, [&](const Eight &e) {
        const Row t = e.edges(at.tau), off = e.edges(log_off);
        const Row worth = e.edges(at.score) - e.tails(at.x) - e.heads(at.x) + 2.0 * at.rho;
        const Row term = t * (worth - logarithm(larger(t, row_of(1e-307))));
        found = found +
                e.only(select(t > row_of(0.0), term, row_of(0.0)) - at.c * exponential(off) * off);
    });
    double all = sum(found);
    for (int64_t v = 0; v < at.g.nodes; ++v) {
        all += at.x[v] - at.rho;
        if (!at.g.strict[v]) all += at.rho * bounded_exponential(-at.x[v] / at.rho);
    }
    return all;
}

// One example, by the first way that gets there.
struct Inference {
    const Example &at;
    Work &work;
    Room &room;
    double *sent;
    double residual;
    int64_t sweeps;
    double *report;
    double log_z;

    // Scale, or send messages where a tau is too large for scaling. From a warm start COLD is all
    // that a call returns unless it has converged in the way it began: where it has not, what
    // another problem left is no better than nothing.
    Mode infer(Mode start) {
        if (at.c >= 0.0) {
            const int64_t most = start == COLD || sweeps < NEARBY ? sweeps : NEARBY;
            scale(at, work, start == COLD, residual, most, report);
            Example exact = at;
            if (at.rho == SOFT) exact.rho = 0.0;
            log_z = dual_value(exact);
            return start == COLD || report[0] <= residual ? SCALED : COLD;
        }
        Mode mode = start <= SCALED ? scaled(start) : start;
        if (mode == SCALED) {
            log_z = dual_value(at);
            return start == COLD || report[0] <= residual ? SCALED : COLD;
        }
        log_z = 0.0;
        if (start == SCALED) return COLD;
        mode = messages(mode);
        if (mode != SPLIT) log_z = stationary_value(at, room.log_off);
        return mode;
    }

    // SCALED where scaling is enough: while every tau is well below 1 / (2 rho).
    Mode scaled(Mode mode) {
        if (mode == COLD) {
            Example half = at;
            half.c = 0.0;
            half.rho = 0.5;
            scale(half, work, true, 1e-2, sweeps < 30 ? sweeps : 30, report);
            for (int64_t v = 0; v < at.g.nodes; ++v)
                if (!at.g.strict[v]) at.x[v] += (2.0 * at.rho - 1.0) * smaller(at.x[v], SLIGHT);
            if (report[2] > 0.4 / at.rho) return COLD;
        }
        scale(at, work, false, residual, sweeps < 100 ? sweeps : 100, report);
        return report[0] <= residual && report[2] < 0.45 / at.rho ? SCALED : COLD;
    }

    // At rho = 1 messages; below it, and where they fail, ascent; then on graphs that are not large
    // the least of the nodes' own bounds, which is the caller's.
    Mode messages(Mode mode) {
        const Graph &g = at.g;
        if (at.rho == 1.0 && mode != RAISED) {
            const int64_t size = g.nodes * static_cast<int64_t>(sizeof(double));
            std::memcpy(room.kept, at.x, size);
            const Bethe bethe{at, room, sent, room.log_off};
            if (bethe.propagate(mode == COLD, residual, sweeps, report) && holds()) return SENT;
            if (mode == SENT) return COLD;
            std::memcpy(at.x, room.kept, size);
        }
        majorise(mode == COLD, sent);
        for (int64_t e = 0; e < g.live; ++e) room.log_off[e] = sent[e];
        if (report[0] <= larger(residual, 1e-7) && holds()) return RAISED;
        return mode == COLD && g.nodes <= DENSE ? SPLIT : COLD;
    }

    // Near a vertex, and where degrees do not fit: the value is the nodes' own bound, too. Messages
    // that hardly change tau leave any vertex where it is, whatever the scores have become.
    bool holds() const {
        const Graph &g = at.g;
        for (int64_t v = 0; v < g.nodes; ++v) room.degree[v] = 0.0;
        bool near = false;
        each_edge(g, [&](int64_t e, int64_t u, int64_t v) {
            room.degree[u] += at.tau[e];
            room.degree[v] += at.tau[e];
            near = near || at.tau[e] > 1.0 - NEAR;
        });
        for (int64_t v = 0; v < g.nodes; ++v) {
            const double single = g.strict[v] ? 0.0 : bounded_exponential(-at.x[v] / at.rho);
            const double error = magnitude(room.degree[v] + single - 1.0);
            near = near || single > 1.0 - NEAR || error > AGREE;
        }
        if (!near) return true;
        const double value = stationary_value(at, room.log_off);
        const double bound = Split{g, room, at.rho, at.score, at.x}.value();
        return magnitude(bound - value) <= AGREE * (1.0 + magnitude(value));
    }

    // Ascent: the convex part -c (1 - tau) log(1 - tau) of the entropy by its tangent, then
    // scaling. Every round is a concave problem of the kind rho = 1/2 solves. Few rounds do below
    // rho = 1, where messages creep at large scores; at rho = 1 it is slow, and never a cycle.
    // `log_off` is where the next call starts.
    void majorise(bool cold, double *log_off) {
        const int64_t live = at.g.live;
        for (int64_t e = 0; cold && e < live; ++e) log_off[e] = 0.0;
        Example tangent = at;
        tangent.c = 0.0;
        tangent.score = room.linear;
        double worst = INF;
        for (int64_t turn = 0; turn < 300 && turn < sweeps; ++turn) {
            for (int64_t e = 0; e < live; ++e) room.linear[e] = at.score[e] + at.c * log_off[e];
            scale(tangent, work, cold && turn == 0, residual, sweeps, report);
            Row change = row_of(0.0);
            each_eight(at.g, [&](const Eight &e) {
                const Row off = logarithm(larger(1.0 - e.edges(at.tau), row_of(1e-16)));
                const Row step = exponential(off) - exponential(e.edges(log_off));
                change = larger(change, e.only(magnitude(step)));
                e.put(log_off, off);
            });
            worst = largest(change);
            if (worst <= residual) break;
        }
        report[0] = larger(report[0], worst);
    }
};

}  // namespace

// Every example: from where its last call ended, if that gets there, else from the start.
status matching_infer(const Graph *graph, const matching_aim *aim, const matching_state *state,
                      const double *score, const double *centre, double *tau, double *log_z) {
    const Graph &g = *graph;
    const bool beyond = aim->rho > 0.5;
    Arena arena;
    Work work(g, arena);
    Room room(beyond ? g : Graph{}, arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < state->count; ++m) {
        const Example at{g,
                         1.0 - 2.0 * aim->rho,
                         larger(aim->rho, SOFT),
                         score + m * g.live,
                         state->x + m * g.nodes,
                         tau + m * g.live};
        const double enough = reachable(at.score, g.live, aim->residual);
        double *sent = beyond ? state->sent + 2 * m * g.live : nullptr;
        Inference one{at, work, room, sent, enough, aim->sweeps, state->report, 0.0};
        Mode mode = COLD;
        if (state->mode[m] < SPLIT && state->mode[m] != COLD)
            mode = one.infer(static_cast<Mode>(state->mode[m]));
        if (mode == COLD) mode = one.infer(COLD);
        state->mode[m] = mode;
        log_z[m] = one.log_z;
        if (mode == SPLIT) continue;
        mend(g, work, at.tau, centre);
        if (beyond && !(state->report[0] <= 1e-7))
            log_z[m] = Split{g, room, at.rho, at.score, at.x}.value();
    }
    return OK;
}

status matching_bound(const Graph *graph, double rho, int64_t count, const double *scores,
                      const double *x, double *values) {
    Arena arena;
    Room room(rho > 0.5 ? *graph : Graph{}, arena);
    double *prices = arena.array<double>(graph->nodes), *tau = arena.array<double>(graph->live);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < count; m++, scores += graph->live, x += graph->nodes) {
        if (rho > 0.5) {
            values[m] = Split{*graph, room, rho, scores, x}.value();
            continue;
        }
        copy(prices, x, graph->nodes);
        const Example at{*graph, 1.0 - 2.0 * rho, rho, scores, prices, tau};
        each_eight(*graph, [&](const Eight &e) {
            const Row log_z = e.edges(scores) - e.tails(x) - e.heads(x);
            e.put(at.tau, entry(exponential(smaller(log_z, row_of(600.0))), at.c));
        });
        values[m] = dual_value(at);
    }
    return OK;
}

status matching_respond(const Graph *graph, double rho, const double *score, const double *x,
                        const matching_response *response) {
    Arena arena;
    Room room(*graph, arena);
    double *q = arena.array<double>(graph->nodes + 1), *d = arena.array<double>(graph->nodes + 1);
    if (arena.failed) return NO_MEMORY;
    Split{*graph, room, rho, score, x}.respond(*response, q, d);
    return OK;
}
