// The best labelling of a forest of factors.
#pragma once
#include "kernel.h"

extern "C" {
/** A forest of factors: coordinates of states and of the tables' entries, and who reports to whom.

Tables are in row-major order of the factor's scope and lie after the nodes' states. ``order`` is
of factors from the leaves up, ``parent`` the variable that each factor in it reports to.
Coordinates in ``shut`` are forbidden. */
struct factor_forest {
    int64_t nodes;
    int64_t factors;
    int64_t forbidden;
    const int64_t *node_start N(nodes + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(scope_start[-1]) BELOW(nodes);
    const int64_t *table_start N(factors + 1);
    const int64_t *shut N(forbidden) BELOW(table_start[-1]);
    const int64_t *order N(factors) BELOW(factors);
    const int64_t *parent N(factors) BELOW(nodes);
};

/** Write 1 at the entries of every example's best labelling, of equal labels the first.

An example's scores lie at its offset. ``best`` is their best sum: -inf if nothing is possible. */
EXPORT status viterbi_solve(const struct factor_forest *f, int64_t count,
                            const int64_t *offsets N(count), int64_t size,
                            const double *scores N(size), double *vertices N(size),
                            double *best N(count));
}
