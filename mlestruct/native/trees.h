// Edge weights shared between the ends of edges.
#pragma once
#include "kernel.h"

extern "C" {
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
