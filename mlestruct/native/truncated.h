// Iterations of messages that are cut short, and the exact way back through them.
#pragma once
#include "messages.h"

extern "C" {
/** The order in which one iteration visits a graph's factors.

Factors of visits group[g] to group[g + 1] - 1 read the same messages; a visit's numbers begin at
tape[v] of an iteration's. */
struct truncated_order {
    int64_t visits;
    int64_t groups;
    int64_t factors;
    const int64_t *group N(groups + 1) BELOW(visits + 1);
    const int64_t *factor N(visits) BELOW(factors);
    const int64_t *tape N(visits + 1);
};

/** Eight examples side by side, and a tape of ``length`` iterations.

There is a set of scores for each iteration; the last serves all that follow. ``table`` holds the
exponentials of factors' scores, as many as scores. */
struct truncated_run {
    int64_t sets;
    int64_t size;
    int64_t length;
    int64_t width;
    const double *score N(sets * size * 8);
    const double *table N(sets * size * 8);
    double *near N(length * width * 8);
    double *sums N(length * width * 8);
};

/** Send messages in all iterations; beliefs and messages are logarithms. */
EXPORT status send_truncated(const struct message_graph *graph, const struct truncated_order *order,
                             const struct truncated_run *run,
                             double *belief N(graph.node_start[-1] * 8),
                             double *message N(graph.place[-1] * 8));
/** Take slopes by logarithms of beliefs and messages back through the same iterations, and add the
slopes by scores to ``slope``. */
EXPORT status unsend_truncated(const struct message_graph *graph,
                               const struct truncated_order *order, const struct truncated_run *run,
                               double *belief N(graph.node_start[-1] * 8),
                               double *message N(graph.place[-1] * 8),
                               double *slope N(run.sets *run.size * 8));
}
