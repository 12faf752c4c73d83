// Exponentials and logarithms as all kernels take them.
#pragma once
#include "kernel.h"

extern "C" {
/** Write e^x for exponents up to 700; 0 from -708 down. */
EXPORT void exponentials(int64_t size, const double *x N(size), double *out N(size));
/** Write ln x of positive normal numbers. */
EXPORT void logarithms(int64_t size, const double *x N(size), double *out N(size));
}
