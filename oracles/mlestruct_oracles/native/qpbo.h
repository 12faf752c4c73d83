// Binary pairwise models: best vertices of the local polytope, or labellings, by minimum cuts.
#pragma once
#include "kernel.h"

extern "C" {
/** Models over the same edges, each of which joins two different nodes.

A model's scores are those of the states of nodes, and then of the pairs of states of edges; one of
minus infinity forbids its entry. */
struct pairwise {
    int64_t models;
    int64_t nodes;
    int64_t edges;
    const int64_t *ends N(2 * edges) BELOW(nodes);
    const double *score N(models * (2 * nodes + 4 * edges));
};

/** Write the tables of best vertices, and bounds on the best scores, none below what they reach.

With ``attractive`` no edge may repel. ``sink`` is the side of every node of a cut of
:func:`qpbo_network`'s graph that is known. Return 0, or why there is no answer, and the model and
node, edge or score at ``place``: 1, all states of a node are forbidden; 2, all of an edge is; 3, an edge
repels; 4, every answer uses a forbidden entry; 5, a score is none or too large. */
EXPORT int64_t qpbo_solve(
    const struct pairwise *p, bool attractive, const bool *sink N(2 * p.nodes) MAYBE,
    double *vertex N(p.models * (2 * p.nodes + 4 * p.edges)), double *upper N(p.models),
    int64_t *place N(2));

/** Write the flow graph of the first model, whose nodes and edges are counted at ``place``.

The cut is to be least in capacities of cut edges + |pull| of denied nodes: one with positive pull
wants the sink's side, one with negative pull the source's. All are whole numbers up to 2⁵². Return
as :func:`qpbo_solve` does. */
EXPORT int64_t qpbo_network(
    const struct pairwise *p, bool attractive, int64_t *ends N(4 * p.edges),
    double *capacity N(2 * p.edges), double *pull N(2 * p.nodes), int64_t *place N(2));
}
