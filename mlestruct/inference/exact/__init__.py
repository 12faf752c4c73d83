"""Exact log Z and marginals: by messages, elimination, transfer, subsets or listing."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.inference.exact.common import Exact as Exact
    from mlestruct.inference.exact.elimination import sample_states as sample_states
    from mlestruct.inference.exact.enumeration import count_matchings as count_matchings
    from mlestruct.inference.exact.enumeration import joint_scores as joint_scores
    from mlestruct.inference.exact.enumeration import matchings as matchings
    from mlestruct.inference.exact.enumeration import outcomes as outcomes
    from mlestruct.inference.exact.front import exact as exact
    from mlestruct.inference.exact.front import exact_log_z as exact_log_z
    from mlestruct.inference.exact.front import solve as solve
    from mlestruct.inference.exact.grids import grid_by_rows as grid_by_rows
    from mlestruct.inference.exact.grids import grid_log_z as grid_log_z
    from mlestruct.inference.exact.treewidth import Estimate as Estimate
    from mlestruct.inference.exact.treewidth import estimate as estimate

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
    "sample_states",
    "solve",
]

__getattr__ = lazily(
    __name__,
    {
        "Estimate": "inference.exact.treewidth",
        "Exact": "inference.exact.common",
        "count_matchings": "inference.exact.enumeration",
        "estimate": "inference.exact.treewidth",
        "exact": "inference.exact.front",
        "exact_log_z": "inference.exact.front",
        "grid_by_rows": "inference.exact.grids",
        "grid_log_z": "inference.exact.grids",
        "joint_scores": "inference.exact.enumeration",
        "matchings": "inference.exact.enumeration",
        "outcomes": "inference.exact.enumeration",
        "sample_states": "inference.exact.elimination",
        "solve": "inference.exact.front",
    },
)
