// Steps of convex inference by linear systems in which tables are eliminated.
#pragma once
#include "messages.h"

extern "C" {
/** Points b of one graph, a row each, with slopes and curvatures of what is minimised there. */
struct condensed_points {
    int64_t count;
    int64_t size;
    const double *b N(count *size);
    const double *slope N(count *size);
    const double *curve N(count *size);
};

/** Write each row's Newton step within the local polytope, from any positive point.

Unknowns are the changes of every variable's marginals but one state's: those of variable i are
``begin[i]`` and the following. Those that a factor joins are at most ``width`` apart. What a step
raises the prices of slots' states is added to ``price``. ``least`` is the smallest pivot: where it
is not positive the problem is not convex. */
EXPORT status step_condensed(const struct message_graph *graph,
                             const int64_t *begin N(graph.nodes) BELOW(graph.node_start[-1]),
                             int64_t width, const struct condensed_points *points,
                             double *delta N(points.count *points.size),
                             double *price N(points.count *graph.place[-1]),
                             double *least N(points.count));
}
