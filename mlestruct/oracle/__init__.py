"""The seam to every solver, what stands in for one, and what goes around one."""

from mlestruct.oracle.plain import BruteForce, Simplices
from mlestruct.oracle.protocol import HULL, Answer, Answers, Oracle, attained, memory, remember
from mlestruct.oracle.registry import CATALOGUE, PerStructure, load, resolve
from mlestruct.oracle.solver import Solver, pin, takes_instance
from mlestruct.oracle.wrappers import Cached, Counted, Validated

__all__ = [
    "CATALOGUE",
    "HULL",
    "Answer",
    "Answers",
    "BruteForce",
    "Cached",
    "Counted",
    "Oracle",
    "PerStructure",
    "Simplices",
    "Solver",
    "Validated",
    "attained",
    "load",
    "memory",
    "pin",
    "remember",
    "resolve",
    "takes_instance",
]
