// Sequential tree-reweighted messages: labellings of pairwise graphs, and bounds on the best.
#pragma once
#include "kernel.h"

extern "C" {
/** A pairwise graph with an order of its nodes: their numbers.

``around`` holds every node's edges (from ``start`` on): entry k is edge k // 2 seen from its end
k % 2. The message of edge e to its end s starts at ``message[2 * e + s]``. ``gamma`` is 1 / the
number of monotone chains through a node. ``rounding``, times the sum of all sizes of scores, is
what sums of messages may lose. Coordinates (``size`` of them) marked in ``shut`` are forbidden. */
struct node_order {
    int64_t nodes;
    int64_t edges;
    int64_t size;
    double rounding;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(edges + 1);
    const int64_t *ends N(2 * edges) BELOW(nodes);
    const int64_t *start N(nodes + 1) BELOW(2 * edges + 1);
    const int64_t *around N(2 * edges) BELOW(2 * edges);
    const int64_t *message N(2 * edges + 1);
    const double *gamma N(nodes);
    const bool *shut MAYBE N(size);
};

/** Examples to solve, each in at most so many passes, and how far that has come.

An example's scores lie at its offset, its vertex (zeros before) is written there. ``upper`` is its
bound, -inf if the labelling that was found is forbidden.
``progress`` begins as zeros: the example at work, its passes so far, its bound, the best score
reached, and the bound at the last check; ``messages`` and ``labels`` (the best so far) are that
example's. */
struct message_task {
    int64_t count;
    int64_t total;
    int64_t nodes;
    int64_t room;
    int64_t passes;
    double tol;
    const int64_t *offsets N(count);
    const double *scores N(total);
    double *vertices N(total);
    double *upper N(count);
    double *messages N(room);
    int64_t *labels N(nodes);
    double *progress N(5);
};

/** Go on with the examples for a tenth of a second or so. Return how many are solved. */
EXPORT int64_t trw_s_solve(const struct node_order *g, const struct message_task *task);
}
