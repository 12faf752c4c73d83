// Entropies of views of marginals.
#include "entropy.h"

#include "lanes.h"

namespace {

constexpr double FLOOR = 1e-16;  // of differences
constexpr double TINY = 1e-300;  // of coordinates, which have digits down to there

// t log t, 0 where t is not positive
INLINE Row x_log_x(Row t) {
    return select(t > row_of(0.0), t, row_of(0.0)) * logarithm(larger(t, row_of(TINY)));
}

// The rows of C tau + c0 from v on, at most eight of them; 0 after the last.
INLINE Row rows_from(const entropy_views *views, int64_t v, int64_t end, const double *tau) {
    double t[EIGHT];
    for (int64_t k = 0; k < EIGHT; ++k) {
        t[k] = 0.0;
        if (v + k >= end) continue;
        t[k] = views->c0[v + k];
        for (int64_t e = views->ptr[v + k]; e < views->ptr[v + k + 1]; ++e)
            t[k] += views->value[e] * tau[views->place[e]];
    }
    return load(t);
}

}  // namespace

void entropies(const entropy_views *views, int64_t count, const int64_t *offset,
               const int64_t *start, const double *tau, double *out) {
    const int64_t size = views->size;
    const Row zero = row_of(0.0);
    for (int64_t m = 0; m < count; ++m) {
        Row total = zero;
        for (int64_t k = offset[m]; k < offset[m + 1]; k += EIGHT) {
            const int64_t left = offset[m + 1] - k;
            const Row t = load_some(tau + k, left, tau + size, 0.0);
            total = total - load_some(views->a + k, left, views->a + size, 0.0) * x_log_x(t);
            const Row others = load_some(views->b + k, left, views->b + size, 0.0);
            if (any(others != zero)) total = total - others * x_log_x(1.0 - t);
        }
        for (int64_t v = start[m]; v < start[m + 1]; v += EIGHT) {
            const double *end = views->mixed + views->rows;
            const Row weights = load_some(views->mixed + v, start[m + 1] - v, end, 0.0);
            total = total - weights * x_log_x(rows_from(views, v, start[m + 1], tau));
        }
        out[m] = sum(total);
    }
}

void entropy_slopes(const entropy_views *views, const double *tau, double *out) {
    const int64_t size = views->size;
    const Row zero = row_of(0.0);
    double some[EIGHT];
    for (int64_t k = 0; k < size; k += EIGHT) {
        const int64_t left = size - k;
        const Row t = load_some(tau + k, left, tau + size, 0.0);
        const Row weights = load_some(views->a + k, left, views->a + size, 0.0);
        const Row others = load_some(views->b + k, left, views->b + size, 0.0);
        Row slope = zero - weights * (logarithm(larger(t, row_of(TINY))) + 1.0);
        if (any(others != zero))
            slope = slope + others * (logarithm(larger(1.0 - t, row_of(FLOOR))) + 1.0);
        store(some, slope);
        for (int64_t j = 0; j < EIGHT && j < left; ++j) out[k + j] = some[j];
    }
    for (int64_t v = 0; v < views->rows; v += EIGHT) {
        const Row t = larger(rows_from(views, v, views->rows, tau), row_of(FLOOR));
        store(some, logarithm(t) + 1.0);
        for (int64_t j = 0; j < EIGHT && v + j < views->rows; ++j) {
            const double slope = -views->mixed[v + j] * some[j];
            for (int64_t e = views->ptr[v + j]; e < views->ptr[v + j + 1]; ++e)
                out[views->place[e]] += slope * views->value[e];
        }
    }
}
