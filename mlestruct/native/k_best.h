// The k best labellings of chains.
#pragma once
#include "kernel.h"

extern "C" {
/** Write the k best sequences of states and their scores, best first; return how many there are.

``nodes`` are scores of states, ``steps`` those of transitions (state, next state); minus infinity
where one is forbidden. O(n K^2 + k n K). */
EXPORT int64_t best_sequences(int64_t n, int64_t states, const double *nodes N(n * states),
                              const double *steps N((n - 1) * states * states), int64_t k,
                              int64_t *sequence N(k * n), double *score N(k));
}
