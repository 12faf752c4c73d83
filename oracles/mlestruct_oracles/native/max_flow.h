// Minimum cuts of undirected graphs.
#pragma once
#include "kernel.h"

extern "C" {
/** Mark the nodes on the sink's side of a minimum cut, as few as there can be.

The cut is least in Σ capacity of cut edges + Σ |pull| of denied nodes: one with positive pull wants
the sink's side, one with negative pull the source's. Capacities, pulls and flows are whole numbers
of at most 2⁵², and there are at most 2³⁰ edges. ``flow`` along each edge is where to start (any
flow is cut down to the capacities), and then the maximum one. */
EXPORT status max_flow_cut(
    int64_t nodes, int64_t edges, const int64_t *ends N(2 * edges) BELOW(nodes),
    const double *capacity N(edges), const double *pull N(nodes), double *flow N(edges),
    bool *sink N(nodes));
}
