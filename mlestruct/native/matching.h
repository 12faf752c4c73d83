// Marginals of matchings over the degree polytope, for every common counting number rho.
#pragma once
#include "kernel.h"

extern "C" {
/** The live edges of matchings: edges ``ptr[u]`` to ``ptr[u + 1]`` have tail u, heads ascending.

Nodes that are ``strict`` are saturated, all others may stay single. On a graph with two sides every
tail is on one of them, every head on the other. A complete bipartite graph is a table of rows and columns, which are 0 otherwise. */
struct matching_graph {
    int64_t nodes;
    int64_t live;
    const int64_t *ptr N(nodes + 1);
    const int32_t *head N(live) BELOW(nodes);
    const bool *strict N(nodes);
    bool two_sided;
    int64_t rows;
    int64_t columns;
};
/** The entropy, and where inference stops: an edge has tau / (1 - tau)^(1 - 2 rho) = exp(score -
x_u - x_v), a node that may stay single the slack exp(-x / rho). */
struct matching_aim {
    double rho;
    double residual;
    int64_t sweeps;
};
/** Where inference starts and ends: prices of nodes, messages (above rho = 1/2), which are in use.

``report`` is of the last example that was scaled: the largest error of a degree, the sweeps, the
largest tau, Newton's steps, and the most turns of conjugate gradients in a step. */
struct matching_state {
    int64_t count;
    int64_t nodes;
    int64_t live;
    double *x N(count * nodes);
    double *sent N(2 * count * live) MAYBE;
    uint8_t *mode N(count);
    double *report N(5);
};
/** A node-wise bound's answer to prices: tau, and slope and Hessian of twice the bound. */
struct matching_response {
    int64_t nodes;
    int64_t live;
    double *tau N(live);
    double *slope N(nodes);
    double *curvature N(nodes * nodes);
    double *value N(1);
};
/** Infer every example from where its last call ended, else from a cold start; tau is feasible.

Where an example's mode is 4 afterwards (above rho = 1/2 only), the caller is to find the least of
its node-wise bound from prices ``x``, and its tau and log Z. */
EXPORT status matching_infer(const struct matching_graph *graph, const struct matching_aim *aim,
                             const struct matching_state *state,
                             const double *score N(state.count * graph.live),
                             const double *centre N(graph.live),
                             double *tau N(state.count * graph.live), double *log_z N(state.count));
/** Move tau to where every degree fits; ``centre`` is a feasible point that is positive. */
EXPORT status matching_mend(const struct matching_graph *graph, double *tau N(graph.live),
                            const double *centre N(graph.live));
/** Write a bound on log Z at any prices: the dual value, for rho above 1/2 the nodes' own bounds. */
EXPORT status matching_bound(const struct matching_graph *graph, double rho, int64_t count,
                             const double *scores N(count * graph.live),
                             const double *x N(count * graph.nodes), double *values N(count));
/** Write what all nodes choose at these prices. */
EXPORT status matching_respond(const struct matching_graph *graph, double rho,
                               const double *score N(graph.live), const double *x N(graph.nodes),
                               const struct matching_response *response);
}
