// Weights that positions share: from weights to scores per position, and back.
#pragma once
#include "kernel.h"

extern "C" {
/** Graphs whose variables have as many states each, and whose factors tables of one size.

Coordinates of example m begin at offset[m]: first its variables' states, then its factors' tables.
It has the variables from node_start[m] to node_start[m + 1] - 1, and factors likewise. */
struct tied_graphs {
    int64_t count;
    const int64_t *offset N(count + 1);
    const int64_t *node_start N(count + 1);
    const int64_t *factor_start N(count + 1);
    int64_t states;
    int64_t table;
};

/** Copy a row per variable to where its states are among the coordinates. */
EXPORT void scatter_nodes(const struct tied_graphs *graphs,
                          const double *rows N(graphs.node_start[-1] * graphs.states),
                          double *flat N(graphs.offset[-1]));
/** Copy a row per factor to where its table is among the coordinates. */
EXPORT void scatter_factors(const struct tied_graphs *graphs,
                            const double *rows N(graphs.factor_start[-1] * graphs.table),
                            double *flat N(graphs.offset[-1]));
/** Write so many times one table to where every factor's table is. */
EXPORT void scatter_table(const struct tied_graphs *graphs,
                          const double *times N(graphs.factor_start[-1]),
                          const double *one N(graphs.table), double *flat N(graphs.offset[-1]));
/** Copy every variable's coordinates to its row. */
EXPORT void gather_nodes(const struct tied_graphs *graphs, const double *flat N(graphs.offset[-1]),
                         double *rows N(graphs.node_start[-1] * graphs.states));
/** Copy every factor's coordinates to its row. */
EXPORT void gather_factors(const struct tied_graphs *graphs,
                           const double *flat N(graphs.offset[-1]),
                           double *rows N(graphs.factor_start[-1] * graphs.table));
/** Add so many times every factor's table to one. */
EXPORT void gather_table(const struct tied_graphs *graphs,
                         const double *flat N(graphs.offset[-1]),
                         const double *times N(graphs.factor_start[-1]),
                         double *one N(graphs.table));

/** Add to each example's sums its rows of features, so many times; rows of example m end at
start[m + 1]. */
EXPORT void sum_examples(int64_t count, const int64_t *start N(count + 1), int64_t width,
                         const double *times N(start[-1]), const double *rows N(start[-1] * width),
                         double *sums N(count * width));

/** Attributes of positions, as a sparse matrix in rows. */
struct attribute_rows {
    int64_t positions;
    int64_t columns;
    const int64_t *start N(positions + 1);
    const int32_t *index N(start[-1]) BELOW(columns);
    const double *value N(start[-1]);
};

/** Add the weights of every position's attributes to its row of scores, of ``width`` numbers. */
EXPORT void add_weights(const struct attribute_rows *given, int64_t states, int64_t width,
                        const double *theta N(given.columns * states),
                        double *score N(given.positions * width));
/** As ``add_weights``, where attribute a has the weights first[a] to first[a + 1] - 1 only, for the
states in ``label``. */
EXPORT void add_some_weights(const struct attribute_rows *given, int64_t weights,
                             const int64_t *first N(given.columns + 1) BELOW(weights + 1),
                             const int64_t *label N(weights) BELOW(width),
                             const double *theta N(weights), int64_t width,
                             double *score N(given.positions * width));

/** Attributes of positions: those with whole rows of weights, and all others' weights one by one.

Position i has the rows from start[i] on so many ``times``; and from first[i] on, weights of number
``weight``, each for one state, ``some`` times. Rows of states are padded to ``width``, a multiple
of eight. */
struct shared_weights {
    int64_t positions;
    int64_t states;
    int64_t width;
    int64_t rows;
    int64_t weights;
    const int64_t *start N(positions + 1);
    const int32_t *row N(start[-1]) BELOW(rows);
    const double *times N(start[-1]);
    const int64_t *first N(positions + 1);
    const int32_t *weight N(first[-1]) BELOW(weights);
    const int32_t *state N(first[-1]) BELOW(states);
    const double *some N(first[-1]);
};

/** Write the scores of all positions, minus infinity where rows are padded. */
EXPORT void score_positions(const struct shared_weights *given,
                            const double *theta N(given.weights),
                            const double *dense N(given.rows * given.width),
                            double *score N(given.positions * given.width));
/** The way back: add to the gradients of rows, and to those of weights one by one. */
EXPORT void sum_positions(const struct shared_weights *given,
                          const double *score N(given.positions * given.width),
                          double *dense N(given.rows * given.width),
                          double *theta N(given.weights));
}
