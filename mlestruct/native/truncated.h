// Iterations of messages or mean field that are cut short, and the exact way back through them.
#pragma once
#include "kernel.h"

extern "C" {
/** A factor graph with the order in which one iteration visits its factors.

Slots are the variables of the factors' scopes, and ``slot`` lists those around every node. Every
entry of a factor's table has a number for each of its slots: among the factor's slots' states in
``state``, among all nodes' states in ``node``; those of factor f begin at pair[f]. Factors of
visits group[g] to group[g + 1] - 1 read the same messages; a visit's numbers begin at tape[v] of
an iteration's. A slot has its ``share`` of the counting numbers ``whole`` around its node. */
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
    const int64_t *node N(pair[-1]) BELOW(node_start[-1]);
    const int64_t *start N(nodes + 1);
    const int64_t *slot N(scope_start[-1]) BELOW(scope_start[-1]);
    const int64_t *owner N(scope_start[-1]) BELOW(factors);
    const int64_t *group N(groups + 1) BELOW(visits + 1);
    const int64_t *factor N(visits) BELOW(factors);
    const int64_t *tape N(visits + 1);
    const double *counts N(factors);
    const double *share N(scope_start[-1]);
    const double *whole N(nodes);
};

/** Some examples side by side, one or eight ``lanes``, and a tape of ``length`` iterations.

There is a set of scores for each iteration; the last serves all that follow. ``table`` holds the
exponentials of factors' scores, as many as scores; mean field has no ``table`` and no ``sums``. */
struct truncated_run {
    int64_t lanes;
    int64_t sets;
    int64_t size;
    int64_t length;
    int64_t width;
    const double *score N(sets * size * lanes);
    const double *table MAYBE N(sets * size * lanes);
    double *near N(length * width * lanes);
    double *sums MAYBE N(length * width * lanes);
};

/** Write the exponentials of factors' scores and the first set's logarithms of beliefs.

Return whether the scores around every node range over so little that beliefs may be exponentiated;
``reach`` is scratch. */
EXPORT bool begin_truncated(const struct truncated_graph *graph, int64_t sets, int64_t lanes,
                            const double *score N(sets * graph.table_start[-1] * lanes),
                            double *table N(sets * graph.table_start[-1] * lanes),
                            double *belief N(graph.node_start[-1] * lanes),
                            double *reach N(graph.nodes * lanes));
/** Replace tables by their exponentials, each divided by its sum. */
EXPORT void normalise_tables(int64_t tables, const int64_t *start N(tables + 1), int64_t lanes,
                             double *x N(start[-1] * lanes));

/** Send messages in iterations begin to end - 1; beliefs and messages are logarithms unless
``linear``. */
EXPORT void send_truncated(const struct truncated_graph *graph, const struct truncated_run *run,
                           bool linear, int64_t begin, int64_t end,
                           double *belief N(graph.node_start[-1] * run.lanes),
                           double *message N(graph.place[-1] * run.lanes));
/** Take slopes by logarithms of beliefs and messages back through the same iterations, and add the
slopes by scores to ``slope``. */
EXPORT status unsend_truncated(const struct truncated_graph *graph,
                               const struct truncated_run *run, int64_t begin, int64_t end,
                               double *belief N(graph.node_start[-1] * run.lanes),
                               double *message N(graph.place[-1] * run.lanes),
                               double *slope N(run.sets * run.size * run.lanes));

/** Sweep over the nodes in iterations begin to end - 1 of mean field. */
EXPORT void sweep_truncated(const struct truncated_graph *graph, const struct truncated_run *run,
                            int64_t begin, int64_t end,
                            double *q N(graph.node_start[-1] * run.lanes));
/** Take slopes by logarithms of q, and q itself, back through the same sweeps. */
EXPORT void unsweep_truncated(const struct truncated_graph *graph, const struct truncated_run *run,
                              int64_t begin, int64_t end,
                              double *q N(graph.node_start[-1] * run.lanes),
                              double *log_q N(graph.node_start[-1] * run.lanes),
                              double *slope N(run.sets * run.size * run.lanes));
}
