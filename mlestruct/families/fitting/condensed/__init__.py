"""Convex inference and its derivatives by linear systems in which tables are eliminated."""

from mlestruct.families.fitting.condensed.blocks import Blockwise, grid_blocks
from mlestruct.families.fitting.condensed.optima import Condensed, Newton, Optima, recalled
from mlestruct.families.fitting.condensed.prices import Prices

__all__ = ["Blockwise", "Condensed", "Newton", "Optima", "Prices", "grid_blocks", "recalled"]
