// Binary pairwise models made ready for a minimum cut, and answers read off it.
#pragma once
#include "kernel.h"

extern "C" {
/** Models over the same edges: scores of the states of nodes, and of the pairs of states of edges.

Every edge joins two different nodes. */
struct pairwise {
    int64_t models;
    int64_t nodes;
    int64_t edges;
    const int64_t *ends N(2 * edges) BELOW(nodes);
    const double *unary N(models * nodes * 2);
    const double *pair N(models * edges * 4);
};

/** Models in signed form and whole numbers: the scores' times two to the power of ``shift``.

:func:`qpbo_flow_graph` finds ``flip`` (1 or -1) and ``balanced``: whether flipping these nodes
makes all couplings of a node's component attract. */
struct signed_models {
    int64_t models;
    int64_t nodes;
    int64_t edges;
    const int64_t *ends N(2 * edges) BELOW(nodes);
    const double *field N(models * nodes);
    const double *coupling N(models * edges);
    const int64_t *shift N(models);
    int8_t *flip N(models * nodes);
    bool *balanced N(models * nodes);
};

/** Where an earlier solve of the models ended: flow along the (at most two) arcs of every edge, in
units of two to the power of minus ``shift``, and ``layout``, which arcs these were. */
struct last_flows {
    int64_t models;
    int64_t edges;
    double *flow N(models * edges * 2);
    int8_t *layout N(models * edges);
    int64_t *shift N(models);
};

/** Copy the scores, with costs in the place of −inf that every best vertex avoids if any point can.

Return -1, or the first model without such a point, times nodes + edges, plus the number of a node
whose states are all forbidden, or nodes + that of an edge. */
EXPORT int64_t qpbo_soften(
    const struct pairwise *p, double *unary N(p.models * p.nodes * 2),
    double *pair N(p.models * p.edges * 4));

/** Write field and coupling of all models, and the sum of all rounding errors made in them. */
EXPORT status qpbo_signed_form(
    const struct pairwise *p, double *field N(p.models * p.nodes),
    double *coupling N(p.models * p.edges), double *error N(p.models));

/** Scale field (in place) and coupling by powers of two up to 2⁵², and round them.

``slack`` is the error of both, and then what all rounding may cost a score. */
EXPORT void qpbo_whole(
    const struct pairwise *p, double *field N(p.models * p.nodes),
    const double *coupling N(p.models * p.edges), double *rounded N(p.models * p.edges),
    double *slack N(p.models), int64_t *shift N(p.models));

/** Find which nodes to flip, and write one flow graph for all models.

A balanced node is one flow node, any other is two; ``first`` is a node's first one. There are up
to two edges for an edge; return how many there are. */
EXPORT int64_t qpbo_flow_graph(
    const struct signed_models *s, int64_t *first N(s.models * s.nodes),
    int64_t *ends N(s.models * s.edges * 4), double *capacity N(s.models * s.edges * 2),
    double *pull N(s.models * s.nodes * 2));

/** Write the last solve's flows, in the new unit, in the order of the flow graph's edges.

Flow is zero where an edge's arcs are others now. ``last`` takes on the new layout and unit. */
EXPORT void qpbo_resume(
    const struct signed_models *s, const struct last_flows *last,
    double *flow N(s.models * s.edges * 2));

/** Keep the flows of a solve whose layout ``last`` has taken on. */
EXPORT void qpbo_keep(
    const struct last_flows *last, const double *flow N(last.models * last.edges * 2));

/** Read 2 s off a cut: 1 or -1, or 0 where both flow nodes of a node are on the same side.

Zeros are left in components only that cannot be balanced. */
EXPORT status qpbo_sides(
    const struct signed_models *s, int64_t flow_nodes,
    const int64_t *first N(s.models * s.nodes) BELOW(flow_nodes), const bool *sink N(flow_nodes),
    int8_t *side N(s.models * s.nodes));

/** Write the tables of half-integral sides, and bounds on their scores from above.

``upper`` holds what rounding of the scores may have cost, and then the bounds. Return the first
model that uses a forbidden entry, or -1. */
EXPORT int64_t qpbo_complete(
    const struct pairwise *p, const double *coupling N(p.models * p.edges),
    const int8_t *side N(p.models * p.nodes), double *node N(p.models * p.nodes * 2),
    double *edge N(p.models * p.edges * 4), double *upper N(p.models));
}
