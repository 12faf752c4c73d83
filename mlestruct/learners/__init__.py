"""Learners: each is an oracle, counting numbers, a bias and a temperature, in a few lines."""

from __future__ import annotations

from collections.abc import Callable

from mlestruct.learners.camel import camel, camel0
from mlestruct.learners.contrastive import contrastive
from mlestruct.learners.convex import Learner
from mlestruct.learners.exact_mle import exact_mle
from mlestruct.learners.implicit import implicit
from mlestruct.learners.lbp import lbp
from mlestruct.learners.missing import Missing, Partial
from mlestruct.learners.mle_struct import mle_struct
from mlestruct.learners.model import Interrupted, Model
from mlestruct.learners.perceptron import perceptron
from mlestruct.learners.piecewise import piecewise
from mlestruct.learners.procedural import procedural
from mlestruct.learners.protocol import Learns
from mlestruct.learners.pseudo_likelihood import pseudo_likelihood
from mlestruct.learners.ssvm import ssvm
from mlestruct.learners.trw import trw, trw_tightest

LEARNERS: dict[str, Callable[..., Learns]] = {
    "camel": camel,
    "camel0": camel0,
    "contrastive": contrastive,
    "exact_mle": exact_mle,
    "implicit": implicit,
    "lbp": lbp,
    "mle_struct": mle_struct,
    "perceptron": perceptron,
    "piecewise": piecewise,
    "procedural": procedural,
    "pseudo_likelihood": pseudo_likelihood,
    "ssvm": ssvm,
    "trw": trw,
    "trw_tightest": trw_tightest,
}

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
