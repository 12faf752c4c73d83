"""The seam to every solver, what stands in for one, and what goes around one."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily
from mlestruct.oracle.protocol import (
    HULL,
    Answer,
    Answers,
    Oracle,
    attained,
    memory,
    one_by_one,
    perturbable,
    remember,
)
from mlestruct.oracle.registry import CATALOGUE, PerStructure, load, resolve
from mlestruct.oracle.wrappers import Cached, Counted, Validated

if TYPE_CHECKING:
    from mlestruct.oracle.plain import BruteForce as BruteForce
    from mlestruct.oracle.plain import Simplices as Simplices
    from mlestruct.oracle.solver import Solver as Solver
    from mlestruct.oracle.solver import pin as pin
    from mlestruct.oracle.solver import takes_instance as takes_instance
    from mlestruct.oracle.solver import tells_best_from_worst as tells_best_from_worst

__getattr__, _lazy = lazily(
    __name__,
    {
        "oracle.plain": "BruteForce Simplices",
        "oracle.solver": "Solver pin takes_instance tells_best_from_worst",
    },
)
__all__ = [
    "Answer",
    "Answers",
    "CATALOGUE",
    "Cached",
    "Counted",
    "HULL",
    "Oracle",
    "PerStructure",
    "Validated",
    "attained",
    "load",
    "memory",
    "one_by_one",
    "perturbable",
    "remember",
    "resolve",
    *_lazy,
]
