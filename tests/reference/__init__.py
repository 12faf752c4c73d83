"""`python -m tests.reference`: the library against reference numbers, quantity by quantity."""

from tests.reference.core import KINDS, Line, check, default_paths, main

__all__ = ["KINDS", "Line", "check", "default_paths", "main"]
