"""Linear maps from weights to scores: potentials Φθ, moments Φᵀτ, and moments per example."""

from typing import TYPE_CHECKING

from mlestruct.features.products import crossed  # now: the module has the function's name
from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.features.base import Columns as Columns
    from mlestruct.features.base import Features as Features
    from mlestruct.features.base import NoFeatures as NoFeatures
    from mlestruct.features.dense import Dense as Dense
    from mlestruct.features.functions import Functions as Functions
    from mlestruct.features.given import as_features as as_features
    from mlestruct.features.masked import Masked as Masked
    from mlestruct.features.pairs import Pairs as Pairs
    from mlestruct.features.questions import Question as Question
    from mlestruct.features.scaling import Standardising as Standardising
    from mlestruct.features.scaling import with_intercept as with_intercept
    from mlestruct.features.shared import Shared as Shared
    from mlestruct.features.sparse import Sparse as Sparse
    from mlestruct.features.tied import Tied as Tied

__all__ = [
    "Columns",
    "Dense",
    "Features",
    "Functions",
    "Masked",
    "NoFeatures",
    "Pairs",
    "Question",
    "Shared",
    "Sparse",
    "Standardising",
    "Tied",
    "as_features",
    "crossed",
    "with_intercept",
]

__getattr__ = lazily(
    __name__,
    {
        "Columns": "features.base",
        "Dense": "features.dense",
        "Features": "features.base",
        "Functions": "features.functions",
        "Masked": "features.masked",
        "NoFeatures": "features.base",
        "Pairs": "features.pairs",
        "Question": "features.questions",
        "Standardising": "features.scaling",
        "Shared": "features.shared",
        "Sparse": "features.sparse",
        "Tied": "features.tied",
        "as_features": "features.given",
        "with_intercept": "features.scaling",
    },
)
