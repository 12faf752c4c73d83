"""Exact log Z and marginals: by messages, elimination, transfer, subsets or listing."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.inference.exact.common import Exact as Exact
    from mlestruct.inference.exact.elimination import sample_states as sample_states
    from mlestruct.inference.exact.enumeration import count_matchings as count_matchings
    from mlestruct.inference.exact.enumeration import matchings as matchings
    from mlestruct.inference.exact.enumeration import outcomes as outcomes
    from mlestruct.inference.exact.front import exact as exact
    from mlestruct.inference.exact.front import solve as solve
    from mlestruct.inference.exact.grids import grid_by_rows as grid_by_rows
    from mlestruct.inference.exact.treewidth import Estimate as Estimate
    from mlestruct.inference.exact.treewidth import estimate as estimate

__getattr__, __all__ = lazily(__name__)
