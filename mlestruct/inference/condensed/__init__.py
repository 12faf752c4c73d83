"""Convex inference and its derivatives by linear systems in which tables are eliminated."""

from mlestruct.inference.condensed.optima import Condensed, Newton, Optima

__all__ = ["Condensed", "Newton", "Optima"]
