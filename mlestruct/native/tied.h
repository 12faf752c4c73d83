// Weights that positions share: from weights to scores per position, and back.
#pragma once
#include "kernel.h"

extern "C" {
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
