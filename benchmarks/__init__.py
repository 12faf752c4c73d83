"""Benchmarks against peers, both sides in one run: ``python -m benchmarks NAME|all``."""
