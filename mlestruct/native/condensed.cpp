// Steps of convex inference by linear systems in which tables are eliminated.
//
//     min 1/2 sum curve delta^2 + slope . delta    over delta with  A (b + delta) = d
//
// where A are the constraints of the local polytope. With the gradient of a free energy for slope
// the solution is Newton's step; with dL/db at an optimum b(v) it is dL/dv. Variables may have
// negative curvature (counting numbers of the tree-reweighted kind) as long as the whole is convex
// on A delta = 0: the pivots tell.
//
// Each variable's likeliest state follows from its others: with a rare one in its place small
// differences of large numbers would decide. A table follows from the sums z of its entries with
// each of these other states. As a distribution 1 / curve has a covariance C of what indicates
// them; times its mass, z less their means costs 1/2 z' C^-1 z.
#include "condensed.h"

#include "factors.h"

namespace {

using Graph = message_graph;

// A symmetric matrix of a narrow band, by columns from the diagonal down, and a right side.
struct Band {
    const int64_t size, width;
    double *column, *right;

    Band(int64_t unknowns, int64_t wide, Arena &arena) : size(unknowns), width(wide) {
        column = arena.array<double>(size * (width + 1));
        right = arena.array<double>(size);
    }
    void clear() const {
        for (int64_t k = 0; k < size * (width + 1); ++k) column[k] = 0.0;
        for (int64_t k = 0; k < size; ++k) right[k] = 0.0;
    }
    double &entry(int64_t i, int64_t j) const {
        return i < j ? column[i * (width + 1) + j - i] : column[j * (width + 1) + i - j];
    }
    int64_t below(int64_t k) const { return size - 1 - k < width ? size - 1 - k : width; }

    // Solve the system in place by factors L D L', and return its smallest pivot.
    double solve() const {
        double least = INF;
        for (int64_t k = 0; k < size; ++k) {
            const double *own = column + k * (width + 1);
            least = smaller(own[0], least);
            for (int64_t j = 1; j <= below(k); ++j) {
                if (own[j] == 0.0) continue;
                const double share = own[j] / own[0];
                double *__restrict other = column + (k + j) * (width + 1) - j;
                for (int64_t i = j; i <= below(k); ++i) other[i] -= share * own[i];
                right[k + j] -= share * right[k];
            }
        }
        for (int64_t k = size - 1; k >= 0; --k) {
            const double *own = column + k * (width + 1);
            double found = right[k];
            for (int64_t j = 1; j <= below(k); ++j) found -= own[j] * right[k + j];
            right[k] = found / own[0];
        }
        return least;
    }
};

// One example's system. Rows of a factor lie from its first slot's place on; what its likeliest
// states add goes to one row more, which nobody reads: branches that depend on data would cost
// more.
struct Step {
    const Graph &g;
    const int64_t *begin;
    Band band;
    int64_t *likely;             // of variables
    int64_t *row, *unknown;      // of slots' states the row; of rows the unknown
    int64_t *state;              // of a factor's slots
    double *square;              // C^-1 of all factors, one after the other
    double *mean, *goal, *rise;  // of rows
    const double *b, *slope, *curve;

    Step(const Graph &graph, const int64_t *first, int64_t width, const Widest &widest,
         Arena &arena)
        : g(graph), begin(first), band(g.node_start[g.nodes] - g.nodes, width, arena) {
        const int64_t places = g.place[g.slots];
        int64_t squares = 0;
        for (int64_t f = 0; f < g.factors; ++f) {
            const int64_t rows = g.place[g.scope_start[f + 1]] - g.place[g.scope_start[f]];
            squares += rows * rows;
        }
        likely = arena.array<int64_t>(g.nodes);
        row = arena.array<int64_t>(places);
        unknown = arena.array<int64_t>(places);
        state = arena.array<int64_t>(widest.order);
        square = arena.array<double>(squares);
        mean = arena.array<double>(3 * places);
        goal = mean + places, rise = goal + places;
    }

    // Write the step of a point, and what it adds to prices; return the smallest pivot.
    double solve(double *delta, double *price) {
        band.clear();
        for (int64_t i = 0; i < g.nodes; ++i) add_variable(i);
        double *at = square;
        for (int64_t f = 0; f < g.factors; ++f) at = eliminate(f, at);
        const double least = band.solve();
        for (int64_t i = 0; i < g.nodes; ++i) change_variable(i, delta);
        at = square;
        for (int64_t f = 0; f < g.factors; ++f) at = change_table(f, at, delta, price);
        return least;
    }

  private:
    void add_variable(int64_t i) const {
        const int64_t first = g.node_start[i], count = g.node_start[i + 1] - first - 1;
        int64_t best = first;
        double lack = 1.0;
        for (int64_t k = first; k <= first + count; ++k) {
            lack -= b[k];
            best = b[k] > b[best] ? k : best;
        }
        likely[i] = best - first;
        for (int64_t p = 0; p < count; ++p) {
            const int64_t k = first + p + (p >= likely[i]);
            band.right[begin[i] + p] = slope[best] + curve[best] * lack - slope[k];
            for (int64_t q = 0; q <= p; ++q)
                band.entry(begin[i] + p, begin[i] + q) = curve[best] + (p == q ? curve[k] : 0.0);
        }
    }

    // Number the rows of a factor, and add to their goals what variables have.
    void name_rows(const Factor &here) const {
        int64_t next = 0;
        const int64_t first = g.place[here.first];
        for (int64_t s = here.first; s < here.last; ++s) {
            const int64_t i = g.scope[s];
            for (int64_t k = 0; k < here.cards(s); ++k) {
                const bool follows = k == likely[i];
                row[g.place[s] + k] = follows ? rows_of(here) : next;
                if (follows) continue;
                unknown[first + next] = begin[i] + k - (k > likely[i]);
                goal[first + next++] = b[g.node_start[i] + k];
            }
        }
    }
    int64_t rows_of(const Factor &here) const { return here.width() - (here.last - here.first); }

    // A table's energy becomes one of its variables' unknowns.
    double *eliminate(int64_t f, double *C) const {
        Factor here(g, f, state);
        const int64_t n = rows_of(here), wide = n + 1, first = g.place[here.first];
        double *m = mean + first, *h = goal + first, mass = 0.0, lack = 1.0;
        name_rows(here);
        for (int64_t k = 0; k < wide * wide; ++k) C[k] = 0.0;
        for (int64_t k = 0; k < wide; ++k) m[k] = 0.0;
        for (int64_t e = here.entry; e < here.entry + here.entries; ++e, here.next()) {
            const double weight = 1.0 / curve[e], pull = weight * slope[e] - b[e];
            mass += weight;
            lack += pull;
            for (int64_t s = here.first; s < here.last; ++s) {
                const int64_t r = row_at(here, s);
                m[r] += weight;
                h[r] += pull;
                for (int64_t t = here.first; t < s; ++t) C[r * wide + row_at(here, t)] += weight;
            }
        }
        for (int64_t r = 0; r < n; ++r) {
            C[r * wide + r] = m[r];
            m[r] /= mass;
            h[r] -= m[r] * lack;
            for (int64_t q = 0; q <= r; ++q) {
                C[r * wide + q] -= mass * m[r] * m[q];
                C[q * wide + r] = C[r * wide + q];
            }
        }
        invert(C, n);
        price_rows(first, n, C);
        for (int64_t p = 0; p < n; ++p) {
            const int64_t i = unknown[first + p];
            band.right[i] -= rise[first + p];
            for (int64_t q = 0; q <= p; ++q) band.entry(i, unknown[first + q]) += C[p * wide + q];
        }
        return C + wide * wide;
    }
    int64_t row_at(const Factor &here, int64_t s) const {
        return row[g.place[s] + here.state[s - here.first]];
    }

    void price_rows(int64_t first, int64_t n, const double *C) const {
        for (int64_t r = 0; r < n; ++r, C += n + 1) {
            double total = 0.0;
            for (int64_t q = 0; q < n; ++q) total += C[q] * goal[first + q];
            rise[first + r] = total;
        }
        rise[first + n] = 0.0;
    }

    // A positive matrix becomes its inverse (Gauss-Jordan).
    static void invert(double *C, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
            double *own = C + k * (n + 1);
            const double pivot = 1.0 / own[k];
            own[k] = 1.0;
            for (int64_t j = 0; j < n; ++j) own[j] *= pivot;
            for (int64_t i = 0; i < n; ++i) {
                if (i == k) continue;
                double *other = C + i * (n + 1);
                const double share = other[k];
                other[k] = 0.0;
                for (int64_t j = 0; j < n; ++j) other[j] -= share * own[j];
            }
        }
    }

    // Variables of one state stay.
    void change_variable(int64_t i, double *delta) const {
        const int64_t first = g.node_start[i], count = g.node_start[i + 1] - first - 1;
        double rest = 1.0;
        for (int64_t k = first; k <= first + count; ++k) rest -= b[k];
        for (int64_t p = 0; p < count; ++p) {
            const double step = band.right[begin[i] + p];
            delta[first + p + (p >= likely[i])] = step;
            rest -= step;
        }
        delta[first + likely[i]] = count > 0 ? rest : 0.0;
    }

    // The total's price makes the changes of a table's entries add up.
    double *change_table(int64_t f, double *C, double *delta, double *price) const {
        Factor here(g, f, state);
        const int64_t n = rows_of(here), first = g.place[here.first];
        double mass = 0.0, lack = 1.0, due = 0.0;
        for (int64_t r = 0; r < n; ++r) goal[first + r] += band.right[unknown[first + r]];
        price_rows(first, n, C);
        for (int64_t e = here.entry; e < here.entry + here.entries; ++e) {
            mass += 1.0 / curve[e];
            lack += slope[e] / curve[e] - b[e];
        }
        for (int64_t r = 0; r < n; ++r) due += mean[first + r] * rise[first + r];
        const double total = lack / mass - due;
        for (int64_t e = here.entry; e < here.entry + here.entries; ++e, here.next()) {
            double sum = total - slope[e];
            for (int64_t s = here.first; s < here.last; ++s) sum += rise[first + row_at(here, s)];
            delta[e] = sum / curve[e];
        }
        for (int64_t k = first; k < g.place[here.last]; ++k) price[k] += rise[first + row[k]];
        return C + (n + 1) * (n + 1);
    }
};

}  // namespace

status step_condensed(const Graph *graph, const int64_t *begin, int64_t width,
                      const condensed_points *points, double *delta, double *price, double *least) {
    const int64_t size = points->size, prices = graph->place[graph->slots];
    Arena arena;
    Step step(*graph, begin, width, Widest(*graph), arena);
    if (arena.failed) return NO_MEMORY;
    for (int64_t m = 0; m < points->count; ++m) {
        step.b = points->b + m * size;
        step.slope = points->slope + m * size;
        step.curve = points->curve + m * size;
        least[m] = step.solve(delta + m * size, price + m * prices);
    }
    return OK;
}
