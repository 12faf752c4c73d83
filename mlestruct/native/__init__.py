"""The compiled kernels: C++ behind a plain C interface, called through checked functions.

``build.py`` compiles the sources in this folder and writes ``_door.py``, which has a Python
function for every function of the headers. docs/kernels.md shows how to add a kernel.
"""
