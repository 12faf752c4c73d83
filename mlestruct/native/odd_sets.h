// Odd sets of nodes that a point of a matching's degree polytope breaks.
#pragma once
#include "kernel.h"

extern "C" {
/** Edges as a network: one node more than ``nodes`` takes what nodes that may be single have left.

Odd sets are those with an odd number of terminals. */
struct odd_network {
    int64_t nodes;
    int64_t size;
    int64_t edges;
    const int32_t *ends N(2 * edges) BELOW(nodes);
    const bool *terminal N(size);
};
/** Write the capacities that edges and slacks have at tau. */
EXPORT void odd_sets_fill(const struct odd_network *odd, const double *tau N(odd.edges),
                          double *network N(odd.size * odd.size));
/** Mark the rows in which no odd set's cut is below a limit. */
EXPORT status odd_sets_keep(const struct odd_network *odd, int64_t count,
                            const double *rows N(count * odd.edges), double below,
                            bool *kept N(count));
/** Find a cut tree over terminals: parents, and values of least cuts.

``network`` is symmetric. Marks the terminals ``left`` that the tree is over, in whose numbers a set
with a cut below ``cap`` is odd where it is in those of ``terminal``. */
EXPORT status odd_sets_cut_tree(int64_t size, const double *network N(size * size),
                                const bool *terminal N(size), double cap,
                                int64_t *parent N(size), double *value N(size),
                                bool *left N(size));
}
