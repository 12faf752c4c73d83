// Steps of convex inference by linear systems in which tables are eliminated.
//
//     min 1/2 sum curve delta^2 + slope . delta    over delta with  A (b + delta) = d
//
// where A are the constraints of the local polytope. With the gradient of a free energy for slope
// the solution is Newton's step; with dL/db at an optimum b(v) it is dL/dv. Variables may have
// negative curvature (counting numbers of the tree-reweighted kind) as long as the whole is convex
// on A delta = 0: the pivots tell.
#include "condensed.h"

#include "lanes.h"

namespace {

using Graph = condensed_graph;

// A symmetric system, as L D L' with D diagonal.
struct System {
    const Graph &g;
    const int64_t n, fill;
    double *values, *right;  // the right side becomes the unknowns
    int64_t *under, *filled;
    double *lower, *pivot, *row;

    System(const Graph &graph, Arena &arena)
        : g(graph), n(graph.unknowns), fill(graph.reach_start[graph.unknowns]) {
        values = arena.array<double>(fill + n);
        right = arena.array<double>(n);
        under = arena.array<int64_t>(fill);
        filled = arena.array<int64_t>(n);
        lower = arena.array<double>(fill);
        pivot = arena.array<double>(n);
        row = arena.array<double>(n);
    }

    void clear() const {
        for (int64_t k = 0; k < fill + n; ++k) values[k] = 0.0;
        for (int64_t k = 0; k < n; ++k) right[k] = 0.0;
    }

    // Solve the system in place, and return its smallest pivot.
    double solve() const {
        const double least = factor();
        for (int64_t k = 0; k < n; ++k)
            for (int64_t p = g.column[k]; p < g.column[k + 1]; ++p)
                right[under[p]] -= lower[p] * right[k];
        for (int64_t k = n - 1; k >= 0; --k) {
            double x = right[k] / pivot[k];
            for (int64_t p = g.column[k]; p < g.column[k + 1]; ++p) x -= lower[p] * right[under[p]];
            right[k] = x;
        }
        return least;
    }

  private:
    double factor() const {
        double least = INF;
        for (int64_t k = 0; k < n; ++k) filled[k] = g.column[k];
        for (int64_t k = 0; k < n; ++k) {
            for (int64_t q = g.reach_start[k]; q < g.reach_start[k + 1]; ++q)
                row[g.reach[q]] = values[q];
            double own = values[fill + k];
            for (int64_t q = g.reach_start[k]; q < g.reach_start[k + 1]; ++q) {
                const int64_t i = g.reach[q], end = filled[i]++;
                const double x = row[i];
                for (int64_t p = g.column[i]; p < end; ++p) row[under[p]] -= lower[p] * x;
                lower[end] = x / pivot[i];
                under[end] = k;
                own -= lower[end] * x;
            }
            pivot[k] = own;
            least = own < least ? own : least;
        }
        return least;
    }
};

// A factor, and where its numbers lie among those of all factors. Its rows are its total, and every
// state of its slots that is not the variable's likeliest. What those add goes to one row more,
// which nobody reads: branches that depend on data would cost more.
struct Table {
    const Graph &g;
    int64_t f, row = 0, square = 0, map;
    const int64_t *state;

    Table(const Graph &graph, int64_t maps) : g(graph), f(0), map(maps), state(graph.entry) {}
    int64_t first() const { return g.scope_start[f]; }
    int64_t last() const { return g.scope_start[f + 1]; }
    int64_t order() const { return last() - first(); }
    int64_t unknowns() const { return g.slot_start[last()] - g.slot_start[first()] - order(); }
    int64_t rows() const { return unknowns() + 1; }
    int64_t width() const { return rows() + 1; }
    void next() {
        square += width() * width();
        map += unknowns() * unknowns();
        state += order() * (g.table_start[f + 1] - g.table_start[f]);
        row += width();
        ++f;
    }
};

// One example's system. A table follows from its rows: with M the sums that they are and
// C = M diag(1 / curve) M', a change z of them costs 1/2 z' C^-1 z. Each variable's likeliest state
// follows from the others: with a rare one in its place small differences of large numbers would
// decide.
struct Step {
    const Graph &g;
    System system;
    double *squares, *lift, *rise;  // C^-1 of every factor, what its rows ask, and their prices
    int64_t *likely, *place;        // a variable's likeliest state; the rows of slots' states
    int64_t maps = 0;               // of variables
    const double *b, *slope, *curve;

    Step(const Graph &graph, Arena &arena) : g(graph), system(graph, arena) {
        int64_t rows = 0, square = 0;
        for (Table t(g, 0); t.f < g.factors; t.next()) {
            rows = t.row + t.width();
            square = t.square + t.width() * t.width();
        }
        squares = arena.array<double>(square);
        lift = arena.array<double>(rows);
        rise = arena.array<double>(rows);
        likely = arena.array<int64_t>(g.nodes);
        place = arena.array<int64_t>(g.slot_start[g.scope_start[g.factors]]);
    }

    // Write the system of a point.
    void write(const double *at, const double *slopes, const double *curves) {
        b = at, slope = slopes, curve = curves;
        system.clear();
        maps = 0;
        for (int64_t i = 0, free = 0; i < g.nodes; ++i) free = add_variable(i, free);
        for (Table t(g, maps); t.f < g.factors; t.next()) eliminate(t);
    }

    // Read the change of every coordinate from the unknowns, and add to the prices.
    void read(double *delta, double *price) const {
        for (int64_t i = 0, free = 0; i < g.nodes; ++i) free = change_variable(i, free, delta);
        for (Table t(g, maps); t.f < g.factors; t.next()) change_table(t, delta, price);
    }

  private:
    double &value(int64_t k) const { return system.values[k]; }
    double &right(int64_t k) const { return system.right[k]; }

    int64_t add_variable(int64_t i, int64_t free) {
        const int64_t first = g.node_start[i], last = g.node_start[i + 1], count = last - first - 1;
        int64_t best = first;
        double lack = 1.0;
        for (int64_t k = first; k < last; ++k) {
            lack -= b[k];
            best = b[k] > b[best] ? k : best;
        }
        likely[i] = best - first;
        for (int64_t p = 0; p < count; ++p, maps += count) {
            const int64_t k = first + p + (p >= likely[i]);
            right(g.position[free + p]) -= slope[k] - slope[best] - curve[best] * lack;
            for (int64_t q = p; q < count; ++q)
                value(g.map[maps + q]) += curve[best] + (p == q ? curve[k] : 0.0);
        }
        return free + count;
    }

    // What a factor's rows ask: first that its table's sums become those of its variables.
    void demand(const Table &t, const double *nodes) const {
        for (int64_t s = t.first(); s < t.last(); ++s) {
            const double *own = nodes + g.node_start[g.scope[s]];
            for (int64_t k = g.slot_start[s]; k < g.slot_start[s + 1]; ++k, ++own)
                lift[t.row + place[k]] += *own;
        }
    }
    void price_rows(const Table &t) const {
        const double *C = squares + t.square, *h = lift + t.row;
        for (int64_t i = 0; i < t.rows(); ++i, C += t.width()) {
            double sum = 0.0;
            for (int64_t j = 0; j < t.rows(); ++j) sum += C[j] * h[j];
            rise[t.row + i] = sum;
        }
        rise[t.row + t.rows()] = 0.0;
    }

    // A table's energy becomes one of its variables' unknowns: z = E x + h, 1/2 z' C^-1 z.
    void eliminate(const Table &t) const {
        double *C = squares + t.square, *h = lift + t.row;
        const int64_t n = t.rows(), width = t.width(), count = n - 1, order = t.order();
        const int64_t *state = t.state;
        for (int64_t k = 0; k < width * width; ++k) C[k] = 0.0;
        for (int64_t k = 0; k < width; ++k) h[k] = 0.0;
        for (int64_t s = t.first(), row = 1; s < t.last(); ++s)
            for (int64_t k = g.slot_start[s]; k < g.slot_start[s + 1]; ++k)
                place[k] = k - g.slot_start[s] == likely[g.scope[s]] ? n : row++;
        demand(t, b);
        h[0] = 1.0;
        for (int64_t e = g.table_start[t.f]; e < g.table_start[t.f + 1]; ++e, state += order) {
            const double weight = 1.0 / curve[e], pull = weight * slope[e] - b[e];
            C[0] += weight;
            h[0] += pull;
            for (int64_t s = 0; s < order; ++s) {
                const int64_t row = place[state[s]];
                h[row] += pull;
                C[row * width] += weight;
                C[row * width + row] += weight;
                for (int64_t r = 0; r < s; ++r) C[row * width + place[state[r]]] += weight;
            }
        }
        n == 3 ? invert<3>(C, n) : invert<0>(C, n);
        price_rows(t);
        const int64_t *unknown = g.unknown + t.row - 2 * t.f, *map = g.map + t.map;
        for (int64_t p = 0; p < count; ++p, map += count) {
            right(unknown[p]) -= rise[t.row + 1 + p];
            for (int64_t q = p; q < count; ++q) value(map[q]) += C[(p + 1) * width + q + 1];
        }
    }

    // A small positive matrix, by its lower triangle, becomes its inverse (Gauss-Jordan). Pairs of
    // binary variables have the size 3: their loops become straight code.
    template <int64_t SIZE>
    static void invert(double *C, int64_t rows) {
        const int64_t n = SIZE ? SIZE : rows, width = n + 1;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < i; ++j) C[j * width + i] = C[i * width + j];
        for (int64_t k = 0; k < n; ++k) {
            double *own = C + k * width;
            const double pivot = 1.0 / own[k];
            own[k] = 1.0;
            for (int64_t j = 0; j < n; ++j) own[j] *= pivot;
            for (int64_t i = 0; i < n; ++i) {
                if (i == k) continue;
                double *row = C + i * width;
                const double share = row[k];
                row[k] = 0.0;
                for (int64_t j = 0; j < n; ++j) row[j] -= share * own[j];
            }
        }
    }

    // Variables of one state stay.
    int64_t change_variable(int64_t i, int64_t free, double *delta) const {
        const int64_t first = g.node_start[i], count = g.node_start[i + 1] - first - 1;
        double rest = 1.0;
        for (int64_t k = first; k <= first + count; ++k) rest -= b[k];
        for (int64_t p = 0; p < count; ++p) {
            const double step = right(g.position[free + p]);
            delta[first + p + (p >= likely[i])] = step;
            rest -= step;
        }
        delta[first + likely[i]] = count > 0 ? rest : 0.0;
        return free + count;
    }

    void change_table(const Table &t, double *delta, double *price) const {
        demand(t, delta);
        price_rows(t);
        const double *own = rise + t.row;
        const int64_t order = t.order(), *state = t.state;
        for (int64_t e = g.table_start[t.f]; e < g.table_start[t.f + 1]; ++e, state += order) {
            double sum = own[0] - slope[e];
            for (int64_t s = 0; s < order; ++s) sum += own[place[state[s]]];
            delta[e] = sum / curve[e];
        }
        price[g.slot_start[g.scope_start[g.factors]] + t.f] += own[0];
        for (int64_t k = g.slot_start[t.first()]; k < g.slot_start[t.last()]; ++k)
            price[k] += own[place[k]];
    }
};

}  // namespace

status step_condensed(const Graph *graph, const condensed_points *points, double *delta,
                      double *price, double *least) {
    const int64_t size = points->size;
    const int64_t prices = graph->slot_start[graph->scope_start[graph->factors]] + graph->factors;
    Arena arena;
    Step step(*graph, arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < points->count; ++m) {
        const int64_t at = m * size;
        step.write(points->b + at, points->slope + at, points->curve + at);
        least[m] = step.system.solve();
        step.read(delta + at, price + m * prices);
    }
    return OK;
}
