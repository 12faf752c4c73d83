"""The compiled kernels of the solvers: see :mod:`mlestruct.native`."""
