"""Learners: each is an oracle, counting numbers, a bias and a temperature, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mlestruct.lazy import lazily
from mlestruct.learners.convex import Learner
from mlestruct.learners.exact_mle import exact_mle
from mlestruct.learners.lbp import lbp
from mlestruct.learners.missing import Missing, Partial
from mlestruct.learners.mle_struct import mle_struct
from mlestruct.learners.model import Interrupted, Model
from mlestruct.learners.perceptron import perceptron
from mlestruct.learners.piecewise import piecewise
from mlestruct.learners.protocol import Learns
from mlestruct.learners.pseudo_likelihood import pseudo_likelihood
from mlestruct.learners.ssvm import ssvm
from mlestruct.learners.trw import trw, trw_tightest

if TYPE_CHECKING:
    from mlestruct.families.consistency.camel import camel as camel
    from mlestruct.families.consistency.camel import camel0 as camel0
    from mlestruct.families.contrastive.learner import contrastive as contrastive
    from mlestruct.families.fitting.implicit import implicit as implicit
    from mlestruct.families.fitting.procedural import procedural as procedural

CORE: dict[str, Callable[..., Learns]] = {
    "exact_mle": exact_mle,
    "lbp": lbp,
    "mle_struct": mle_struct,
    "perceptron": perceptron,
    "piecewise": piecewise,
    "pseudo_likelihood": pseudo_likelihood,
    "ssvm": ssvm,
    "trw": trw,
    "trw_tightest": trw_tightest,
}
FAMILIES = {
    "camel": "families.consistency.camel",
    "camel0": "families.consistency.camel",
    "contrastive": "families.contrastive.learner",
    "implicit": "families.fitting.implicit",
    "procedural": "families.fitting.procedural",
}


class Learners(Mapping[str, Callable[..., Learns]]):
    """What makes each learner, by name; a family's modules are imported when one is asked for."""

    names = tuple(sorted([*CORE, *FAMILIES]))

    def __getitem__(self, name: str) -> Callable[..., Learns]:
        if name not in self.names:
            raise KeyError(name)
        return CORE[name] if name in CORE else _family(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


LEARNERS = Learners()

__all__ = [
    "LEARNERS",
    "Interrupted",
    "Learner",
    "Learns",
    "Missing",
    "Model",
    "Partial",
    "camel",
    "camel0",
    "contrastive",
    "exact_mle",
    "implicit",
    "lbp",
    "mle_struct",
    "perceptron",
    "piecewise",
    "procedural",
    "pseudo_likelihood",
    "ssvm",
    "trw",
    "trw_tightest",
]

_family = lazily(__name__, FAMILIES)


def __getattr__(name: str) -> Any:
    return _family(name)
