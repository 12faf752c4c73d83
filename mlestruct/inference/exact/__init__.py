"""Exact log Z and marginals: by messages, elimination, transfer, subsets or listing."""

from mlestruct.inference.exact.common import Exact
from mlestruct.inference.exact.elimination import sample_states
from mlestruct.inference.exact.enumeration import (
    count_matchings,
    joint_scores,
    matchings,
    outcomes,
)
from mlestruct.inference.exact.front import exact, exact_log_z, solve
from mlestruct.inference.exact.grids import grid_by_rows, grid_log_z
from mlestruct.inference.exact.matching import ryser
from mlestruct.inference.exact.treewidth import Estimate, estimate

__all__ = [
    "Estimate",
    "Exact",
    "count_matchings",
    "estimate",
    "exact",
    "exact_log_z",
    "grid_by_rows",
    "grid_log_z",
    "joint_scores",
    "matchings",
    "outcomes",
    "ryser",
    "sample_states",
    "solve",
]
