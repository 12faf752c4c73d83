"""Convex inference and its derivatives by linear systems in which tables are eliminated."""

from mlestruct.inference.condensed.blocks import Blockwise, grid_blocks
from mlestruct.inference.condensed.optima import Condensed, Newton, Optima

__all__ = ["Blockwise", "Condensed", "Newton", "Optima", "grid_blocks"]
