// Heaviest matchings of general graphs by the blossom algorithm.
#pragma once
#include "kernel.h"

extern "C" {
/** A matching and the duals that prove it, or why there is no perfect one.

``partner`` is -1 for nodes that stay single. Odd set ``s`` holds the nodes
``order[first[s]:last[s]]`` and has the dual ``z[s]``. ``witness`` is written where no perfect
matching exists: the outer group that a node lies in, -1 for separating nodes, -2 for others; of a
node without any edge it is not, and that node's ``y`` is then minus infinity. */
struct blossom_answer {
    int64_t n;
    int64_t *partner N(n);
    double *y N(n);
    int64_t *order N(n);
    int64_t *first N(n);
    int64_t *last N(n);
    double *z N(n);
    int64_t *witness N(n);
};
/** Match the graph with these weights: symmetric, without NaN, minus infinity forbids an edge.

Weights on the diagonal must be finite or minus infinity. Return the number of odd sets, or -1 where
no perfect matching exists. */
EXPORT int64_t blossom_dense(const double *weights N(answer.n * answer.n), bool perfect,
                             const struct blossom_answer *answer);
/** The same for a graph with these edges, whose weights are finite. */
EXPORT int64_t blossom_sparse(int64_t edges, const int64_t *ends N(2 * edges) BELOW(answer.n),
                              const double *weights N(edges), bool perfect,
                              const struct blossom_answer *answer);
/** Write a complete graph's scores as a symmetric table, minus infinity on the diagonal. */
EXPORT void blossom_table(int64_t n, const double *score N((n * n - n) / 2),
                          double *table N(n * n));
}
