// Descent on the Bethe free energy of graphs of binary pairs.
#pragma once
#include "kernel.h"

extern "C" {
/** Graphs of binary pairs, one after the other, with energies -E = constant + theta . x + sum W x_i x_j.

Nodes of example m begin at node_start[m] and edges at edge_start[m]; ``held`` nodes stay. */
struct bethe_graphs {
    int64_t count;
    int64_t nodes;
    int64_t edges;
    const int64_t *node_start N(count + 1) BELOW(nodes + 1);
    const int64_t *edge_start N(count + 1) BELOW(edges + 1);
    const int64_t *left N(edges) BELOW(nodes);
    const int64_t *right N(edges) BELOW(nodes);
    const double *theta N(nodes);
    const double *W N(edges);
    const double *constant N(count);
    const bool *held N(nodes);
};

/** Where descents are: logits a and the slopes of F by marginals there; of every example F before
and after, the largest slope by a logit, the length of the next step (0: not begun), steps taken. */
struct bethe_state {
    int64_t count;
    int64_t nodes;
    double *a N(nodes);
    double *slope N(nodes);
    double *before N(count);
    double *after N(count);
    double *residual N(count);
    double *length N(count);
    int64_t *taken N(count);
};

/** Take steps of every example until so many are taken, or slopes by logits are at most ``tol``;
``plain`` ones go down these slopes. Return how many examples go on, after at most ``turns``
evaluations each. */
EXPORT int64_t descend_bethe(const struct bethe_graphs *graphs, int64_t steps, double tol,
                             bool plain, int64_t turns, const struct bethe_state *state);

/** Ends of pairs: p and q with what they lack to 1, and couplings. */
struct pair_ends {
    int64_t count;
    const double *W N(count);
    const double *p N(count);
    const double *p0 N(count);
    const double *q N(count);
    const double *q0 N(count);
};
/** Write the tables [P11, P10, P01, P00] that minimise -W P11 - H given their ends, cell by cell. */
EXPORT void fill_pairs(const struct pair_ends *ends, double *cells N(4 * ends.count));
}
