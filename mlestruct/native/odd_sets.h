// Cut trees, for odd sets of nodes that a point of a matching's degree polytope breaks.
#pragma once
#include "kernel.h"

extern "C" {
/** Find a cut tree over terminals: parents, and values of least cuts.

``network`` is symmetric. Marks the terminals ``left`` that the tree is over, in whose numbers a set
with a cut below ``cap`` is odd where it is in those of ``terminal``. */
EXPORT status odd_sets_cut_tree(int64_t size, const double *network N(size * size),
                                const bool *terminal N(size), double cap,
                                int64_t *parent N(size), double *value N(size),
                                bool *left N(size));
}
