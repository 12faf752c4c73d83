"""Convex inference and its derivatives by linear systems in which tables are eliminated."""

from mlestruct.inference.condensed.blocks import Blockwise, grid_blocks
from mlestruct.inference.condensed.optima import Condensed, Newton, Optima, recalled
from mlestruct.inference.condensed.prices import Prices

__all__ = ["Blockwise", "Condensed", "Newton", "Optima", "Prices", "grid_blocks", "recalled"]
