// The best mixture of known answers: Newton's steps on as few of them as have a say.
//
// Wolfe's active sets (1976, Mathematical Programming 11), with Newton's steps in place of his
// affine minimisers: a row maximises <score, x> + H(x) over the mixtures x of its atoms; an atom
// whose weight a step would make negative leaves; when none is left to leave, the answer that gains
// most at the gradient comes in. A maximum over its atoms has no gain among their affine
// combinations, so what comes in is independent of them: a row never has more atoms than its hull
// has dimensions, and one.
//
// The first answer is a point in the interior, of which every mixture keeps LEAST: logarithms need
// it.
#include "climb.h"

#include "lanes.h"

namespace {

constexpr double LEAST = 1e-10;               // of the interior point
constexpr int64_t NEWTON = 100, HALVES = 50;  // steps between answers, halvings of one step
constexpr int64_t TURNS = 20;        // answers that come in for each that there is room for
constexpr double STILL = 1e-12;      // of a height: Newton's decrement that is as good as none
constexpr double EARLY = 0.01;       // of the last answer's gain: a decrement that is enough
constexpr double BACK = 0.95;        // of the way to a view of 0 that one step may go
constexpr double SHARE = 0.1;        // weight of a new atom, halved until it gains
constexpr double RISE = 1e-4;        // of what a step promises, that it must keep
constexpr double ROUNDING = 1e-13;   // of a height
constexpr double DEPENDENT = 1e-12;  // of a diagonal: a smaller pivot is one of dependent atoms
constexpr double FLOOR = 1e-18;      // of a view

double inner(const double *one, const double *other, int64_t size) {
    Row total = row_of(0.0);
    int64_t k = 0;
    for (; k + EIGHT <= size; k += EIGHT)
        total = add_product(total, load(one + k), load(other + k));
    double rest = sum(total);
    for (; k < size; ++k) rest = add_product(rest, one[k], other[k]);
    return rest;
}

// One row. Arrays over views are padded to whole eights by zeros, which add nothing to a height.
struct Climb {
    const answer_pool *pool;
    int64_t size, padded, most;
    double enough;  // what an answer may still gain
    double *a, *b, *c0, *score, *x, *slope, *curve, *away;
    double *hessian, *step, *gain;
    int64_t *atoms, live;
    double *weight, height;
    bool held;  // the interior point, back at its least weight

    int64_t first() const { return held ? 1 : 0; }
    double *row(int64_t i) const { return hessian + i * most; }

    void add(int64_t answer, double factor, double *out) const {
        for (int64_t e = pool->start[answer]; e < pool->start[answer + 1]; ++e)
            out[pool->place[e]] += factor * pool->amount[e];
    }
    double dot(int64_t answer, const double *values) const {
        double total = 0.0;
        for (int64_t e = pool->start[answer]; e < pool->start[answer + 1]; ++e)
            total += values[pool->place[e]] * pool->amount[e];
        return total;
    }
    void clear(double *values) const {
        for (int64_t k = 0; k < padded; ++k) values[k] = 0.0;
    }

    // <score, .> + H at x + step * away.
    double height_at(double size_of_step) const {
        Row found = row_of(0.0);
        const Row floor = row_of(FLOOR);
        for (int64_t k = 0; k < padded; k += EIGHT) {
            const Row here = load(x + k) + load(away + k) * size_of_step;
            const Row t = larger(here + load(c0 + k), floor), s = larger(1.0 - here, floor);
            found = found + load(score + k) * here - load(a + k) * t * logarithm(t);
            const Row weights = load(b + k);
            if (any(weights != row_of(0.0))) found = found - weights * s * logarithm(s);
        }
        return sum(found);
    }

    // The slope at x, and minus the second slopes.
    void differentiate() const {
        const Row floor = row_of(FLOOR);
        for (int64_t k = 0; k < padded; k += EIGHT) {
            const Row here = load(x + k), weights = load(a + k), others = load(b + k);
            const Row t = larger(here + load(c0 + k), floor), s = larger(1.0 - here, floor);
            Row rise = load(score + k) - weights * (logarithm(t) + 1.0), bend = weights / t;
            if (any(others != row_of(0.0))) {
                rise = rise + others * (logarithm(s) + 1.0);
                bend = bend + others / s;
            }
            store(slope + k, rise);
            store(curve + k, bend);
        }
    }

    // Write x from its atoms.
    void mix() {
        double total = 0.0;
        for (int64_t i = 0; i < live; ++i) total += weight[i];
        clear(x);
        for (int64_t i = 0; i < live; ++i) {
            weight[i] /= total;
            add(atoms[i], weight[i], x);
        }
        clear(away);
        height = height_at(0.0);
    }

    bool known(int64_t answer) const {
        for (int64_t i = first(); i < live; ++i)
            if (atoms[i] == answer) return true;
        return false;
    }

    // The answer that gains most at the slope, of those that are not known, or -1.
    int64_t price(double *most_gain) const {
        double here = 0.0;
        for (int64_t k = 0; k < size; ++k) here += slope[k] * x[k];
        int64_t best = -1;
        *most_gain = 0.0;
        for (int64_t answer = 0; answer < pool->count; ++answer) {
            const double found = dot(answer, slope) - here;
            if (found > *most_gain && !known(answer)) {
                best = answer;
                *most_gain = found;
            }
        }
        return best;
    }

    // A new atom, with the largest of some weights that makes the mixture better.
    void take_in(int64_t answer) {
        for (int64_t k = 0; k < padded; ++k) away[k] = -x[k];
        add(answer, 1.0, away);
        double share = SHARE;
        for (int64_t n = 0; n < HALVES && !(height_at(share) > height); ++n) share /= 2.0;
        for (int64_t i = 0; i < live; ++i) weight[i] *= 1.0 - share;
        weight[0] = larger(weight[0], LEAST);
        atoms[live] = answer;
        weight[live++] = share;
    }

    // The Hessian in the weights of all atoms but the pivot, whose weight is what is left.
    void reduce(int64_t pivot) const {
        for (int64_t i = first(); i < live; ++i) {
            clear(away);
            for (int64_t e = pool->start[atoms[i]]; e < pool->start[atoms[i] + 1]; ++e)
                away[pool->place[e]] = curve[pool->place[e]] * pool->amount[e];
            for (int64_t j = first(); j <= i; ++j) row(i)[j] = row(j)[i] = dot(atoms[j], away);
        }
        for (int64_t i = first(); i < live; ++i) step[i] = row(i)[pivot];
        const double whole = row(pivot)[pivot];
        for (int64_t i = first(); i < live; ++i)
            for (int64_t j = first(); j <= i; ++j) row(i)[j] += whole - step[i] - step[j];
    }

    void solve_back(int64_t end) const {
        for (int64_t i = end - 1; i >= first(); --i) {
            step[i] /= row(i)[i];
            for (int64_t j = first(); j < i; ++j) step[j] -= row(i)[j] * step[i];
        }
    }

    // Newton's step by Cholesky's factors, below the diagonal; the pivot's row is left out. Where
    // no room is left as atoms depend on each other, it is a direction along which nothing curves,
    // so that one of them leaves: then return true.
    bool solve(int64_t pivot) const {
        const int64_t from = first();
        for (int64_t i = from; i < live; ++i) {
            double *mine = row(i);
            if (i == pivot) {
                for (int64_t j = from; j < i; ++j) mine[j] = 0.0;
                step[i] = 0.0;
                mine[i] = 1.0;
                continue;
            }
            for (int64_t j = from; j < i; ++j) {
                const double *other = row(j);
                mine[j] = (mine[j] - inner(mine + from, other + from, j - from)) / other[j];
                if (j == pivot) mine[j] = 0.0;
            }
            const double rest = mine[i] - inner(mine + from, mine + from, i - from);
            const double least = DEPENDENT * __builtin_fabs(mine[i]);
            if (live == most && rest <= least) {
                for (int64_t j = from; j < live; ++j) step[j] = j < i ? mine[j] : 0.0;
                solve_back(i);
                step[i] = -1.0;
                return true;
            }
            mine[i] = __builtin_sqrt(larger(larger(rest, least), 1e-300));
            step[i] = (gain[i] - gain[pivot] - inner(mine + from, step + from, i - from)) / mine[i];
        }
        solve_back(live);
        return false;
    }

    // How much of the step leaves every view a share of what it is; a whole one at most.
    double reach_of_views() const {
        double far = 1.0;
        for (int64_t k = 0; k < size; ++k) {
            if (a[k] != 0.0 && away[k] < 0.0)
                far = smaller(far, BACK * larger(x[k] + c0[k], FLOOR) / -away[k]);
            if (b[k] != 0.0 && away[k] > 0.0)
                far = smaller(far, BACK * larger(1.0 - x[k], FLOOR) / away[k]);
        }
        return far;
    }

    // How much of the step leaves every weight positive, and the atom that it takes out, or -1.
    double reach_of_weights(double far, int64_t *leaver) const {
        *leaver = -1;
        for (int64_t i = first(); i < live; ++i) {
            const double left = weight[i] - (i == 0 ? LEAST : 0.0);
            if (step[i] < 0.0 && left <= far * -step[i]) {
                far = larger(left, 0.0) / -step[i];
                *leaver = i;
            }
        }
        return far;
    }

    // Write Newton's step of the weights and its direction of x; return what it promises. Weights
    // move against that of the heaviest atom, so that their sum stays.
    double find_step(bool *flat) const {
        differentiate();
        int64_t pivot = first();
        for (int64_t i = first(); i < live; ++i) {
            gain[i] = dot(atoms[i], slope);
            if (weight[i] > weight[pivot]) pivot = i;
        }
        reduce(pivot);
        *flat = solve(pivot);
        double rise = 0.0, rest = 0.0;
        for (int64_t i = first(); i < live; ++i)
            if (i != pivot) {
                rise += step[i] * (gain[i] - gain[pivot]);
                rest -= step[i];
            }
        step[pivot] = rest;
        const double sign = *flat && rise < 0.0 ? -1.0 : 1.0;
        clear(away);
        for (int64_t i = first(); i < live; ++i) {
            step[i] *= sign;
            add(atoms[i], step[i], away);
        }
        return *flat ? 0.0 : rise;
    }

    // Take one damped step; return what it promised, or infinity where an atom left.
    double move() {
        bool flat;
        int64_t leaver;
        const double rise = find_step(&flat);
        const double far = reach_of_weights(flat ? INF : reach_of_views(), &leaver);
        const double slack = ROUNDING * (1.0 + __builtin_fabs(height));
        double share = far, there = height_at(share);
        for (int64_t n = 1; !(there >= height + RISE * share * rise - slack); ++n) {
            if (n == HALVES) return 0.0;
            share /= 2.0;
            there = height_at(share);
        }
        height = there;
        for (int64_t i = first(); i < live; ++i) weight[i] += share * step[i];
        for (int64_t k = 0; k < padded; ++k) x[k] += share * away[k];
        if (leaver < 0 || share < far) return rise;
        if (leaver == 0) {
            weight[0] = LEAST;
            held = true;
        } else {
            --live;
            atoms[leaver] = atoms[live];
            weight[leaver] = weight[live];
        }
        return INF;
    }

    void run() {
        held = weight[0] <= LEAST;
        double promised = 0.0;
        for (int64_t turn = 0; turn < TURNS * most; ++turn) {
            mix();
            for (int64_t n = 0; n < NEWTON; ++n) {
                const double rise = move();
                if (rise <= larger(STILL * (1.0 + __builtin_fabs(height)), EARLY * promised)) break;
            }
            differentiate();
            double found;
            const int64_t best = price(&found);
            if (found > enough && live < most) {
                promised = found;
                if (best == 0)
                    held = false;
                else
                    take_in(best);
            } else if (promised > 0.0) {
                promised = 0.0;  // nothing is best before all that is in has come to rest
            } else {
                break;
            }
        }
    }
};

}  // namespace

status climb(const mixture_views *views, const answer_pool *pool, double enough,
             const double *score, const mixtures *rows) {
    Arena arena;
    Climb one{};
    one.pool = pool;
    one.enough = enough;
    one.size = views->size;
    one.padded = whole_eights(views->size);
    one.most = rows->most;
    double **arrays[] = {&one.a, &one.b,     &one.c0,    &one.score,
                         &one.x, &one.slope, &one.curve, &one.away};
    for (double **made : arrays) *made = arena.array<double>(one.padded, 0.0);
    one.hessian = arena.array<double>(one.most * one.most);
    one.step = arena.array<double>(one.most);
    one.gain = arena.array<double>(one.most);
    if (arena.failed) return NO_MEMORY;
    copy(one.a, views->a, one.size);
    copy(one.b, views->b, one.size);
    copy(one.c0, views->c0, one.size);
    for (int64_t m = 0; m < rows->count; ++m) {
        copy(one.score, score + m * one.size, one.size);
        one.atoms = rows->atoms + m * one.most;
        one.weight = rows->weight + m * one.most;
        one.live = rows->live[m];
        one.run();
        rows->live[m] = one.live;
        copy(rows->x + m * one.size, one.x, one.size);
        copy(rows->slope + m * one.size, one.slope, one.size);
    }
    return OK;
}
