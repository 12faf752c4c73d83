// Spanning trees: entries of an inverse, and edge weights shared between the ends of edges.
#pragma once
#include "kernel.h"

extern "C" {
/** The factors L and D of a sparse matrix L D L', by columns, the diagonal's entry first. */
struct sparse_factor {
    int64_t columns;
    int64_t entries;
    const int32_t *start N(columns + 1) BELOW(entries + 1);
    const int32_t *row N(entries) BELOW(columns);
    const double *lower N(entries);
    const double *pivot N(columns);
};

/** Write the inverse where L has entries, from the column before ``column`` down to 0.

Return the column where to go on, once as many products as ``work`` were made; else 0. */
EXPORT int64_t invert_columns(const struct sparse_factor *factor, int64_t column, int64_t work,
                              double *inverse N(factor.entries));

/** Write G_jj - G_ij for both ends i of every edge, of the inverse G.

Ends count from 1 on; those that are 0 are grounded, and have zeros there. */
EXPORT void inverse_differences(
    const struct sparse_factor *factor, const double *inverse N(factor.entries), int64_t edges,
    const int64_t *ends N(2 * edges) BELOW(factor.columns + 1), double *out N(2 * edges));

/** Edge weights that are shared between two ends each, so that no node holds more than its room.

From start[v] on ``around`` names the shares at node v, 2 e + side. ``came`` is -1 everywhere. */
struct edge_shares {
    int64_t nodes;
    int64_t edges;
    const int64_t *ends N(2 * edges) BELOW(nodes);
    const int64_t *start N(nodes + 1) BELOW(2 * edges + 1);
    const int64_t *around N(2 * edges) BELOW(2 * edges);
    double *share N(2 * edges);
    double *load N(nodes);
    double *room N(nodes);
    int64_t *came N(nodes);
    int64_t *queue N(nodes);
};

/** Move what node v holds above its room to nodes with room left, along shortest paths.

Return 0 where that is impossible, else 1. */
EXPORT int64_t relieve_node(const struct edge_shares *shares, int64_t v, double tol);
}
