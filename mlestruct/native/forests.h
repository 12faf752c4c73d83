// Marginals of forests of factors of any order.
#pragma once
#include "kernel.h"

extern "C" {
/** A forest of factors, from the leaves up.

Factor f reports to the variable ``parent``; its ``entries`` numbers begin at table_start[f], and
what it sends at choice_start[f]. Entry e has the node coordinates from
agree_start[f] + e * arity[f] on, the parent's first. ``node_of`` is the variable of every node
coordinate. */
struct forest_shape {
    int64_t factors;
    int64_t variables;
    int64_t places;
    const int64_t *parent N(factors) BELOW(variables);
    const int64_t *arity N(factors);
    const int64_t *table_start N(factors);
    const int64_t *entries N(factors);
    const int64_t *agree_start N(factors);
    const int64_t *choice_start N(factors + 1);
    const int64_t *agree N(places) BELOW(node_start[-1]);
    const int64_t *node_start N(variables + 1);
    const int64_t *node_of N(node_start[-1]) BELOW(variables);
};

/** Write the marginals and log Z of equal forests, whose coordinates begin at ``offset``.

Entries that are closed score minus infinity. log Z is minus infinity where no labelling has a
finite score, and NaN where a score is. */
EXPORT status forest_marginals(
    const struct forest_shape *shape, int64_t count, const int64_t *offset N(count), int64_t size,
    const double *score N(size), double *tau N(size), double *log_z N(count));
}
