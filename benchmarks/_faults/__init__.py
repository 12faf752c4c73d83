"""Faults on purpose, shared by the tests and by ``python -m benchmarks reliability``."""
