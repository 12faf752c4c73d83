"""Linear maps from weights to scores: potentials Φθ, moments Φᵀτ, and moments per example."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.features.base import Columns as Columns
    from mlestruct.features.base import Dense as Dense
    from mlestruct.features.base import Features as Features
    from mlestruct.features.base import Sparse as Sparse
    from mlestruct.features.base import as_features as as_features
    from mlestruct.features.pairs import Pairs as Pairs
    from mlestruct.features.pairs import Question as Question
    from mlestruct.features.tied import Shared as Shared
    from mlestruct.features.tied import Tied as Tied
    from mlestruct.features.tied import per_table as per_table

__getattr__, __all__ = lazily(__name__)
