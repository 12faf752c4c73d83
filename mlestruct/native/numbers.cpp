// Exponentials and logarithms as all kernels take them: eight together, and the rest one by one.
#include "numbers.h"

#include "lanes.h"

void exponentials(int64_t size, const double *x, double *out) {
    int64_t k = 0;
    for (; k + EIGHT <= size; k += EIGHT) store(out + k, exponential(load(x + k)));
    for (; k < size; ++k) out[k] = exponential(x[k]);
}

void logarithms(int64_t size, const double *x, double *out) {
    int64_t k = 0;
    for (; k + EIGHT <= size; k += EIGHT) store(out + k, logarithm(load(x + k)));
    for (; k < size; ++k) out[k] = logarithm(x[k]);
}
