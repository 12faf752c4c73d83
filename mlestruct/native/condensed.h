// Steps of convex inference by linear systems in which tables are eliminated.
#pragma once
#include "kernel.h"

extern "C" {
/** A factor graph compiled for condensed systems: tables eliminated, variables left.

Unknowns are the changes of every variable's marginals but one state's, variable after variable.
States of all slots lie one after the other from slot_start[s] on; ``entry`` says which of those
each table entry has, in each of its factor's slots. ``position`` is an unknown's place in
elimination order, and ``unknown`` lists the places of every slot's unknowns.

The system's matrix has its entries beside the diagonal where its factor L has some, row by row:
``reach`` lists the columns of row k from reach_start[k] on. The diagonal follows. Column k of L has
the entries column[k] to column[k + 1] - 1. ``map`` says where the pairs of every variable's
unknowns add to the matrix, then those of every factor's. */
struct condensed_graph {
    int64_t nodes;
    int64_t factors;
    int64_t unknowns;
    int64_t entries;
    int64_t pairs;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(factors + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(scope_start[-1]) BELOW(nodes);
    const int64_t *slot_start N(scope_start[-1] + 1);
    const int64_t *entry N(entries) BELOW(slot_start[-1]);
    const int64_t *position N(unknowns) BELOW(unknowns);
    const int64_t *unknown N(slot_start[-1] - scope_start[-1]) BELOW(unknowns);
    const int64_t *map N(pairs) BELOW(reach_start[-1] + unknowns);
    const int64_t *column N(unknowns + 1);
    const int64_t *reach_start N(unknowns + 1);
    const int64_t *reach N(reach_start[-1]) BELOW(unknowns);
};

/** Points b of one graph, a row each, with slopes and curvatures of what is minimised there. */
struct condensed_points {
    int64_t count;
    int64_t size;
    const double *b N(count * size);
    const double *slope N(count * size);
    const double *curve N(count * size);
};

/** Write each row's Newton step within the local polytope, from any positive point.

What it raises the prices of slots' states, then of factors' totals, is added to ``price``.
``least`` is the smallest pivot: where it is not positive the problem is not convex. */
EXPORT status step_condensed(
    const struct condensed_graph *graph, const struct condensed_points *points,
    double *delta N(points.count * points.size),
    double *price N(points.count * (graph.slot_start[-1] + graph.factors)),
    double *least N(points.count));
}
