// Assignments by shortest augmenting paths.
#pragma once
#include "kernel.h"

extern "C" {
/** Match every table's rows to columns of their own so that the sum of scores is greatest.

A table has at most as many rows as columns. ``price`` and ``column`` (-1: unknown) hold where to
start, and then the answer's. ``upper`` is a bound on every table's best sum. Return the first table
that has no matching, or -1. */
EXPORT int64_t assignment_solve(
    int64_t count, int64_t rows, int64_t columns, const double *score N(count * rows * columns),
    double *price N(count * columns), int64_t *column N(count * rows), double *upper N(count));
}
