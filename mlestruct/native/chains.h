// Marginals and best labels of chains.
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
EXPORT int64_t tied_marginals(
    const struct sequences *given, const double *weight N(given.count), double top,
    const double *moves N(given.states * given.states),
    double *node N(given.positions * given.width), double *log_z N(given.count),
    double *pair N(given.states * given.states));

/** Write each sequence's best labels; of equally good labels the first ones.

``node`` holds scores of labels, and is used up; ``pair`` (label, next label) are those of
neighbours. Return 0 where a sequence has no best score that is finite, else 1. */
EXPORT int64_t label_sequences(
    const struct sequences *given, double *node N(given.positions * given.width),
    const double *pair N(given.states * given.states), int64_t *label N(given.positions));
}
