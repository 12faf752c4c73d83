// Cut trees, for odd sets of nodes that a point of a matching's degree polytope breaks.
#pragma once
#include "kernel.h"

extern "C" {
/** Find a cut tree over the terminals, of which node 0 is one: parents, and values of least cuts.

``network`` is symmetric. Nodes that no cut below ``cap`` parts have an infinite value or one of at
least ``cap``. */
EXPORT status odd_sets_cut_tree(int64_t size, const double *network N(size * size),
                                const bool *terminal N(size), double cap,
                                int64_t *parent N(size), double *value N(size));
}
