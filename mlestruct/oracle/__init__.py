"""The seam to every solver, what stands in for one, and what goes around one."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.oracle.protocol import HULL as HULL
    from mlestruct.oracle.protocol import Answer as Answer
    from mlestruct.oracle.protocol import Answers as Answers
    from mlestruct.oracle.protocol import Counted as Counted
    from mlestruct.oracle.protocol import Oracle as Oracle
    from mlestruct.oracle.protocol import Simplices as Simplices
    from mlestruct.oracle.protocol import Validated as Validated
    from mlestruct.oracle.protocol import attained as attained
    from mlestruct.oracle.protocol import memory as memory
    from mlestruct.oracle.protocol import one_by_one as one_by_one
    from mlestruct.oracle.protocol import perturbable as perturbable
    from mlestruct.oracle.protocol import remember as remember
    from mlestruct.oracle.registry import CATALOGUE as CATALOGUE
    from mlestruct.oracle.registry import PerStructure as PerStructure
    from mlestruct.oracle.registry import load as load
    from mlestruct.oracle.registry import resolve as resolve
    from mlestruct.oracle.solver import Solver as Solver
    from mlestruct.oracle.solver import pin as pin
    from mlestruct.oracle.solver import takes_instance as takes_instance

__getattr__, __all__ = lazily(__name__)
