"""Learners: each is an oracle, counting numbers, a bias and a temperature, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlestruct.lazy import getter, homes

if TYPE_CHECKING:
    from mlestruct.families.consistency.camel import camel as camel
    from mlestruct.families.consistency.camel import camel0 as camel0
    from mlestruct.families.contrastive.learner import contrastive as contrastive
    from mlestruct.families.fitting.implicit import implicit as implicit
    from mlestruct.families.fitting.procedural import procedural as procedural
    from mlestruct.learners.base import Interrupted as Interrupted
    from mlestruct.learners.base import Learns as Learns
    from mlestruct.learners.convex import Learner as Learner
    from mlestruct.learners.convex import mle_struct as mle_struct
    from mlestruct.learners.convex import ssvm as ssvm
    from mlestruct.learners.missing import Missing as Missing
    from mlestruct.learners.online import perceptron as perceptron
    from mlestruct.learners.pieces import piecewise as piecewise
    from mlestruct.learners.primal import exact_mle as exact_mle
    from mlestruct.learners.primal import lbp as lbp
    from mlestruct.learners.primal import pseudo_likelihood as pseudo_likelihood
    from mlestruct.learners.tree_reweighted import match_moments as match_moments
    from mlestruct.learners.tree_reweighted import trw as trw
    from mlestruct.learners.tree_reweighted import trw_tightest as trw_tightest
    from mlestruct.learning.loop import Found as Found
    from mlestruct.structures.batch import Partial as Partial

# No learner's module has a learner's name: importing it would put it in the function's place.
HOME = homes(__name__)
MAKERS = {name: HOME[name] for name in sorted(HOME) if name.islower() and name != "match_moments"}

_get = getter(__name__, HOME)


class Learners(Mapping[str, Callable[..., Any]]):
    """What makes each learner, by name; its module is imported when it is asked for."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(import_module(MAKERS[name]), name)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(MAKERS)

    def __len__(self) -> int:
        return len(MAKERS)


LEARNERS = Learners()

__all__ = ["LEARNERS", *sorted(HOME)]


def __getattr__(name: str) -> Any:
    return _get(name)
