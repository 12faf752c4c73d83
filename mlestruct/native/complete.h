// Sums over pairs u < v of a complete graph, listed row by row.
#pragma once
#include "kernel.h"

extern "C" {
/** Answers of nodes: where each stands among all levels, ``levels`` where it is missing.

Those of question q are first[q] to first[q + 1] - 1, its tables begin at start[q] of so many. */
struct pair_answers {
    int64_t nodes;
    int64_t questions;
    int64_t levels;
    int64_t tables;
    const int64_t *at N(nodes * questions) BELOW(levels + 1);
    const int64_t *first N(questions + 1) BELOW(levels + 1);
    const int64_t *start N(questions + 1) BELOW(tables + 1);
};
/** Sum the pairs of every node. */
EXPORT void pairs_sums(int64_t nodes, const double *flat N(nodes * (nodes - 1) / 2),
                       double *out N(nodes));
/** Add to out[(q, k, l), (r, k', l')] the pairs whose nodes have q: k, l and r: k', l'; q <= r.

Only pairs whose first node is from ``low`` to ``high`` - 1. */
EXPORT status pairs_meetings(const struct pair_answers *answers,
                             const double *flat N(answers.nodes * (answers.nodes - 1) / 2),
                             int64_t low, int64_t high,
                             double *out N(answers.tables * answers.tables));
}
