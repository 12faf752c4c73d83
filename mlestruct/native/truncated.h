// Iterations of messages that are cut short, and the exact way back through them.
#pragma once
#include "kernel.h"

extern "C" {
/** A factor graph with the order in which one iteration visits its factors.

Slots are the variables of the factors' scopes. Every entry of a factor's table has a number for
each of its slots, among the factor's slots' states, in ``state``; those of factor f begin at
pair[f]. Factors of visits group[g] to group[g + 1] - 1 read the same messages; a visit's numbers
begin at tape[v] of an iteration's. A slot has its ``share`` of the counting numbers ``whole``
around its node. */
struct truncated_graph {
    int64_t nodes;
    int64_t factors;
    int64_t visits;
    int64_t groups;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(factors + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(scope_start[-1]) BELOW(nodes);
    const int64_t *place N(scope_start[-1] + 1);
    const int64_t *pair N(factors + 1);
    const int64_t *state N(pair[-1]);
    const int64_t *group N(groups + 1) BELOW(visits + 1);
    const int64_t *factor N(visits) BELOW(factors);
    const int64_t *tape N(visits + 1);
    const double *counts N(factors);
    const double *share N(scope_start[-1]);
    const double *whole N(nodes);
};

/** Some examples side by side, one or eight ``lanes``, and a tape of ``length`` iterations.

There is a set of scores for each iteration; the last serves all that follow. ``table`` holds the
exponentials of factors' scores, as many as scores. */
struct truncated_run {
    int64_t lanes;
    int64_t sets;
    int64_t size;
    int64_t length;
    int64_t width;
    const double *score N(sets * size * lanes);
    const double *table N(sets * size * lanes);
    double *near N(length * width * lanes);
    double *sums N(length * width * lanes);
};

/** Send messages in all iterations; beliefs and messages are logarithms unless ``linear``. */
EXPORT void send_truncated(const struct truncated_graph *graph, const struct truncated_run *run,
                           bool linear, double *belief N(graph.node_start[-1] * run.lanes),
                           double *message N(graph.place[-1] * run.lanes));
/** Take slopes by logarithms of beliefs and messages back through the same iterations, and add the
slopes by scores to ``slope``. */
EXPORT status unsend_truncated(const struct truncated_graph *graph,
                               const struct truncated_run *run,
                               double *belief N(graph.node_start[-1] * run.lanes),
                               double *message N(graph.place[-1] * run.lanes),
                               double *slope N(run.sets * run.size * run.lanes));
}
