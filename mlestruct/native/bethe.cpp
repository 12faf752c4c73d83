// Descent on the Bethe free energy of graphs of binary pairs: belief optimisation (Welling and Teh
// 2001). Marginals q = sigma(a) are the only unknowns, since the best table P of an edge, given its
// ends, is in closed form:
//
//     F = - sum theta q - sum W P11 + sum over edges of P log P + sum_i (1 - degree) (-H(q_i))
#include "bethe.h"

#include "lanes.h"

namespace {

using Graphs = bethe_graphs;
using State = bethe_state;

constexpr double CLIP = 500.0;      // logits beyond are probabilities without a float
constexpr double TINY = 1e-300;     // of a cell
constexpr double ENOUGH = 1e-4;     // share of the promised decrease that a step must keep
constexpr double FLAT = 0.9;        // share of a slope that may be left where F shows nothing
constexpr double SHORTEST = 1e-12;  // of a step
constexpr double NOISE = 1e-13;     // of F, below which its rounding hides a decrease

INLINE double clipped(double x, double most) { return smaller(larger(x, -most), most); }

// Eight pairs side by side. Each cell has full relative precision at any W: repelling pairs are
// attracting ones with an end flipped, and from there on every formula adds positive terms only.
// With alpha = e^|W| - 1 everything is divided by max(alpha, 1): c stands for 1, and s for alpha.
struct Pairs {
    Row c, s, p, p0, q, q0, cell[4];
    bool flipped[EIGHT];

    void couple(const double *W) {
        const Row w = load(W), size = larger(w, -w), e = exponential(-size), rest = 1.0 - e;
        const Row one = row_of(1.0);
        const Bits strong = rest > e;
        c = select(strong, e / rest, one);
        s = select(strong, one, rest / e);
        for (int k = 0; k < EIGHT; ++k) flipped[k] = W[k] < 0.0;
    }

    // Ends are those of attracting pairs already.
    void solve() {
        const Row d = s * select(p + q < row_of(1.0), p - q, q0 - p0);
        const Row R = square_root(c * (c + 2.0 * s * (p * q0 + q * p0)) + d * d);
        const Row both = 2.0 * (c + s);
        cell[0] = both * p * q / (c + s * (p + q) + R);
        cell[1] = select(c > d, 2.0 * c * p * q0 / (c - d + R), 0.5 * (R - c + d) / s);
        cell[2] = select(c > -d, 2.0 * c * q * p0 / (c + d + R), 0.5 * (R - c - d) / s);
        cell[3] = both * p0 * q0 / (c + s * (p0 + q0) + R);
    }
    // The place of a cell in the pair's own order.
    int place(int lane, int k) const { return flipped[lane] ? k ^ 1 : k; }
};

struct Descent {
    const Graphs &g;
    int64_t first, last;           // nodes of the example in hand
    double *q, *q0, *entropy;      // of nodes
    double *trial, *fresh, *near;  // a point that is tried and slopes there; slopes by logits
    double *width;                 // q (1 - q) there
    Pairs *pairs;                  // of the example

    Descent(const Graphs &graphs, Arena &arena) : g(graphs) {
        double **arrays[] = {&q, &q0, &entropy, &trial, &fresh, &near, &width};
        for (double **made : arrays) *made = arena.array<double>(g.nodes);
        int64_t most = 0;
        for (int64_t m = 0; m < g.count; ++m) {
            const int64_t edges = g.edge_start[m + 1] - g.edge_start[m];
            most = edges > most ? edges : most;
        }
        pairs = arena.array<Pairs>(whole_eights(most) / EIGHT);
    }

    // Take the example in hand; lanes beyond the last edge repeat it.
    void begin(int64_t m) {
        first = g.node_start[m], last = g.node_start[m + 1];
        const int64_t from = g.edge_start[m], end = g.edge_start[m + 1];
        double W[EIGHT];
        for (int64_t e = from; e < end; e += EIGHT) {
            for (int k = 0; k < EIGHT; ++k) W[k] = g.W[e + k < end ? e + k : end - 1];
            pairs[(e - from) / EIGHT].couple(W);
        }
    }

    // F, its slopes by marginals, and the widths q (1 - q).
    double energy(int64_t m, const double *a, double *slope) const {
        double total = -g.constant[m];
        for (int64_t i = first; i < last; ++i) {
            const double size = __builtin_fabs(a[i]), small = exponential(-size);
            const double likely = 1.0 / (1.0 + small), rare = small / (1.0 + small);
            const double log = logarithm_of_one_and(small);
            q[i] = a[i] > 0.0 ? likely : rare;
            q0[i] = a[i] > 0.0 ? rare : likely;
            entropy[i] = likely * log + rare * (log + size);
            slope[i] = a[i] - g.theta[i];
            width[i] = likely * rare;
            total -= g.theta[i] * q[i] + entropy[i];
        }
        const int64_t from = g.edge_start[m], end = g.edge_start[m + 1];
        for (int64_t e = from; e < end; e += EIGHT)
            total += add_pairs(pairs[(e - from) / EIGHT], e, end, a, slope);
        return total;
    }

    // Eight edges' share of F and of the slopes.
    double add_pairs(Pairs &at, int64_t e, int64_t end, const double *a, double *slope) const {
        double p[EIGHT], p0[EIGHT], r[EIGHT], r0[EIGHT], cell[4][EIGHT], log[4][EIGHT];
        const int count = static_cast<int>(end - e < EIGHT ? end - e : EIGHT);
        for (int k = 0; k < EIGHT; ++k) {
            const int64_t i = g.left[k < count ? e + k : e], j = g.right[k < count ? e + k : e];
            p[k] = q[i], p0[k] = q0[i];
            r[k] = at.flipped[k] ? q0[j] : q[j], r0[k] = at.flipped[k] ? q[j] : q0[j];
        }
        at.p = load(p), at.p0 = load(p0), at.q = load(r), at.q0 = load(r0);
        at.solve();
        for (int c = 0; c < 4; ++c) {
            store(cell[c], at.cell[c]);
            store(log[c], logarithm(larger(at.cell[c], row_of(TINY))));
        }
        double total = 0.0;
        for (int k = 0; k < count; ++k) {
            const int64_t i = g.left[e + k], j = g.right[e + k];
            const double none = log[at.place(k, 3)][k];
            for (int c = 0; c < 4; ++c) total += cell[c][k] * log[c][k];
            total += entropy[i] + entropy[j] - g.W[e + k] * cell[at.place(k, 0)][k];
            slope[i] += log[at.place(k, 1)][k] - none - a[i];
            slope[j] += log[at.place(k, 2)][k] - none - a[j];
        }
        return total;
    }

    // Slopes by logits of nodes that are not held: the largest, and what a step down promises.
    double pull(const double *slope, bool plain, double *promise) const {
        double most = 0.0;
        *promise = 0.0;
        for (int64_t i = first; i < last; ++i) {
            near[i] = g.held[i] ? 0.0 : width[i] * slope[i];
            most = larger(most, __builtin_fabs(near[i]));
            *promise += near[i] * (plain ? near[i] : slope[i]);
        }
        return most;
    }

    // The direction is -dF/dq: the gradient by logits divided by q(1 - q), so that a marginal close
    // to 0 or 1 moves as far as any other, and alone arrives in one step of length 1. A plain one
    // is not divided, and no logit moves by more than 1 in the first: further out all slopes
    // vanish. Steps are shortened until F falls as far as its slope promises. Return whether the
    // example goes on.
    bool run(int64_t m, int64_t steps, double tol, bool plain, int64_t turns, const State &state) {
        double *a = state.a, *slope = state.slope, &length = state.length[m], promise;
        double &F = state.after[m];
        begin(m);
        double here = energy(m, a, slope);
        state.residual[m] = pull(slope, plain, &promise);
        if (length == 0.0) {
            F = state.before[m] = here;
            length = plain ? 1.0 / larger(state.residual[m], TINY) : 1.0;
        }
        for (int64_t turn = 0; turn < turns; ++turn) {
            // close to 0 and 1 every slope by a logit is small: a start there is no end
            const int64_t taken = state.taken[m];
            if (taken >= steps || (taken > 0 && state.residual[m] <= tol) || length < SHORTEST)
                return false;
            double turned = 0.0;
            for (int64_t i = first; i < last; ++i) {
                const double down = g.held[i] ? 0.0 : plain ? near[i] : slope[i];
                trial[i] = clipped(a[i] - length * down, CLIP);
            }
            const double reached = energy(m, trial, fresh);
            for (int64_t i = first; i < last; ++i)
                if (!g.held[i]) turned += (plain ? near[i] : slope[i]) * width[i] * fresh[i];
            // where a decrease is too little for F to show, ask whether the slope has turned
            const bool shows = length * promise > NOISE * __builtin_fabs(F);
            if (!(shows ? reached <= F - ENOUGH * length * promise : turned >= -FLAT * promise)) {
                length *= 0.5;
                continue;
            }
            // aim where a straight slope would be flat
            const double aim = promise > turned ? promise / (promise - turned) : INF;
            length *= smaller(larger(aim, 0.25), 4.0);
            F = smaller(F, reached);
            state.taken[m] += 1;
            for (int64_t i = first; i < last; ++i) {
                a[i] = trial[i];
                slope[i] = fresh[i];
            }
            state.residual[m] = pull(slope, plain, &promise);
        }
        return true;
    }
};

}  // namespace

int64_t descend_bethe(const Graphs *graphs, int64_t steps, double tol, bool plain, int64_t turns,
                      const State *state) {
    Arena arena;
    Descent descent(*graphs, arena);
    if (arena.failed) return NO_MEMORY;
    int64_t going = 0;
    for (int64_t m = 0; m < graphs->count; ++m)
        going += descent.run(m, steps, tol, plain, turns, *state);
    return going;
}

void fill_pairs(const pair_ends *ends, double *cells) {
    const double *given[] = {ends->p, ends->p0, ends->q, ends->q0};
    double W[EIGHT], end[4][EIGHT], found[4][EIGHT];
    for (int64_t e = 0; e < ends->count; e += EIGHT) {
        Pairs at;
        const int64_t count = ends->count - e < EIGHT ? ends->count - e : EIGHT;
        for (int64_t k = 0; k < EIGHT; ++k) {
            const int64_t from = e + (k < count ? k : 0);
            W[k] = ends->W[from];
            for (int c = 0; c < 4; ++c) end[c ^ (W[k] < 0.0 && c > 1)][k] = given[c][from];
        }
        at.couple(W);
        at.p = load(end[0]), at.p0 = load(end[1]), at.q = load(end[2]), at.q0 = load(end[3]);
        at.solve();
        for (int c = 0; c < 4; ++c) store(found[c], at.cell[c]);
        for (int k = 0; k < count; ++k)
            for (int c = 0; c < 4; ++c) cells[c * ends->count + e + k] = found[at.place(k, c)][k];
    }
}
