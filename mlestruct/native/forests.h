// Marginals and best labellings of forests of factors of any order.
#pragma once
#include "kernel.h"

extern "C" {
/** A forest of factors: where states and tables lie, and who reports to whom.

Tables are in row-major order of the factor's scope and lie after the nodes' states. ``order`` is
of factors from the leaves up, ``parent`` the variable that each factor in it reports to. */
struct forest_shape {
    int64_t nodes;
    int64_t factors;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(factors + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(scope_start[-1]) BELOW(nodes);
    const int64_t *order N(factors) BELOW(factors);
    const int64_t *parent N(factors) BELOW(nodes);
};

/** Write the marginals and log Z of equal forests, whose coordinates begin at ``offset``.

Entries that are closed score minus infinity. log Z is minus infinity where no labelling has a
finite score, and NaN where a score is NaN or plus infinity. */
EXPORT status forest_marginals(const struct forest_shape *shape, int64_t count,
                               const int64_t *offset N(count), int64_t size,
                               const double *score N(size), double *tau N(size),
                               double *log_z N(count));

/** Write 1 at the entries of every example's best labelling, of equal labels the first.

``best`` is its score, as log Z is above. */
EXPORT status forest_labels(const struct forest_shape *shape, int64_t count,
                            const int64_t *offset N(count), int64_t size,
                            const double *score N(size), double *vertex N(size),
                            double *best N(count));
}
