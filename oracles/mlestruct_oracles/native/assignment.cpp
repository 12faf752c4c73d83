// Dense shortest augmenting paths for assignments (after Jonker & Volgenant 1987, Computing 38).
//
// Every row gets a column of its own, so that the sum of scores is greatest. Prices v >= 0 of
// columns and what they leave each row, u_i = max_j (score_ij - v_j), are the duals: no matching
// beats sum(u) + sum(v), whatever the prices are. The best one reaches it, since its rows have
// their best columns and free columns cost nothing. Searches keep the first true, so of a square
// table, which leaves no column free, the prices of any earlier question are a start. Among columns
// equally near, free ones come first: a search through tied scores would else visit every column
// that is taken before one of them.
#include "assignment.h"

#include <initializer_list>

#include "lanes.h"

namespace {

constexpr int64_t NONE = -1;
constexpr double ROUNDING = 1e-14;  // of the largest score: an edge this close to tight is tight
constexpr double STALE = 8.0;       // prices this many times the largest score cost its last digits

// The best of any column, and of a free one.
struct Best {
    double any, free;
};

// One table, its rows padded to whole eights, and shortest paths from one row.
struct Search {
    int64_t n, m, wide;
    double *table, *price;        // scores; prices of columns
    int64_t *column, *row;        // of every row; of every column
    double *left;                 // prices of columns not yet reached for good, else infinity
    double *distance, *previous;  // of columns, and the row that a path comes from
    double *taken;                // 0 where the column is free, else infinity
    int64_t *reached, *waiting;
    double *reached_at;

    const double *scores(int64_t i) const { return table + i * wide; }

    // The most that a column leaves row i.
    Best gain(int64_t i) const {
        const double *score = scores(i);
        Row any = row_of(-INF), free = any;
        for (int64_t j = 0; j < wide; j += EIGHT) {
            const Row gained = load(score + j) - load(price + j);
            any = larger(any, gained);
            free = larger(free, gained - load(taken + j));
        }
        return {largest(any), largest(free)};
    }

    double largest_score() const {
        Row most = row_of(0.0);
        for (int64_t k = 0; k < n * wide; k += EIGHT) {
            const Row x = load(table + k), size = larger(x, -x);
            most = larger(most, select(size < row_of(INF), size, row_of(0.0)));
        }
        return largest(most);
    }

    // Sum(u) + sum(v), with u made feasible here: no less than any matching's score.
    double bound() const {
        double total = 0.0;
        for (int64_t i = 0; i < n; ++i) total += gain(i).any;
        for (int64_t j = 0; j < m; ++j) total += price[j];
        return total;
    }

    void match(int64_t i, int64_t j) {
        column[i] = j;
        row[j] = i;
        taken[j] = INF;
    }

    // Rows keep a column that is still the best they can have, or take a free one that is. Return
    // how many wait for one. Prices that columns left free may keep, or that are stale, begin at 0.
    int64_t claim() {
        double dearest = 0.0;
        for (int64_t j = 0; j < m; ++j) {
            row[j] = NONE;
            taken[j] = 0.0;
            dearest = larger(dearest, price[j]);
        }
        const double scale = dearest > 0.0 ? largest_score() : 0.0;
        const bool stale = n < m || dearest > STALE * scale;
        for (int64_t j = 0; stale && j < m; ++j) price[j] = 0.0;
        int64_t count = 0, kept = 0;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t j = stale ? NONE : column[i];
            column[i] = NONE;
            if (j != NONE && scores(i)[j] - price[j] >= gain(i).any - ROUNDING * scale)
                match(i, j);
            else
                waiting[count++] = i;
        }
        for (int64_t k = 0; k < count; ++k) {
            const int64_t i = waiting[k];
            const Best best = gain(i);
            if (best.free < best.any || !(best.any > -INF)) {
                waiting[kept++] = i;
                continue;
            }
            int64_t j = 0;
            while (taken[j] != 0.0 || scores(i)[j] - price[j] != best.any) ++j;
            match(i, j);
        }
        return kept;
    }

    // Make paths through row i where they are shorter; return the shortest.
    Best relax(int64_t i, double start) {
        const double *score = scores(i);
        const Row by = row_of(static_cast<double>(i)), from = row_of(start);
        Row any = row_of(INF), free = any;
        for (int64_t j = 0; j < wide; j += EIGHT) {
            const Row through = from + load(left + j) - load(score + j), old = load(distance + j);
            const Row fresh = smaller(old, through);
            store(distance + j, fresh);
            store(previous + j, select(old > through, by, load(previous + j)));
            any = smaller(any, fresh);
            free = smaller(free, fresh + load(taken + j));
        }
        return {smallest(any), smallest(free)};
    }

    // Return a column at this distance, of those that are free or of all.
    int64_t find(double at, bool is_free) const {
        const Row wanted = row_of(at);
        for (int64_t start = 0;; start += EIGHT) {
            if (!any(load(distance + start) == wanted)) continue;
            for (int64_t j = start; j < start + EIGHT; ++j)
                if (distance[j] == at && !(is_free && taken[j] != 0.0)) return j;
        }
    }

    // Take the shortest path from row i to a free column; move the prices on the way. Return
    // whether there is such a path.
    bool augment(int64_t i) {
        std::memcpy(left, price, m * sizeof(double));
        for (int64_t j = 0; j < wide; ++j) distance[j] = INF;
        int64_t count = 0;
        Best near = relax(i, 0.0);
        while (near.any < INF && near.free != near.any) {
            const int64_t j = find(near.any, false);
            reached[count] = j;
            reached_at[count++] = near.any;
            distance[j] = left[j] = INF;
            i = row[j];
            near = relax(i, near.any + scores(i)[j] - price[j]);
        }
        if (!(near.any < INF)) return false;
        for (int64_t k = 0; k < count; ++k) price[reached[k]] += near.any - reached_at[k];
        int64_t j = find(near.any, true);
        taken[j] = INF;
        for (int64_t before = j; j != NONE; j = before) {
            const int64_t by = static_cast<int64_t>(previous[j]);
            row[j] = by;
            before = column[by];
            column[by] = j;
        }
        return true;
    }

    // Match every row; false where that is impossible.
    bool solve() {
        for (int64_t k = 0, count = claim(); k < count; ++k)
            if (!augment(waiting[k])) return false;
        return true;
    }
};

}  // namespace

int64_t assignment_solve(int64_t count, int64_t rows, int64_t columns, const double *score,
                         double *price, int64_t *column, double *upper) {
    Arena arena;
    Search s{};
    s.n = rows;
    s.m = columns;
    s.wide = whole_eights(columns);
    s.table = arena.array<double>(rows * s.wide, -INF);
    for (double **each : {&s.price, &s.left, &s.distance, &s.previous, &s.taken, &s.reached_at})
        *each = arena.array<double>(s.wide, INF);
    for (int64_t **each : {&s.row, &s.reached, &s.waiting}) *each = arena.array<int64_t>(columns);
    if (arena.failed) return NO_MEMORY;
    for (int64_t k = 0; k < count; ++k) {
        const double *scores = score + k * rows * columns;
        for (int64_t i = 0; i < rows; ++i)
            std::memcpy(s.table + i * s.wide, scores + i * columns, columns * sizeof(double));
        std::memcpy(s.price, price + k * columns, columns * sizeof(double));
        s.column = column + k * rows;
        const bool solved = s.solve();
        std::memcpy(price + k * columns, s.price, columns * sizeof(double));
        upper[k] = s.bound();
        if (!solved || !(upper[k] < INF && upper[k] > -INF)) return k;
    }
    return NONE;
}
