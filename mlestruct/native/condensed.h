// Convex inference and its derivatives by linear systems in which tables are eliminated.
#pragma once
#include "kernel.h"

extern "C" {
/** A factor graph compiled for condensed systems: tables eliminated, variables left.

Unknowns are the changes of every variable's marginals but one state's: those of variable i are
free[i] to free[i + 1] - 1. A factor's table must add up to 1, and for every state but one of each
of its variables to that state's marginal: so many rows, from row_start[f] on, and the rows × rows
inverse is kept at square[f].

States of all slots lie one after the other from slot_start[s] on. ``entry`` says which of those
each table entry has, ``unknown`` where a factor's unknowns are in elimination order, and
``unknown_row`` to which row each belongs. A variable's unknowns × unknowns add to the values
``node_map``, a factor's to ``factor_map``.

The matrix is kept as its upper triangle column by column in elimination order: entries of column k
are start[k] to start[k + 1] - 1, in ascending rows, the diagonal last. Its factor's column k has
the entries column[k] to column[k + 1] - 1, and ``reach`` lists the columns with an entry in a row
of the factor. Where the factor is not worth its work, ``direct`` is false. */
struct condensed_graph {
    int64_t nodes;
    int64_t factors;
    bool direct;
    const int64_t *node_start N(nodes + 1);
    const int64_t *table_start N(factors + 1);
    const int64_t *scope_start N(factors + 1);
    const int64_t *scope N(scope_start[-1]) BELOW(nodes);
    const int64_t *free N(nodes + 1);
    const int64_t *row_start N(factors + 1);
    const int64_t *square N(factors + 1);
    const int64_t *slot_start N(scope_start[-1] + 1);
    const int64_t *entry N(entry_at[-1]) BELOW(slot_start[-1]);
    const int64_t *entry_at N(factors + 1);
    const int64_t *unknown_at N(factors + 1);
    const int64_t *unknown N(unknown_at[-1]) BELOW(free[-1]);
    const int64_t *unknown_row N(unknown_at[-1]) BELOW(row_start[-1]);
    const int64_t *node_at N(nodes + 1);
    const int64_t *node_map N(node_at[-1]) BELOW(start[-1]);
    const int64_t *factor_at N(factors + 1);
    const int64_t *factor_map N(factor_at[-1]) BELOW(start[-1]);
    const int64_t *position N(free[-1]) BELOW(free[-1]);
    const int64_t *start N(free[-1] + 1);
    const int64_t *row N(start[-1]) BELOW(free[-1]);
    const int64_t *column N(free[-1] + 1);
    const int64_t *reach_start N(free[-1] + 1);
    const int64_t *reach N(reach_start[-1]) BELOW(free[-1]);
};

/** At most eight examples of one graph: scores, weights of b log b, beliefs and slacks per row.

Beliefs may begin at any positive point. ``phase`` is 0 to majorise, 1 for Newton's method from a
good start, 2 for a point of the interior, or -1 to majorise as long as allowed; 3 is done. Slacks
are 0, or the ratio of μ and b at the end of the path. ``gap`` becomes a bound on what is missing,
in units of the value's size. */
struct condensed_examples {
    int64_t count;
    int64_t size;
    const double *score N(count * size);
    const double *weight N(count * size);
    double *b N(count * size);
    double *slack N(count * size);
    const int64_t *phase N(count);
    double *gap N(count);
};

/** Minimise w·(b log b) − η·b over the local polytope, in place, in at most so many steps. Weights
of variables may be negative. */
EXPORT status descend_condensed(const struct condensed_graph *graph,
                                const struct condensed_examples *examples, int64_t limit,
                                double tol);
/** m = ∂L/∂v of at most eight optima b, ``slope`` being b·∂L/∂b.

m = D⁻¹Aᵀ(A D⁻¹ Aᵀ)⁻¹A D⁻¹ ∂L/∂b − D⁻¹ ∂L/∂b with D = w/b, as a step with ∂L/∂b for gradient. */
EXPORT status respond_condensed(const struct condensed_graph *graph, int64_t count,
                                const double *weight N(count * graph.table_start[-1]),
                                const double *b N(count * graph.table_start[-1]),
                                const double *slope N(count * graph.table_start[-1]),
                                double *out N(count * graph.table_start[-1]));
}
