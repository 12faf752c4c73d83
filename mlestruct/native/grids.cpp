// Exact grids, one site at a time: a table over the states of one row's worth of frontier.
//
// After site (r, c) the frontier holds row r up to column c and row r - 1 beyond it. Summing the
// next site's upper neighbour out costs states^(columns + 1), whatever the number of rows; the way
// back needs the tables again, of which one a row is kept. A table is divided by its largest entry
// where it is next read.
#include "grids.h"

#include "lanes.h"

namespace {

constexpr double NORMAL = 2.3e-308;

template <class T>
INLINE T get(const double *from);
template <>
INLINE Row get<Row>(const double *from) {
    return load(from);
}
template <>
INLINE double get<double>(const double *from) {
    return *from;
}
INLINE void put(double *to, Row x) { store(to, x); }
INLINE void put(double *to, double x) { *to = x; }
INLINE double largest_of(Row x) { return largest(x); }
INLINE double largest_of(double x) { return x; }
INLINE double sum_of(Row x) { return sum(x); }
INLINE double sum_of(double x) { return x; }

double total_of(const double *values, int64_t size) {
    double total = 0.0;
    for (int64_t k = 0; k < size; ++k) total += values[k];
    return total;
}

// A pass over the sites; S is the number of states where that is known to the compiler, else 0.
template <int64_t S>
struct Grid {
    const grid_tables *given;
    int64_t size;          // of a table
    double *table, *next;  // this one, before it was divided, and room for the one after
    double scale;          // what the table is to be multiplied by
    double log;            // of what was taken off
    double *weight;        // (left, up, here)
    double *joint;         // marginals of these
    Row *masses;           // room for sums, where S is 0

    int64_t states() const { return S ? S : given->states; }

    // Write left[p, x] * up[y, x], scaled, and return how many states the left site has.
    int64_t weigh(int64_t r, int64_t c) {
        const int64_t s = states(), fore = c == 0 ? 1 : s, site = (r * given->columns + c) * s * s;
        for (int64_t p = 0; p < fore; ++p)
            for (int64_t y = 0; y < s; ++y)
                for (int64_t x = 0; x < s; ++x)
                    weight[(p * s + y) * s + x] =
                        scale * given->left[site + p * s + x] * given->up[site + y * s + x];
        return fore;
    }

    // Take the new table, whose largest entry is `top`.
    void swap(double top) {
        double *old = table;
        table = next;
        next = old;
        scale = 1.0 / top;
        log += top >= NORMAL ? logarithm(top) : __builtin_nan("");
    }

    // next[x, b] = sum over y of w[y, x] table[y, b], for some b; return the largest.
    template <class T>
    INLINE double step_part(const double *w, const double *from, double *to, int64_t inner,
                            int64_t first, int64_t last) const {
        const int64_t s = states(), lanes = sizeof(T) / sizeof(double);
        T top = everywhere<T>(0.0);
        for (int64_t b = first; b < last; b += lanes)
            for (int64_t x = 0; x < s; ++x) {
                T total = everywhere<T>(0.0);
                for (int64_t y = 0; y < s; ++y)
                    total = add_times(total, get<T>(from + y * inner + b), w[y * s + x]);
                put(to + x * inner + b, total);
                top = larger(top, total);
            }
        return largest_of(top);
    }

    // Sum the upper neighbour of site (r, c) out of the table.
    void step(int64_t r, int64_t c, int64_t inner) {
        const int64_t s = states(), fore = weigh(r, c), whole = inner / EIGHT * EIGHT;
        double top = 0.0;
        int64_t p = 0;
        for (int64_t at = 0; at < size; at += s * inner, p = p + 1 == fore ? 0 : p + 1) {
            const double *w = weight + p * s * s;
            if (whole) top = larger(top, step_part<Row>(w, table + at, next + at, inner, 0, whole));
            if (whole < inner)
                top = larger(top, step_part<double>(w, table + at, next + at, inner, whole, inner));
        }
        swap(top);
    }

    // The same one step earlier for `table`, sums over all below; `kept` are sums over all above.
    template <class T>
    INLINE double back_part(int64_t p, int64_t at, const double *kept, int64_t inner, int64_t first,
                            int64_t last) {
        const int64_t s = states(), lanes = sizeof(T) / sizeof(double);
        const double *w = weight + p * s * s;
        T own[S ? S * S : 1], top = everywhere<T>(0.0);
        T *mass = S ? own : reinterpret_cast<T *>(masses);
        for (int64_t k = 0; k < s * s; ++k) mass[k] = everywhere<T>(0.0);
        for (int64_t b = at + first; b < at + last; b += lanes)
            for (int64_t y = 0; y < s; ++y) {
                T total = everywhere<T>(0.0);
                const T above = get<T>(kept + y * inner + b);
                for (int64_t x = 0; x < s; ++x) {
                    const T below = get<T>(table + x * inner + b);
                    total = add_times(total, below, w[y * s + x]);
                    mass[y * s + x] = add_product(mass[y * s + x], above, below);
                }
                put(next + y * inner + b, total);
                top = larger(top, total);
            }
        for (int64_t k = 0; k < s * s; ++k) joint[p * s * s + k] += w[k] * sum_of(mass[k]);
        return largest_of(top);
    }

    void back(int64_t r, int64_t c, const double *kept, int64_t inner) {
        const int64_t s = states(), fore = weigh(r, c), whole = inner / EIGHT * EIGHT;
        for (int64_t k = 0; k < s * s * s; ++k) joint[k] = 0.0;
        double top = 0.0;
        int64_t p = 0;
        for (int64_t at = 0; at < size; at += s * inner, p = p + 1 == fore ? 0 : p + 1) {
            if (whole) top = larger(top, back_part<Row>(p, at, kept, inner, 0, whole));
            if (whole < inner)
                top = larger(top, back_part<double>(p, at, kept, inner, whole, inner));
        }
        swap(top);
    }

    // Go through one row; `kept` gets the table before every site, where there is room.
    void go_through(int64_t r, double *kept) {
        int64_t inner = size / states();
        for (int64_t c = 0; c < given->columns; ++c) {
            if (kept) copy(kept + c * size, table, size);
            step(r, c, inner);
            inner = inner / states() > 1 ? inner / states() : 1;
        }
    }

    void begin(Arena *arena) {
        const int64_t s = states();
        size = 1;
        for (int64_t c = 0; c < given->columns; ++c) size *= s;
        table = arena->array<double>(size, 0.0);
        next = arena->array<double>(size);
        weight = arena->array<double>(s * s * s);
        joint = arena->array<double>(s * s * s);
        masses = reinterpret_cast<Row *>(arena->array<double>(s * s * EIGHT));
        if (table) table[0] = 1.0;
        scale = 1.0;
        log = 0.0;
    }

    // Add the joint marginals of (left, up, here) at a site to those of it and of its pairs.
    void collect(int64_t r, int64_t c, double *node, double *across, double *down) {
        const int64_t s = states(), columns = given->columns;
        const double whole = total_of(joint, s * s * s);
        for (int64_t p = 0; p < s; ++p)
            for (int64_t y = 0; y < s; ++y)
                for (int64_t x = 0; x < s; ++x) {
                    const double share = joint[(p * s + y) * s + x] / whole;
                    node[(r * columns + c) * s + x] += share;
                    if (c > 0) across[((r * (columns - 1) + c - 1) * s + p) * s + x] += share;
                    if (r > 0) down[(((r - 1) * columns + c) * s + y) * s + x] += share;
                }
    }

    status marginals(double *log_z, double *node, double *across, double *down) {
        Arena arena;
        begin(&arena);
        double *first = arena.array<double>(given->rows * size);
        double *scales = arena.array<double>(given->rows);
        double *kept = arena.array<double>(given->columns * size);
        double *after = arena.array<double>(size, 1.0);
        if (arena.failed) return NO_MEMORY;
        for (int64_t r = 0; r < given->rows; ++r) {
            copy(first + r * size, table, size);
            scales[r] = scale;
            go_through(r, nullptr);
        }
        *log_z = log + logarithm(scale * total_of(table, size));
        double scale_after = 1.0;
        for (int64_t r = given->rows - 1; r >= 0; --r) {
            copy(table, first + r * size, size);
            scale = scales[r];
            go_through(r, kept);
            double *rest = table;
            table = after;
            scale = scale_after;
            int64_t inner = 1;
            for (int64_t c = given->columns - 1; c >= 0; --c, inner *= states()) {
                back(r, c, kept + c * size, inner);
                collect(r, c, node, across, down);
            }
            after = table;
            scale_after = scale;
            table = rest;
        }
        return OK;
    }
};

template <class Do>
status with_states(const grid_tables *given, Do &&run) {
    if (given->states == 2) {
        Grid<2> grid{};
        grid.given = given;
        return run(grid);
    }
    Grid<0> grid{};
    grid.given = given;
    return run(grid);
}

}  // namespace

status grid_marginals(const grid_tables *given, double *log_z, double *node, double *across,
                      double *down) {
    return with_states(given,
                       [&](auto &grid) { return grid.marginals(log_z, node, across, down); });
}
