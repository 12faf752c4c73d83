"""Convex inference and its derivatives by linear systems in which tables are eliminated."""

from mlestruct.families.fitting.condensed.optima import Condensed, Newton, Optima, recalled

__all__ = ["Condensed", "Newton", "Optima", "recalled"]
