// Sums over paths through a directed graph without cycles.
#pragma once
#include "kernel.h"

extern "C" {
/** Paths from a source to a sink: two ends per arc, and the arcs that paths may use in an order in
which every arc comes after those that lead to it. */
struct dag {
    int64_t nodes;
    int64_t source;
    int64_t sink;
    int64_t arcs;
    int64_t usable;
    const int64_t *ends N(2 * arcs) BELOW(nodes);
    const int64_t *order N(usable) BELOW(arcs);
};

/** Write log Z of every row of scores, minus infinity where no path has a finite score, and the
probability of every arc that paths may use. */
EXPORT status path_marginals(
    const struct dag *graph, int64_t count, const double *score N(count * graph.arcs),
    double *tau N(count * graph.arcs), double *log_z N(count));

/** Write the log sum over all paths from every node to the sink. */
EXPORT void sums_to_sink(const struct dag *graph, const double *score N(graph.arcs),
                         double *after N(graph.nodes));
}
