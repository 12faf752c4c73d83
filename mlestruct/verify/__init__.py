"""`mlestruct verify`: the installed library against reference numbers, quantity by quantity."""

from mlestruct.verify.core import KINDS, Line, check, default_paths, main

__all__ = ["KINDS", "Line", "check", "default_paths", "main"]
