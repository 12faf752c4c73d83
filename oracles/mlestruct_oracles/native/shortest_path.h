// The heaviest path of a graph without cycles.
#pragma once
#include "kernel.h"

extern "C" {
/** Arcs (tail, head) between nodes; ``order`` has those to use in topological order of tails. */
struct acyclic_graph {
    int64_t nodes;
    int64_t arcs;
    int64_t usable;
    int64_t source;
    int64_t sink;
    const int64_t *ends N(2 * arcs) BELOW(nodes);
    const int64_t *order N(usable) BELOW(arcs);
};

/** Write 1 at the arcs of every example's heaviest path from source to sink, and its score.

An example's scores, of any sign, lie at its offset. Return the first example without a path, or
-1. */
EXPORT int64_t shortest_path_solve(
    const struct acyclic_graph *g, int64_t count, const int64_t *offsets N(count),
    int64_t size, const double *scores N(size), double *vertices N(size), double *upper N(count));
}
