// Random outcomes: Gibbs sampling of labels, swaps of matchings, paths, and annealed pairings.
//
// ``random`` is a generator of NumPy: the addresses of its state, next_double and next_uint32.
#pragma once
#include "kernel.h"
#include "paths.h"

extern "C" {
/** A graph of labelled variables, and the order in which they are redrawn.

A slot is a variable in the scope of a factor; those around variable v are
around[start[v]:start[v + 1]]. */
struct gibbs_graph {
    int64_t nodes;
    int64_t factors;
    int64_t slots;
    int64_t size;
    const int64_t *node_start N(nodes + 1) BELOW(size + 1);
    const int64_t *table_start N(factors + 1) BELOW(size + 1);
    const int64_t *scope_start N(factors + 1) BELOW(slots + 1);
    const int64_t *scope N(slots) BELOW(nodes);
    const int64_t *owner N(slots) BELOW(factors);
    const int64_t *stride N(slots) BELOW(size + 1);
    const int64_t *start N(nodes + 1) BELOW(slots + 1);
    const int64_t *around N(slots) BELOW(slots);
    const int64_t *order N(nodes) BELOW(nodes);
};

/** Redraw every row's variables given their neighbours, so many sweeps.

Where rows are ``one`` chain, each begins as the row above ended. */
EXPORT status gibbs_sweeps(const struct gibbs_graph *graph, const double *score N(graph.size),
                           int64_t rows, int64_t *states N(rows * graph.nodes), int64_t sweeps,
                           bool one, const int64_t *random N(3));

/** A chain of matchings: ``burn`` moves, and after each ``thin`` more of them a row of ``out``,
which is 0 everywhere before. */
struct matching_chain {
    int64_t count;
    int64_t burn;
    int64_t thin;
    int64_t size;
    const double *score N(size);
    const int64_t *random N(3);
    double *out N(count * size);
};

/** A row asks for a column: moves there if it is free, else swaps with its row. */
EXPORT status swap_columns(const struct matching_chain *chain, int64_t rows, int64_t columns,
                           int64_t *column_of N(rows) BELOW(columns));
/** Two edges ab, cd become ac, bd or ad, bc; one that has no ``place`` is never taken. */
EXPORT void exchange_ends(const struct matching_chain *chain, int64_t nodes,
                          const int64_t *place N(nodes * nodes), int64_t edges,
                          int64_t *pairs N(2 * edges) BELOW(nodes));
/** An edge is added between single nodes, removed, or takes the place of the one in its way.

The chain begins with edges whose ``begin`` is above one half; those to ``keep`` never leave. */
EXPORT status slide_edges(const struct matching_chain *chain, int64_t nodes,
                          const int64_t *ends N(2 * chain.size) BELOW(nodes),
                          const bool *keep N(chain.size), const double *begin N(chain.size));

/** Add random paths to rows of ``out``; arcs leave node v from leaving[v] on of ``by_tail``.

Return 0 where no path has a finite score, else 1. */
EXPORT int64_t draw_paths(const struct dag *graph, const int64_t *by_tail N(graph.usable) BELOW(graph.arcs),
                          const int64_t *leaving N(graph.nodes + 1) BELOW(graph.usable + 1),
                          const double *score N(graph.arcs), const int64_t *random N(3),
                          int64_t count, double *out N(count * graph.arcs));

/** Return the log ratio of one annealing over perfect matchings, whose pairs score ``table``.

At each of the ladder's temperatures as many times as there are pairs two of them are redrawn. */
EXPORT double anneal_pairs(int64_t n, const double *table N(n * n), int64_t steps,
                           const double *ladder N(steps), int64_t count,
                           int64_t *pairs N(2 * count) BELOW(n), const int64_t *random N(3));
}
