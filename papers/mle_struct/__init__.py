"""MLE-Struct (2016): learning with nothing but a MAP solver, on matchings, grids and graphs."""
