// Exact sums over grids, one site at a time.
#pragma once
#include "kernel.h"

extern "C" {
/** The exponentials of a grid's scores: left[r, c, p, x] of a site and the one on its left, with
the site's own, and up[r, c, y, x] of a site and the one above. */
struct grid_tables {
    int64_t rows;
    int64_t columns;
    int64_t states;
    const double *left N(rows * columns * states * states);
    const double *up N(rows * columns * states * states);
};

/** Write log Z, and add the marginals of sites, of pairs in a row, and of pairs in a column.

Three passes; rows + columns + 2 tables of states^columns. */
EXPORT status grid_marginals(
    const struct grid_tables *given, double *log_z N(1),
    double *node N(given.rows * given.columns * given.states),
    double *across N(given.rows * (given.columns - 1) * given.states * given.states),
    double *down N((given.rows - 1) * given.columns * given.states * given.states));
}
