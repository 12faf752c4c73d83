// Entropies of views of marginals.
#pragma once
#include "kernel.h"

extern "C" {
/** The entropy -sum a t log t - sum b (1 - t) log(1 - t) of coordinates t, and the same of rows of
more than one coordinate, C tau + c0, with weights ``mixed``. */
struct entropy_views {
    int64_t size;
    int64_t rows;
    int64_t entries;
    const double *a N(size);
    const double *b N(size);
    const int64_t *ptr N(rows + 1) BELOW(entries + 1);
    const int64_t *place N(entries) BELOW(size);
    const double *value N(entries);
    const double *c0 N(rows);
    const double *mixed N(rows);
};

/** Write the entropy of every example: its coordinates begin at offset[m], its rows at start[m]. */
EXPORT void entropies(const struct entropy_views *views, int64_t count,
                      const int64_t *offset N(count + 1) BELOW(views.size + 1),
                      const int64_t *start N(count + 1) BELOW(views.rows + 1),
                      const double *tau N(views.size), double *out N(count));

/** Write the gradient; logarithms are those of 1e-300 at least, of differences of 1e-16. */
EXPORT void entropy_slopes(const struct entropy_views *views, const double *tau N(views.size),
                           double *out N(views.size));
}
