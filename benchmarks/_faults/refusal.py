"""What a refusal has to be: a ValueError that says what is wrong, soon, with nothing changed."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

FOREIGN = re.compile(  # what NumPy and Python say to programmers
    r"inhomogeneous|setting an array|float\(\) argument|int\(\) argument|truth value"
    r"|not supported between|could not convert|could not be broadcast|unhashable|has no attribute"
    r"|object is not|index out of"
)
SECONDS = 1.0  # of processor time; what is imported or compiled first is not the refusal's


@dataclass(frozen=True)
class Bad:
    """A call with bad input at one of the library's doors, and words its refusal must hold."""

    door: str
    says: str
    call: Callable[..., Any]
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.door}: {self.says}"


def bad(door: str, says: str, call: Callable[..., Any], *given: Any, **named: Any) -> Bad:
    """A row of a table of bad inputs."""
    return Bad(door, says, call, given, named)


def fault(case: Bad) -> str | None:
    """What is wrong with how the library answers; None where it refuses as it should."""
    before = _snapshot(case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = _told(case)
        seconds = min(_seconds(case), _seconds(case))  # a collection may fall into one of them
    if told is None:
        return "it was accepted"
    if not isinstance(told, ValueError):
        return f"it raised {type(told).__name__}: {told}"
    if not re.search(case.says, str(told)):
        return f"it said {str(told)!r}"
    if FOREIGN.search(str(told)):
        return f"it leaves the words to others: {str(told)!r}"
    if seconds > SECONDS:
        return f"it took {seconds:.1f} s"
    return None if _snapshot(case) == before else "it changed what it was given"


def _seconds(case: Bad) -> float:
    start = time.process_time()
    _told(case)
    return time.process_time() - start


def _told(case: Bad) -> BaseException | None:
    try:
        case.call(*case.given, **case.named)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an exit of the interpreter would be a fault too
        return error
    return None


def _snapshot(case: Bad) -> Any:
    """Everything the call could change: its arguments, and the estimator whose method it is."""
    return _tree((getattr(case.call, "__self__", None), case.given, case.named))


def _tree(value: Any) -> Any:
    """A copy of arrays and containers; other objects by identity."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.shape, value.dtype.str, value.tobytes()
    if sp.issparse(value):
        return _tree((value.shape, value.tocoo().coords, value.data))
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_tree(v) for v in value]
    if isinstance(value, Mapping):
        return [(_tree(k), _tree(v)) for k, v in value.items()]
    if hasattr(value, "get_params"):
        return _tree(vars(value))
    return value if isinstance(value, (str, bytes, int, bool)) else id(value)
