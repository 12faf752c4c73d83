// Chains whose transitions are tied: scores from weights, marginals, best labels.
#pragma once
#include "kernel.h"

extern "C" {
/** Sequences of positions with the same states each.

Sequence m has the positions from start[m] to start[m + 1] - 1. Rows of states are padded to
``width``, a multiple of eight. */
struct sequences {
    int64_t count;
    const int64_t *start N(count + 1);
    int64_t positions;
    int64_t states;
    int64_t width;
};

/** Write the marginals of chains with one table of transitions, times every chain's weight.

``node`` holds scores, minus infinity where rows are padded, and then the marginals. ``moves`` are
the exponentials of the table after ``top`` was taken off. ``pair`` is the weighted sum of all
factors' marginals. Return 0 where the linear domain may have lost what matters: all results mean
nothing then; else 1. */
EXPORT int64_t tied_marginals(const struct sequences *given, const double *weight N(given.count),
                              double top, const double *moves N(given.states *given.states),
                              double *node N(given.positions *given.width),
                              double *log_z N(given.count),
                              double *pair N(given.states *given.states));

/** Write each sequence's best labels; of equally good labels the first ones.

``node`` holds scores of labels, and is used up; ``pair`` (label, next label) are those of
neighbours. Return 0 where a sequence has no best score that is finite, else 1. */
EXPORT int64_t label_sequences(const struct sequences *given,
                               double *node N(given.positions *given.width),
                               const double *pair N(given.states *given.states),
                               int64_t *label N(given.positions));

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

/** Write the scores of all positions. */
EXPORT void score_positions(const struct shared_weights *given,
                            const double *theta N(given.weights),
                            const double *dense N(given.rows *given.width),
                            double *score N(given.positions *given.width));
/** The way back: add to the gradients of rows, and to those of weights one by one. */
EXPORT void sum_positions(const struct shared_weights *given,
                          const double *score N(given.positions *given.width),
                          double *dense N(given.rows *given.width), double *theta N(given.weights));
}
