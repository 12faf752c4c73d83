// Convex inference and its derivatives by linear systems in which tables are eliminated.
#include "condensed.h"

#include "lanes.h"

namespace {

using Graph = condensed_graph;
using Examples = condensed_examples;

constexpr int64_t EARLY = -1, MAJORISE = 0, NEWTON = 1, FOLLOW = 2, DONE = 3;

constexpr double NEAR = 0.05;      // an entry's last move, below which Newton's method takes over
constexpr int64_t TURN = 20;       // majorising steps before it does in any case
constexpr int64_t PATIENCE = 4;    // Newton steps that come no closer, before it is given up
constexpr double STEADY = 1e-4;    // a relative move at the path's end: the next is its square
constexpr double PROVEN = 1e-7;    // of a value's size: what may be missing
constexpr double ROUNDING = 1e-5;  // Newton steps below this are squared by the next
constexpr double FAINT = 1e-8;     // marginals below this are only known absolutely
constexpr double LEAST = 1e-10;    // the last mu
constexpr double BACK = 0.01;      // of the way to the path's start, from another optimum
constexpr double SHORT = 0.99;     // of the way to the nearest entry that would become zero
constexpr double TINY = 1e-300;    // logarithms are taken of no less
constexpr int64_t TURNS = 2000;    // of conjugate gradients
constexpr double PRECISION = 1e-12;

INLINE double size_of(double x) { return __builtin_fabs(x); }
INLINE void add(double *to, Row x) { store(to, load(to) + x); }
INLINE void take(double *from, Row x) { store(from, load(from) - x); }

// Eight symmetric systems of one pattern side by side, so that one walk through it serves all:
// L D L' with D diagonal, or conjugate gradients scaled by the diagonal where that costs too much.
// Lanes that serve no example hold the identity.
struct System {
    const Graph &g;
    const int64_t n;
    double *values, *right;  // the right side becomes the unknowns
    int64_t *under = nullptr, *filled = nullptr;
    double *lower = nullptr, *pivot = nullptr, *row = nullptr;
    double *left = nullptr, *found = nullptr, *product = nullptr, *towards = nullptr;
    Row least;  // pivot or curvature of every lane; not definite where that is not positive

    System(const Graph &graph, Arena &arena) : g(graph), n(graph.free[graph.nodes]) {
        values = arena.array<double>(g.start[n] * EIGHT, 0.0);
        right = arena.array<double>(n * EIGHT, 0.0);
        if (g.direct) {
            under = arena.array<int64_t>(g.column[n]);
            filled = arena.array<int64_t>(n);
            lower = arena.array<double>(g.column[n] * EIGHT);
            pivot = arena.array<double>(n * EIGHT);
            row = arena.array<double>(n * EIGHT);
        } else {
            left = arena.array<double>(n * EIGHT);
            found = arena.array<double>(n * EIGHT);
            product = arena.array<double>(n * EIGHT);
            towards = arena.array<double>(n * EIGHT);
        }
        for (int64_t k = 0; values && k < n; ++k) store(diagonal(k), row_of(1.0));
    }

    double *diagonal(int64_t k) const { return values + (g.start[k + 1] - 1) * EIGHT; }

    // Solve every lane's system in place.
    void answer() {
        if (!g.direct) return iterate();
        factor();
        solve();
    }

    // values = L D L', row by row.
    void factor() {
        least = row_of(INF);
        for (int64_t k = 0; k < n * EIGHT; ++k) row[k] = 0.0;
        for (int64_t k = 0; k < n; ++k) filled[k] = g.column[k];
        for (int64_t k = 0; k < n; ++k) {
            for (int64_t p = g.start[k]; p < g.start[k + 1]; ++p)
                store(row + g.row[p] * EIGHT, load(values + p * EIGHT));
            Row own = load(row + k * EIGHT);
            store(row + k * EIGHT, row_of(0.0));
            for (int64_t q = g.reach_start[k]; q < g.reach_start[k + 1]; ++q) {
                const int64_t i = g.reach[q], end = filled[i]++;
                const Row x = load(row + i * EIGHT);
                for (int64_t p = g.column[i]; p < end; ++p)
                    take(row + under[p] * EIGHT, load(lower + p * EIGHT) * x);
                const Row share = x / load(pivot + i * EIGHT);
                own = own - share * x;
                store(lower + end * EIGHT, share);
                store(row + i * EIGHT, row_of(0.0));
                under[end] = k;
            }
            store(pivot + k * EIGHT, own);
            least = smaller(least, own);
        }
    }

    void solve() {
        for (int64_t k = 0; k < n; ++k) {
            const Row x = load(right + k * EIGHT);
            for (int64_t p = g.column[k]; p < g.column[k + 1]; ++p)
                take(right + under[p] * EIGHT, load(lower + p * EIGHT) * x);
        }
        for (int64_t k = n - 1; k >= 0; --k) {
            Row x = load(right + k * EIGHT) / load(pivot + k * EIGHT);
            for (int64_t p = g.column[k]; p < g.column[k + 1]; ++p)
                x = x - load(lower + p * EIGHT) * load(right + under[p] * EIGHT);
            store(right + k * EIGHT, x);
        }
    }

    void multiply(const double *x, double *out) const {
        for (int64_t k = 0; k < n * EIGHT; ++k) out[k] = 0.0;
        for (int64_t k = 0; k < n; ++k) {
            for (int64_t p = g.start[k]; p < g.start[k + 1]; ++p) {
                const int64_t i = g.row[p];
                const Row value = load(values + p * EIGHT);
                add(out + i * EIGHT, value * load(x + k * EIGHT));
                if (i != k) add(out + k * EIGHT, value * load(x + i * EIGHT));
            }
        }
    }

    // Conjugate gradients; a lane rests once it is precise.
    void iterate() {
        const Row zero = row_of(0.0);
        least = row_of(INF);
        Row length = zero;
        for (int64_t k = 0; k < n; ++k) {
            const Row x = load(right + k * EIGHT), scaled = x / load(diagonal(k));
            store(left + k * EIGHT, x);
            store(found + k * EIGHT, zero);
            store(towards + k * EIGHT, scaled);
            length = length + x * scaled;
        }
        const Row target = PRECISION * PRECISION * length;
        for (int64_t turn = 0; turn < TURNS && any(length > target); ++turn) {
            multiply(towards, product);
            Row curvature = zero, fresh = zero;
            for (int64_t k = 0; k < n; ++k)
                curvature = curvature + load(towards + k * EIGHT) * load(product + k * EIGHT);
            const Bits moves = length > target;
            least = select(moves, smaller(least, curvature), least);
            const Row share = select(moves, length / curvature, zero);
            for (int64_t k = 0; k < n; ++k) {
                add(found + k * EIGHT, share * load(towards + k * EIGHT));
                const Row x = load(left + k * EIGHT) - share * load(product + k * EIGHT);
                const Row scaled = x / load(diagonal(k));
                store(left + k * EIGHT, x);
                store(product + k * EIGHT, scaled);
                fresh = fresh + x * scaled;
            }
            const Row turned = select(moves, fresh / length, zero);
            length = select(moves, fresh, length);
            for (int64_t k = 0; k < n; ++k)
                store(towards + k * EIGHT,
                      load(product + k * EIGHT) + turned * load(towards + k * EIGHT));
        }
        std::memcpy(right, found, static_cast<uint64_t>(n * EIGHT) * sizeof(double));
    }
};

// One example's system: min 1/2 sum of delta^2 / P + slope . delta over changes delta of marginals
// that restore A (b + delta) = d.
//
// P = b / w is the inverse curvature of sum w b log b: `inverse` of the tables' entries, `curve`
// 1 / P of the variables' states. With the gradient of the free energy for slope, delta is Newton's
// step; with dL/db at an optimum it is dL/dv. Variables may have P < 0 (counting numbers of the
// tree-reweighted kind) as long as the whole is convex on A delta = 0: the system tells. Each
// variable's most likely state is the one that follows from the others: with a rare one in its
// place small differences of large numbers would decide.
struct Step {
    const Graph *g;
    System *system;
    int64_t lane;
    double *squares, *lift;   // C^-1 of every factor, and h, then z
    int64_t *likely, *place;  // a variable's state that follows; a slot's states' rows
    double *rise;             // of the prices of every factor's rows
    double *price;            // of every slot's states: A' price is the slope where the step led
    double *total;            // of every factor's total
    double *inverse, *curve, *slope, *delta;

    Step() = default;
    Step(System &all, int64_t at, Arena &arena) : g(&all.g), system(&all), lane(at) {
        const int64_t rows = g->row_start[g->factors], size = g->table_start[g->factors];
        const int64_t states = g->slot_start[g->scope_start[g->factors]];
        squares = arena.array<double>(g->square[g->factors]);
        lift = arena.array<double>(rows);
        likely = arena.array<int64_t>(g->nodes);
        place = arena.array<int64_t>(states);
        rise = arena.array<double>(rows);
        price = arena.array<double>(states, 0.0);
        total = arena.array<double>(g->factors, 0.0);
        inverse = arena.array<double>(size);
        curve = arena.array<double>(g->table_start[0]);
        slope = arena.array<double>(size);
        delta = arena.array<double>(size);
    }

    double &value(int64_t k) const { return system->values[k * EIGHT + lane]; }
    double &right(int64_t k) const { return system->right[k * EIGHT + lane]; }
    int64_t slots(int64_t f) const { return g->scope_start[f + 1] - g->scope_start[f]; }
    int64_t rows(int64_t f) const { return g->row_start[f + 1] - g->row_start[f]; }

    // Write the example's system into its lane.
    void load(const double *b) const {
        for (int64_t k = 0; k < g->start[system->n]; ++k) value(k) = 0.0;
        add_variables(b);
        number_rows();
        eliminate_tables(b);
        spread();
    }

    // What variables' own entropies add to the system->
    void add_variables(const double *b) const {
        for (int64_t i = 0; i < g->nodes; ++i) {
            const int64_t first = g->node_start[i], last = g->node_start[i + 1];
            const int64_t count = g->free[i + 1] - g->free[i];
            int64_t best = first;
            double lack = 1.0;
            for (int64_t k = first; k < last; ++k) {
                lack -= b[k];
                best = b[k] > b[best] ? k : best;
            }
            likely[i] = best - first;
            for (int64_t p = 0; p < count; ++p) {
                const int64_t k = first + p + (p >= likely[i]);
                const double pull = slope[k] - slope[best] - curve[best] * lack;
                right(g->position[g->free[i] + p]) = -pull;
                for (int64_t q = p; q < count; ++q)
                    value(g->node_map[g->node_at[i] + p * count + q]) +=
                        curve[best] + (p == q ? curve[k] : 0.0);
            }
        }
    }

    // A factor's row for every state of its slots, after the total's; -1 for what is left out.
    void number_rows() const {
        for (int64_t f = 0; f < g->factors; ++f) {
            int64_t row = 1;
            for (int64_t s = g->scope_start[f]; s < g->scope_start[f + 1]; ++s)
                for (int64_t k = g->slot_start[s]; k < g->slot_start[s + 1]; ++k)
                    place[k] = k - g->slot_start[s] == likely[g->scope[s]] ? -1 : row++;
        }
    }

    // C^-1 of every factor with C = M P M', and h = what the table's sums lack + M P slope.
    void eliminate_tables(const double *b) const {
        for (int64_t k = 0; k < g->square[g->factors]; ++k) squares[k] = 0.0;
        for (int64_t k = 0; k < g->row_start[g->factors]; ++k) lift[k] = 0.0;
        add_demand(b);
        for (int64_t f = 0; f < g->factors; ++f) {
            double *C = squares + g->square[f], *h = lift + g->row_start[f];
            const int64_t size = rows(f), order = slots(f);
            const int64_t *state = g->entry + g->entry_at[f];
            double mass = 0.0, all = 1.0;
            for (int64_t e = g->table_start[f]; e < g->table_start[f + 1]; ++e, state += order) {
                const double weight = inverse[e], pull = weight * slope[e] - b[e];
                mass += weight;
                all += pull;
                for (int64_t s = 0; s < order; ++s) {
                    const int64_t row = place[state[s]];
                    if (row < 0) continue;
                    h[row] += pull;
                    C[row * size + row] += weight;
                    for (int64_t r = 0; r < s; ++r)
                        if (place[state[r]] >= 0) C[row * size + place[state[r]]] += weight;
                }
            }
            h[0] = all, C[0] = mass;
            for (int64_t row = 1; row < size; ++row)
                C[row * size] = C[row * size + row];  // all of it within the total
            invert(C, size);
        }
    }

    // Add what variables' entries ask of every factor's rows, its total aside.
    void add_demand(const double *nodes) const {
        for (int64_t f = 0; f < g->factors; ++f)
            for (int64_t s = g->scope_start[f]; s < g->scope_start[f + 1]; ++s) {
                const double *own = nodes + g->node_start[g->scope[s]];
                for (int64_t k = g->slot_start[s]; k < g->slot_start[s + 1]; ++k, ++own)
                    if (place[k] >= 0) lift[g->row_start[f] + place[k]] += *own;
            }
    }

    // A small positive matrix, by its lower triangle, becomes its inverse (Gauss-Jordan).
    static void invert(double *C, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < i; ++j) C[j * n + i] = C[i * n + j];
        for (int64_t k = 0; k < n; ++k) {
            double *own = C + k * n;
            const double pivot = 1.0 / own[k];
            own[k] = 1.0;
            for (int64_t j = 0; j < n; ++j) own[j] *= pivot;
            for (int64_t i = 0; i < n; ++i) {
                if (i == k) continue;
                double *row = C + i * n;
                const double share = row[k];
                row[k] = 0.0;
                for (int64_t j = 0; j < n; ++j) row[j] -= share * own[j];
            }
        }
    }

    // rise = C^-1 h of one factor.
    void price_rows(int64_t f) const {
        const double *C = squares + g->square[f], *h = lift + g->row_start[f];
        const int64_t n = rows(f);
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0.0;
            for (int64_t j = 0; j < n; ++j) sum += C[i * n + j] * h[j];
            rise[g->row_start[f] + i] = sum;
        }
    }

    // Every table's energy as one of its variables' unknowns: z = E x + h, 1/2 z' C^-1 z.
    void spread() const {
        for (int64_t f = 0; f < g->factors; ++f) {
            price_rows(f);
            const double *C = squares + g->square[f], *own_rise = rise + g->row_start[f];
            const int64_t first = g->unknown_at[f], last = g->unknown_at[f + 1], n = rows(f);
            const int64_t *map = g->factor_map + g->factor_at[f];
            for (int64_t p = first; p < last; ++p, map += last - first) {
                const int64_t own = g->unknown_row[p];
                right(g->unknown[p]) -= own_rise[own];
                for (int64_t q = p; q < last; ++q)
                    value(map[q - first]) += C[own * n + g->unknown_row[q]];
            }
        }
    }

    // The change of every coordinate from the unknowns; prices rise to where it leads.
    void unload(const double *b) const {
        change_variables(b);
        add_demand(delta);  // lift is z from here on
        for (int64_t f = 0; f < g->factors; ++f) {
            price_rows(f);
            const double *own = rise + g->row_start[f];
            const int64_t order = slots(f), *state = g->entry + g->entry_at[f];
            for (int64_t e = g->table_start[f]; e < g->table_start[f + 1]; ++e, state += order) {
                double sum = own[0] - slope[e];
                for (int64_t s = 0; s < order; ++s)
                    if (place[state[s]] >= 0) sum += own[place[state[s]]];
                delta[e] = inverse[e] * sum;
            }
            total[f] += own[0];
            for (int64_t s = g->scope_start[f]; s < g->scope_start[f + 1]; ++s)
                for (int64_t k = g->slot_start[s]; k < g->slot_start[s + 1]; ++k)
                    if (place[k] >= 0) price[k] += own[place[k]];
        }
    }

    // Variables' part of the change; those that are not free stay.
    void change_variables(const double *b) const {
        for (int64_t i = 0; i < g->nodes; ++i) {
            const int64_t first = g->node_start[i], count = g->free[i + 1] - g->free[i];
            double rest = 1.0;
            for (int64_t k = first; k < g->node_start[i + 1]; ++k) {
                rest -= b[k];
                delta[k] = 0.0;
            }
            for (int64_t p = 0; p < count; ++p) {
                const double step = right(g->position[g->free[i] + p]);
                delta[first + p + (p >= likely[i])] = step;
                rest -= step;
            }
            delta[first + likely[i]] = count > 0 ? rest : 0.0;
        }
    }

    // The slope less A' price in its place: steps are the same, and round by what is left of it.
    void charge() const {
        for (int64_t f = 0; f < g->factors; ++f) {
            const int64_t order = slots(f), *state = g->entry + g->entry_at[f];
            for (int64_t e = g->table_start[f]; e < g->table_start[f + 1]; ++e, state += order) {
                slope[e] -= total[f];
                for (int64_t s = 0; s < order; ++s) slope[e] -= price[state[s]];
            }
        }
        for (int64_t s = 0; s < g->scope_start[g->factors]; ++s) {
            double *own = slope + g->node_start[g->scope[s]];
            for (int64_t k = g->slot_start[s]; k < g->slot_start[s + 1]; ++k) *own++ += price[k];
        }
    }
};

// out = log b + 1
void log_and_one(const double *b, int64_t count, double *out) {
    int64_t k = 0;
    for (; k + EIGHT <= count; k += EIGHT)
        store(out + k, logarithm(larger(load(b + k), row_of(TINY))) + 1.0);
    for (; k < count; ++k) out[k] = logarithm(larger(b[k], TINY)) + 1.0;
}

// One example on its way: majorisation, then Newton's method, and the path of interior points where
// that comes no closer, or to no optimum. All three are steps of one kind of system->
struct Descent {
    const Graph *g;
    Step step;
    int64_t nodes, size;
    const double *score, *weight;
    double *b, *slack, *gap;
    int64_t phase;
    double *clamps, *off;
    double tol, best = INF, mu = LEAST;  // best: the smallest of Newton's moves
    int64_t since = 0;                   // steps in this phase, or since Newton's last halved

    Descent() = default;
    Descent(System &system, const Examples &all, int64_t lane, double precision, Arena &arena)
        : g(&system.g), step(system, lane, arena), tol(precision) {
        nodes = g->table_start[0];
        size = g->table_start[g->factors];
        score = all.score + lane * size, weight = all.weight + lane * size;
        b = all.b + lane * size, slack = all.slack + lane * size;
        gap = all.gap + lane;
        phase = all.phase[lane];
        clamps = arena.array<double>(size, 1.0);
        off = arena.array<double>(states());
    }

    int64_t states() const { return g->slot_start[g->scope_start[g->factors]]; }

    // The slope and curvature of F; the majoriser has twice that, and none where F is concave.
    void find_slopes() const {
        const double scale = phase <= MAJORISE ? 2.0 : 1.0;
        log_and_one(b, size, step.slope);
        for (int64_t k = 0; k < size; ++k) {
            step.slope[k] = weight[k] * step.slope[k] - score[k];
            double curved = scale * weight[k];
            if (phase == FOLLOW) {
                step.slope[k] -= mu / b[k];
                curved += slack[k];
            } else if (phase <= MAJORISE && k < nodes) {
                curved = larger(curved, 0.0);
            }
            step.inverse[k] = b[k] / curved;
            if (k < nodes) step.curve[k] = curved / b[k];
        }
    }

    // Write this step's system into the example's lane.
    void prepare() const {
        find_slopes();
        step.charge();
        step.load(b);
    }

    // Take the step, and go on to the phase it leads to.
    void advance(double least) {
        step.unload(b);
        since += 1;
        if (phase <= MAJORISE) {
            const double far = clamp();
            if (phase == MAJORISE && (far <= NEAR || since >= TURN)) phase = NEWTON, since = 0;
            return;
        }
        if (phase == FOLLOW) {
            const double moved = follow();
            if (mu == LEAST && moved <= STEADY) finish();
            return;
        }
        const double moved = newton();
        bool lost = !(least > 0.0) || !(moved < 1e6);
        if (converged(moved)) {
            finish();
            lost = !(*gap <= PROVEN);
        }
        if (moved < 0.5 * best) best = moved, since = 0;
        if (lost || (phase != DONE && since >= PATIENCE)) {
            phase = FOLLOW;
            for (int64_t k = 0; k < states(); ++k) step.price[k] = 0;
            for (int64_t f = 0; f < g->factors; ++f) step.total[f] = 0.0;
            centre(1.0);
        }
    }

    void finish() {
        *gap = missing();
        phase = DONE;
    }

    // A majorising step (Domke 2009, algorithm 1), by b log b <= b (log b0 - 1) + b^2 / b0; how far
    // an entry moved at most. One that would not stay positive becomes 1 / (10 c)^2, where c counts
    // how often that entry did: 1, 2, ...
    double clamp() const {
        double far = 0.0;
        for (int64_t k = 0; k < size; ++k) {
            double fresh = b[k] + step.delta[k];
            if (!(fresh > 0.0)) {
                const double c = 10.0 * clamps[k];
                fresh = 1.0 / (c * c);
                clamps[k] += 1.0;
            }
            far = larger(far, size_of(fresh - b[k]));
            b[k] = fresh;
        }
        return far;
    }

    // Newton's step; the largest relative move. It adds to entries that grow and multiplies those
    // that shrink by exp(delta / b), which lands each table entry where the prices of its sums put
    // it.
    double newton() const {
        double largest = 0.0;
        for (int64_t k = 0; k < size; ++k) {
            const double change = step.delta[k], share = change / b[k];
            const double move = k < nodes ? size_of(change) / larger(b[k], FAINT) : size_of(share);
            if (!(move <= largest)) largest = move == move ? move : INF;
            b[k] = share > 0.0 ? b[k] + change : larger(b[k] * exponential(share), 1e-200);
        }
        return largest;
    }

    // Whether the next step, which Newton's convergence foretells, would be below `tol`.
    bool converged(double moved) const {
        if (moved <= tol) return true;
        const double ratio = moved / best;
        return moved <= ROUNDING && best < INF && moved * (ratio * ratio) <= tol;
    }

    // Go `back` so much of the way to the path's start: uniform tables, and variables that stay.
    // The path is that of F(b) - mu sum log b, whose optima have slacks mu / b (primal-dual
    // interior points). It ends at mu = LEAST: that times the number of entries is all that is
    // missing there.
    void centre(double back) {
        for (int64_t i = 0; i < g->nodes; ++i)
            if (g->free[i + 1] > g->free[i]) level(g->node_start[i], g->node_start[i + 1], back);
        for (int64_t f = 0; f < g->factors; ++f)
            level(g->table_start[f], g->table_start[f + 1], back);
        mu = 0.0;
        for (int64_t k = 0; k < size; ++k) mu += size_of(score[k]);
        mu = back * larger(1.0, mu / static_cast<double>(size));
        for (int64_t k = 0; k < size; ++k) slack[k] = mu / b[k];
    }

    void level(int64_t first, int64_t last, double back) const {
        for (int64_t k = first; k < last; ++k) {
            const double held = back < 1.0 ? (1.0 - back) * b[k] : 0.0;  // b may be anything else
            b[k] = held + back / static_cast<double>(last - first);
        }
    }

    // A step towards the path's point at mu; the largest relative move.
    double follow() {
        double near = 1.0, far = 1.0, moved = 0.0, mass = 0.0;
        for (int64_t k = 0; k < size; ++k) {
            const double share = step.delta[k] / b[k];
            const double change = mu / (b[k] * slack[k]) - 1.0 - share;  // the slack's, relative
            moved = larger(moved, size_of(share));
            if (-share > SHORT) near = smaller(near, SHORT / -share);
            if (-change > SHORT) far = smaller(far, SHORT / -change);
        }
        for (int64_t k = 0; k < size; ++k) {
            slack[k] += far * (mu / b[k] - slack[k] * (1.0 + step.delta[k] / b[k]));
            b[k] += near * step.delta[k];
            mass += b[k] * slack[k];
        }
        const double least = smaller(near, far), root = __builtin_sqrt(mu);
        const double shrink = least > 0.9 ? smaller(0.1, root) : least > 0.5 ? 0.5 : 1.0;
        mu = larger(LEAST, shrink * mass / static_cast<double>(size));
        return moved;
    }

    // In units of a value's size: a nat per table, and its scores'.
    double missing() const {
        double all = static_cast<double>(g->nodes + 1 + g->factors + 1);
        for (int64_t k = 0; k < size; ++k) all += size_of(score[k] * b[k]);
        return shortfall() / all;
    }

    // How far b is from the optimum at most, by the prices of its last step. F is convex on the
    // local polytope: F(b) - F(s) <= <F'(b), b - s>, and any prices y of the equalities A s = d
    // leave a maximum per table, the sum over tables of max r - <r, b>, less <y, d - A b>, where
    // r = A' y - F'(b). What rows are off counts at their price. No weight need be positive: the
    // whole is convex.
    double shortfall() const {
        log_and_one(b, size, step.slope);
        for (int64_t k = 0; k < size; ++k) step.slope[k] = weight[k] * step.slope[k] - score[k];
        step.charge();
        double missed = 0.0;
        for (int64_t i = 0; i < g->nodes; ++i)
            if (g->free[i + 1] > g->free[i])
                missed += excess(g->node_start[i], g->node_start[i + 1]);
        for (int64_t f = 0; f < g->factors; ++f) {
            const int64_t first = g->table_start[f], last = g->table_start[f + 1];
            double mass = 0.0;
            for (int64_t e = first; e < last; ++e) mass += b[e];
            missed += excess(first, last);
            missed += size_of(step.total[f] * (mass - 1.0));
        }
        return missed + unpaid();
    }

    // The most that a table's mass could still gain.
    double excess(int64_t first, int64_t last) const {
        const double *left = step.slope;
        double least = left[first], mean = 0.0;
        for (int64_t k = first; k < last; ++k) {
            least = smaller(least, left[k]);
            mean += b[k] * left[k];
        }
        return mean - least;
    }

    // What tables' sums differ from variables' marginals, at its price.
    double unpaid() const {
        for (int64_t k = 0; k < states(); ++k) off[k] = 0.0;
        for (int64_t f = 0; f < g->factors; ++f) {
            const int64_t order = step.slots(f), *state = g->entry + g->entry_at[f];
            for (int64_t e = g->table_start[f]; e < g->table_start[f + 1]; ++e, state += order)
                for (int64_t s = 0; s < order; ++s) off[state[s]] += b[e];
        }
        double due = 0.0;
        for (int64_t s = 0; s < g->scope_start[g->factors]; ++s) {
            const double *own = b + g->node_start[g->scope[s]];
            for (int64_t k = g->slot_start[s]; k < g->slot_start[s + 1]; ++k)
                due += size_of(step.price[k] * (off[k] - *own++));
        }
        return due;
    }
};

}  // namespace

status descend_condensed(const Graph *graph, const Examples *examples, int64_t limit, double tol) {
    Arena arena;
    System system(*graph, arena);
    Descent each[EIGHT];
    const int64_t count = examples->count < EIGHT ? examples->count : EIGHT;
    for (int64_t m = 0; m < count; ++m) each[m] = Descent(system, *examples, m, tol, arena);
    if (arena.failed) return NO_MEMORY;
    int64_t going = 0;
    for (int64_t m = 0; m < count; ++m) {
        if (each[m].phase == FOLLOW) each[m].centre(BACK);
        going += each[m].phase != DONE;
    }
    for (int64_t turn = 0; turn < limit && going; ++turn) {
        for (int64_t m = 0; m < count; ++m)
            if (each[m].phase != DONE) each[m].prepare();
        system.answer();
        for (int64_t m = 0; m < count; ++m) {
            if (each[m].phase == DONE) continue;
            each[m].advance(system.least[static_cast<int>(m)]);
            going -= each[m].phase == DONE;
        }
    }
    for (int64_t m = 0; m < count; ++m)
        if (each[m].phase != DONE) each[m].finish();
    return OK;
}

status respond_condensed(const Graph *graph, int64_t count, const double *weight, const double *b,
                         const double *slope, double *out) {
    Arena arena;
    System system(*graph, arena);
    Step each[EIGHT];
    const int64_t size = graph->table_start[graph->factors];
    count = count < EIGHT ? count : EIGHT;
    for (int64_t m = 0; m < count; ++m) each[m] = Step(system, m, arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < count; ++m) {
        const int64_t first = m * size;
        for (int64_t k = 0; k < size; ++k) {
            each[m].inverse[k] = b[first + k] / weight[first + k];
            each[m].slope[k] = slope[first + k] / b[first + k];
        }
        for (int64_t k = 0; k < graph->table_start[0]; ++k)
            each[m].curve[k] = weight[first + k] / b[first + k];
        each[m].load(b + first);
    }
    system.answer();
    for (int64_t m = 0; m < count; ++m) {
        each[m].unload(b + m * size);
        std::memcpy(out + m * size, each[m].delta, static_cast<uint64_t>(size) * sizeof(double));
    }
    return OK;
}
