// Scaling of matchings, for every common counting number rho up to 1/2 and mild ones above.
//
// An edge (u, v) has tau / (1 - tau)^c = exp(score - x_u - x_v) with c = 1 - 2 rho, a node that may
// stay single the slack exp(-x_v / rho); prices x of nodes are moved until every degree is one
// (Sinkhorn's scaling), and where that creeps by Newton's method on the dual, which is convex in x:
//
//     sum_e [(1 - c) tau - c log(1 - tau)] + sum_v (x_v - rho) + sum_(v loose) rho exp(-x_v / rho)
//
// bounds log Z at every x. Last, degrees of tau are mended in proportion to tau.
#include "matching_system.h"

Work::Work(const Graph &g, Arena &arena) {
    const int64_t n = g.nodes, wide = whole_eights(n);
    for (double **array :
         {&x, &s, &y, &slope, &move, &p, &d, &q, &z, &other, &likely, &gap, &ground, &old, &right})
        *array = arena.array<double>(wide, 1.0);
    one = arena.array<double>(wide, 1.0);
    tail = arena.array<double>(wide, 2.0);
    loose = arena.array<double>(wide, 0.0);
    curvature = arena.array<double>(g.live);
    cooler = arena.array<double>(g.live);
    given = arena.array<double>(g.live);
    mate = arena.array<int64_t>(n);
    moving = arena.array<bool>(n);
    for (int64_t v = 0; !arena.failed && v < n; ++v) {
        tail[v] = g.ptr[v + 1] > g.ptr[v] ? 1.0 : 0.0;
        loose[v] = g.strict[v] ? 0.0 : 1.0;
    }
}

namespace {

constexpr int64_t PATIENCE = 6;                               // sweeps before Newton's steps
constexpr double LOST = 1e-16;                                // of a price, in every sum of them
constexpr double WIDE = 300.0, MILD = 100.0, COOLING = 10.0;  // nats, nats, a factor: see scale
constexpr int64_t BRIEF = 100;                                // sweeps of a cooler example
constexpr double NEARER = 0.1;  // of a slack's price a step leaves: beyond lie slacks above one
constexpr double NEAR = 1e-3;   // of tau = 1, where 1 - tau comes from the equation tau solves
constexpr int64_t TURNS = 500;  // of a Newton step's system, whose direction then serves as it is
constexpr int IDLE = 5;         // steps that lower neither value nor error: they are rounding's
constexpr double LONGEST = 20.0, FAR = 100.0;  // nats: of a step, and until the kernel is made anew
constexpr double LITTLE[] = {0.0, 1e-12, 1e-9, 1e-6, 1e-3};  // of the centre, for mending degrees

// log(1 - tau), of the equation that tau solves where tau is near one.
INLINE Row log_off(Row tau, Row log_z, double c) {
    const Row half = row_of(0.5), small = smaller(tau, half), safe = larger(tau, half);
    return select(tau < half, logarithm_of_one_and(-small), (log_z - logarithm(safe)) / -c);
}

// y_v = sum_e tau_e and slope_v = sum_e d tau_e / d log s_v, at the tails, the heads, or both.
template <bool TAILS, bool HEADS>
void sums(const Graph &g, double c, const double *kernel, const double *s, double *y,
          double *slope) {
    const int64_t n = g.nodes;
    if (c == 0.0) {
        product<TAILS, HEADS>(g, kernel, s, y);
        for (int64_t v = 0; v < n; ++v) slope[v] = y[v] = y[v] * s[v];
        return;
    }
    for (int64_t v = 0; v < n; ++v) y[v] = slope[v] = 0.0;
    each_eight(g, [&](const Eight &at) {
        const Row tau = entry(at.edges(kernel) * at.tails(s) * at.heads(s), c);
        at.add(y, tau);
        at.add(slope, entry_slope(tau, c));
    });
}

struct Move {
    Row step, error;
};

// Newton's step in the logarithm of a row's mass, and how far that is from one, for eight nodes.
INLINE Move newton_move(Row mass, Row curvature) {
    const Row zero = row_of(0.0), kept = smaller(mass, row_of(MOST));
    const Row size = logarithm(larger(kept, row_of(1e-307))), limit = 1.0 + magnitude(size);
    const Row bend = select(curvature < row_of(INF), curvature, kept);
    const Row step = -size * kept / larger(bend, 1e-3 * kept);
    const Row bad = select(mass == mass, row_of(1.0), row_of(INF));
    return {select(mass > zero, smaller(larger(step, -limit), limit), zero),
            select(mass > zero, magnitude(kept - 1.0), bad)};
}

// Prices x are moved by factors s of the kernel exp(score - x_u - x_v), which lies in tau: an
// exponential per node and none per edge. `cut`: an entry of the kernel was too large.
struct Scaling {
    const Example &at;
    Work &work;
    double residual;
    bool cut = false, exact = true;
    int64_t sweep = 0, taken = 0;  // now, and when the kernel was last made

    // Move the factors into the prices.
    void take_factors() {
        for (int64_t v = 0; v < at.g.nodes; v += EIGHT) {
            store(work.x + v, load(work.x + v) - logarithm(load(work.s + v)));
            store(work.s + v, row_of(1.0));
        }
    }

    // Move the factors into the prices, and make the kernel anew.
    void absorb() {
        take_factors();
        Row most = row_of(-INF);
        each_eight(at.g, [&](const Eight &e) {
            const Row log = e.edges(at.score) - e.tails(work.x) - e.heads(work.x);
            most = larger(most, e.only(log));
            e.put(at.tau, exponential(smaller(log, row_of(600.0))));
        });
        cut = largest(most) > 600.0;
        taken = sweep;
    }

    // The kernel becomes tau, the factors go into the prices; return the largest tau.
    double finish() {
        Row most = row_of(0.0);
        each_eight(at.g, [&](const Eight &e) {
            const Row tau =
                e.only(entry(e.edges(at.tau) * e.tails(work.s) * e.heads(work.s), at.c));
            e.put(at.tau, tau);
            most = larger(most, tau);
        });
        take_factors();
        return largest(most);
    }

    // Prices at which no row of the kernel vanishes: the largest score at one is enough. Each end
    // of an edge pays half its score, but the smaller of two sides all: the larger has room left,
    // hence small prices, and sweeps move those by a fraction of a nat.
    void start() {
        const Graph &g = at.g;
        const double high = extent(at.score, g.live).high;
        const double one = total(work.tail, g.nodes), other = static_cast<double>(g.nodes) - one;
        double part = 0.5;
        if (g.two_sided && one != other) part = one < other ? 1.0 : 0.0;
        for (int64_t v = 0; v < g.nodes; ++v) work.x[v] = work.tail[v] == 1.0 ? part * high : 0.0;
        for (int64_t e = 0; e < g.live; ++e) work.x[g.head[e]] = (1.0 - part) * high;
        for (int64_t v = 0; v < g.nodes; ++v)
            if (!g.strict[v]) work.x[v] = larger(work.x[v], 0.0);
    }

    // Newton's step of log s_v for log(sum of tau + slack) = 0, and the rows' errors. `room` is
    // what loose nodes' prices can fall by: a slack is at most one, so x >= 0.
    INLINE Move newton(int64_t v, Row *room) const {
        const Row y = load(work.y + v), slope = load(work.slope + v);
        const Bits loose = load(work.loose + v) > row_of(0.0);
        *room = row_of(INF);
        if (!any(loose)) return newton_move(y, slope);
        const Row left = load(work.x + v) - logarithm(load(work.s + v)), zero = row_of(0.0);
        const Row slack = exponential(-larger(left, zero) / row_of(at.rho));
        const Row mass = smaller(larger(y + slack, row_of(LEAST)), row_of(MOST));
        *room = select(loose, left, *room);
        Move found = newton_move(select(loose, mass, y),
                                 slope + select(loose, slack, zero) / row_of(at.rho));
        found.step = smaller(found.step, *room);
        return found;
    }

    // Move the nodes of one side, which share no edges, by Newton's step; the largest error before.
    // Where sums are linear in s, it is a division.
    double move_side(bool tails) {
        Row worst = row_of(0.0), room;
        for (int64_t v = 0; v < at.g.nodes; v += EIGHT) {
            const Bits mine = load(work.tail + v) == row_of(tails ? 1.0 : 0.0);
            if (!any(mine)) continue;
            const Row s = load(work.s + v), y = load(work.y + v);
            if (exact) {
                const Bits fits = y > row_of(0.0);
                const Row error = select(fits, magnitude(y - 1.0), row_of(1.0));
                worst = larger(select(mine, error, row_of(0.0)), worst);
                store(work.s + v, select(mine & fits, s / y, s));
                continue;
            }
            const Move found = newton(v, &room);
            worst = larger(select(mine, found.error, row_of(0.0)), worst);
            const Row by = exponential(smaller(found.step, row_of(HIGHEST)));
            store(work.s + v, select(mine, s * by, s));
        }
        return largest(worst);
    }

    // Move all nodes, half as far if `damped`; else their mean movement counts half: there scaling
    // has the eigenvalue -1.
    double move_all(bool damped) {
        const Graph &g = at.g;
        Row worst = row_of(0.0), room;
        for (int64_t v = 0; v < g.nodes; v += EIGHT) {
            const Move found = newton(v, &room);
            const Bits real = load(work.tail + v) < row_of(2.0);
            store(work.move + v, found.step);
            worst = larger(select(real, found.error, row_of(0.0)), worst);
        }
        double common = 0.0, all = LEAST;
        for (int64_t v = 0; !damped && v < g.nodes; ++v) {
            common += work.slope[v] * work.move[v];
            all += work.slope[v];
        }
        for (int64_t v = 0; v < g.nodes; v += EIGHT) {
            const Row s = load(work.s + v);
            Row step = (damped ? 0.5 : 1.0) * load(work.move + v) - 0.5 * common / all;
            const Bits loose = load(work.loose + v) > row_of(0.0);
            if (any(loose))
                step = select(loose, smaller(step, load(work.x + v) - logarithm(s)), step);
            store(work.s + v, s * exponential(smaller(step, row_of(HIGHEST))));
        }
        return largest(worst);
    }

    // Whether any factor is far from one; those near the end of all numbers are cut.
    bool far() {
        bool found = false;
        for (int64_t v = 0; v < at.g.nodes; ++v) {
            double &s = work.s[v];
            if (s > 1e-60 && s < 1e60) continue;
            found = true;
            s = s == s ? smaller(larger(s, 1e-200), 1e200) : 1.0;
        }
        return found;
    }

    struct Value {
        double worst, value;
    };

    // Every node's sum of tau + slack - 1; the largest, and the dual value. `curvature` becomes
    // d tau / d log z of the edges, `ground` that of the slacks.
    Value evaluate() {
        const Graph &g = at.g;
        const double c = at.c;
        Row terms = row_of(0.0);
        double *gap = work.gap, *ground = work.ground;
        if (c == 0.0) {
            sums<true, true>(g, c, at.tau, work.s, gap, ground);
            double all = 0.0;
            for (int64_t v = 0; v < g.nodes; ++v) all += gap[v];
            terms = 0.0625 * row_of(all);  // half of it, in eight parts
            each_eight(g, [&](const Eight &e) {
                e.put(work.curvature, e.edges(at.tau) * e.tails(work.s) * e.heads(work.s));
            });
        } else {
            for (int64_t v = 0; v < g.nodes; ++v) gap[v] = 0.0;
            each_eight(g, [&](const Eight &e) {
                const Row z = e.edges(at.tau) * e.tails(work.s) * e.heads(work.s);
                const Row t = entry(z, c), off = log_off(t, logarithm(z), c);
                const Row away = select(t < row_of(1.0 - NEAR), 1.0 - t,
                                        smaller(exponential(off), row_of(NEAR)));
                e.put(work.curvature, t * away / larger(away + c * t, row_of(1e-12)));
                terms = terms + e.only((1.0 - c) * t - c * off);
                e.add(gap, t);
            });
        }
        Row worst = row_of(0.0);
        const Row zero = row_of(0.0);
        for (int64_t v = 0; v < g.nodes; v += EIGHT) {
            const Row price = load(work.x + v) - logarithm(load(work.s + v));
            const Bits real = load(work.tail + v) < row_of(2.0);
            const Bits loose = load(work.loose + v) > zero;
            Row error = load(gap + v) - 1.0, single = zero, term = price - at.rho;
            if (any(loose)) {
                const Row slack = smaller(-price / row_of(at.rho), row_of(HIGHEST));
                single = select(loose, exponential(slack), zero);
                error = error + single;
                term = term + at.rho * single;
            }
            store(gap + v, error);
            store(ground + v, single / row_of(at.rho));
            terms = terms + select(real, term, zero);
            worst = larger(select(real, magnitude(error), zero), worst);
        }
        return {largest(worst), sum(terms)};
    }

    // Newton's direction at the last evaluation, into work.p; return the turns it took.
    int64_t direction(double worst) {
        const Graph &g = at.g;
        for (int64_t v = 0; v < g.nodes; ++v)  // no node alone goes further than LONGEST
            work.ground[v] += magnitude(work.gap[v]) / LONGEST;
        product<true, true>(g, work.curvature, work.one, work.right);
        const System system{g, work, work.curvature, work.right, work.ground, work.moving};
        return system.conjugate(work.gap, work.p, smaller(0.1, worst), TURNS);
    }

    // Move by so much of the direction from the factors in work.old.
    void move_by(double step) {
        for (int64_t v = 0; v < at.g.nodes; v += EIGHT) {
            const Row old = load(work.old + v), most = row_of(HIGHEST);
            const Bits loose = load(work.loose + v) > row_of(0.0);
            Row s = old * exponential(smaller(-step * load(work.p + v), most));
            if (any(loose)) {  // a slack is at most one, so x >= 0
                const Row room = (1.0 - NEARER) * (load(work.x + v) - logarithm(old));
                s = select(loose, smaller(s, old * exponential(smaller(room, most))), s);
            }
            store(work.s + v, s);
        }
    }

    // Damped Newton on the dual (c >= 0); the last error. report[3] counts the steps, report[4] is
    // the most turns of conjugate gradients.
    //
    // The Hessian is the signless Laplacian of d tau / d log z plus the slacks'. Conjugate
    // gradients, O(edges) a turn, solve for it plus diag(|gradient|) / LONGEST, which vanishes in
    // the end: where a curvature is far below its gradient, one node's step would be so long that
    // all others' were cut to nothing.
    double polish(int rounds, double *report) {
        const int64_t n = at.g.nodes;
        for (int64_t v = 0; v < n; ++v) work.moving[v] = true;
        Value now = evaluate();
        double least = now.worst, moved = 0.0;
        int idle = 0;
        while (rounds-- > 0) {
            if (cut || moved >= FAR) {
                absorb();
                moved = 0.0;
                now = evaluate();
            }
            if (now.worst <= residual || idle > IDLE) break;
            for (int64_t v = 0; v < n; ++v) work.old[v] = work.s[v];
            report[3] += 1.0;
            report[4] = larger(report[4], static_cast<double>(direction(now.worst)));
            double far = 0.0;
            for (int64_t v = 0; v < n; ++v) far = larger(far, magnitude(work.p[v]));
            double step = smaller(1.0, LONGEST / larger(far, LEAST));
            const double little = 1e-13 * magnitude(now.value);
            bool found = false;
            Value fresh{};
            for (int half = 0; half < 30 && !found; ++half) {
                move_by(step);
                fresh = evaluate();
                found = fresh.value <= now.value + little;
                if (!found) step *= 0.5;
            }
            if (found) {
                const bool gained = fresh.value < now.value - little || fresh.worst < 0.9 * least;
                idle = gained ? 0 : idle + 1;
                least = smaller(least, fresh.worst);
                now = fresh;
                moved += step * far;
                continue;
            }
            for (int64_t v = 0; v < n; ++v) work.s[v] = work.old[v];
            now.worst = evaluate().worst;
            break;
        }
        return now.worst;
    }
};

// Sweeps from prices at which no row of the kernel vanishes, and Newton where they creep.
//
// Graphs with two sides alternate; on others all nodes move at once.
void sweep_until_fit(const Example &at, Work &work, bool cold, double residual, int64_t sweeps,
                     double *report) {
    const Graph &g = at.g;
    Scaling scaling{at, work, residual};
    scaling.exact = at.c == 0.0;
    for (int64_t v = 0; v < g.nodes; ++v) {
        work.x[v] = at.x[v];
        work.s[v] = 1.0;
        scaling.exact = scaling.exact && g.strict[v];
    }
    if (cold) scaling.start();
    scaling.absorb();
    const double quick = at.c == 0.0 ? 0.6 : 0.02;
    double worst = INF, before = INF, least = INF;
    bool damped = false;
    int64_t &sweep = scaling.sweep, idle = 0, patience = PATIENCE, next = PATIENCE;
    while (sweep < sweeps && idle <= IDLE) {
        ++sweep;
        if (g.two_sided) {
            sums<false, true>(g, at.c, at.tau, work.s, work.y, work.slope);
            const double heads = scaling.move_side(false);
            sums<true, false>(g, at.c, at.tau, work.s, work.y, work.slope);
            worst = scaling.move_side(true);
            if (!scaling.exact) worst = larger(worst, heads);
        } else {
            sums<true, true>(g, at.c, at.tau, work.s, work.y, work.slope);
            worst = scaling.move_all(damped);
            damped = !damped && worst > 0.9 * before;
        }
        if (!(worst > residual)) {
            if (!scaling.cut || (sweep == scaling.taken + 1 && !scaling.exact)) break;
            // Fitted is a kernel that was cut: prices of the scores' own lie further on.
            scaling.absorb();
        } else if (sweep >= next && worst > quick * before) {
            worst = scaling.polish(at.c < 0.0 ? 5 : 50, report);
            if (at.c < 0.0 || (worst <= residual && !scaling.cut)) break;
            scaling.absorb();
            idle = worst < 0.9 * least ? 0 : idle + 1;
            patience = idle ? 2 * patience : PATIENCE;
            next = sweep + patience;
            least = smaller(worst, least);
        }
        before = worst;
        if (scaling.far()) scaling.absorb();
    }
    report[0] = worst;
    report[1] = static_cast<double>(sweep);
    report[2] = scaling.finish();
    for (int64_t v = 0; v < g.nodes; ++v) at.x[v] = work.x[v];
}

// Tau with exactly the right degrees.
struct Repair {
    const Graph &g;
    Work &work;
    double *tau;
    const double *centre;

    // Rows and columns scaled below one, what rows lack spread over what columns have left: the
    // nearest feasible point of a kind, on complete bipartite graphs whose rows sum to one.
    void fill_table() const {
        const int64_t rows = g.rows, columns = g.columns;
        double *column = work.y, *room = work.z, *times = work.d;
        for (int64_t j = 0; j < columns; ++j) column[j] = 0.0;
        for (int64_t i = 0; i < rows; ++i) {
            double *row = tau + i * columns;
            const double by = 1.0 / larger(total(row, columns), 1.0);
            for (int64_t j = 0; j < columns; ++j) column[j] += row[j] *= by;
        }
        for (int64_t j = 0; j < columns; ++j) {
            times[j] = 1.0 / larger(column[j], 1.0);
            room[j] = larger(1.0 - column[j], 0.0);
        }
        const double left = larger(total(room, columns), LEAST);
        for (int64_t i = 0; i < rows; ++i) {
            double *row = tau + i * columns;
            const double own = linear_row<true, false>(row, times, 0.0, nullptr, columns);
            const double lack = larger(1.0 - own, 0.0) / left;
            for (int64_t j = 0; j < columns; ++j) row[j] = row[j] * times[j] + lack * room[j];
        }
    }

    // tau_e (1 + p_u + p_v) with the right degrees, by conjugate gradients. The system
    // diag(degrees) + tau is a signless Laplacian, singular only along a bipartite gauge. Where the
    // result is negative (inference was far from done) it is mixed with `centre`, and where no
    // edges of any weight could carry what is missing, a little of it goes in first.
    void balance() const {
        for (int64_t e = 0; e < g.live; ++e) work.given[e] = tau[e];
        for (const double share : LITTLE) {
            for (int64_t e = 0; share > 0.0 && e < g.live; ++e)
                tau[e] = (1.0 - share) * work.given[e] + share * centre[e];
            fit();
            if (mix()) return;
        }
    }

    void fit() const {
        double *degree = work.y, *r = work.right, *none = work.ground, *p = work.p;
        for (int64_t v = 0; v < g.nodes; ++v) none[v] = 0.0;
        for (int turn = 0;; ++turn) {
            product<true, true>(g, tau, work.one, degree);
            double worst = 0.0;
            for (int64_t v = 0; v < g.nodes; ++v) {
                work.moving[v] = g.strict[v] || degree[v] > 1.0;
                r[v] = work.moving[v] ? 1.0 - degree[v] : 0.0;
                worst = larger(worst, magnitude(r[v]));
            }
            if (worst <= 1e-14 || turn == 4) return;
            const System system{g, work, tau, degree, none, work.moving};
            system.conjugate(r, p, 3e-7, INT64_MAX);
            each_eight(g, [&](const Eight &e) {
                e.put(tau, e.edges(tau) * (1.0 + e.tails(p) + e.heads(p)));
            });
        }
    }

    // The nearest feasible point on the way to `centre`; false if that is all the way there.
    bool mix() const {
        double share = 0.0;
        for (int64_t v = 0; v < g.nodes; ++v) {
            const double over = work.y[v] - 1.0;
            if ((g.strict[v] && !(magnitude(over) <= 1e-12)) || !(over <= 1e-12)) share = 1.0;
        }
        for (int64_t e = 0; e < g.live; ++e)
            if (tau[e] < 0.0) share = larger(share, tau[e] / (tau[e] - centre[e]));
        for (int64_t e = 0; share > 0.0 && e < g.live; ++e)
            tau[e] =
                share < 1.0 ? larger((1.0 - share) * tau[e] + share * centre[e], 0.0) : centre[e];
        return share < 1.0;
    }
};

double slacks_value(const Graph &g, double rho, const double *x) {
    double found = 0.0;
    for (int64_t v = 0; v < g.nodes; ++v) {
        found += x[v];
        if (g.strict[v] || rho > 0.0) found -= rho;
        if (!g.strict[v] && rho > 0.0) found += rho * bounded_exponential(-x[v] / rho);
    }
    return found;
}

}  // namespace

// Scores that are wide are cooled to: a sweep moves a price by some nats where another has to move,
// too, so prices of thousands would take as many sweeps, and end elsewhere first. Prices of scores
// so mild that nothing underflows, times what those were divided by, start the next, which are
// divided by less.
void scale(const Example &at, Work &work, bool cold, double residual, int64_t sweeps,
           double *report) {
    report[3] = report[4] = 0.0;
    const Extent range = cold ? extent(at.score, at.g.live) : Extent{0.0, 0.0};
    const double width = range.high - range.low;
    if (width >= WIDE && width < MOST) {
        Example mild = at;
        mild.score = work.cooler;
        for (double heat = width / MILD; heat > 1.0;) {
            for (int64_t e = 0; e < at.g.live; ++e) work.cooler[e] = at.score[e] / heat;
            sweep_until_fit(mild, work, cold, 1e-2, sweeps < BRIEF ? sweeps : BRIEF, report);
            const double last = heat;
            heat = larger(heat / COOLING, 1.0);
            cold = false;
            for (int64_t v = 0; v < at.g.nodes; ++v) at.x[v] *= last / heat;
        }
    }
    sweep_until_fit(at, work, cold, residual, sweeps, report);
}

double dual_value(const Example &at) {
    const double c = at.c;
    double found = (1.0 - c) * total(at.tau, at.g.live);
    if (c != 0.0) {
        Row off = row_of(0.0);
        each_eight(at.g, [&](const Eight &e) {
            const Row log_z = e.edges(at.score) - e.tails(at.x) - e.heads(at.x);
            off = off + e.only(log_off(e.edges(at.tau), log_z, c));
        });
        found -= c * sum(off);
    }
    return found + slacks_value(at.g, at.rho, at.x);
}

// The residual, or what is left of a degree's digits where prices are as large as scores.
double reachable(const double *score, int64_t live, double residual) {
    const Extent range = extent(score, live);
    return larger(residual, LOST * larger(-range.low, range.high));
}

void mend(const Graph &g, Work &work, double *tau, const double *centre) {
    const Repair repair{g, work, tau, centre};
    g.rows > 0 && g.strict[0] ? repair.fill_table() : repair.balance();
}

status matching_mend(const Graph *graph, double *tau, const double *centre) {
    Arena arena;
    Work work(*graph, arena);
    if (arena.failed) return NO_MEMORY;
    mend(*graph, work, tau, centre);
    return OK;
}
