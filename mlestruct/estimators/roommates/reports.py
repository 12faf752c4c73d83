"""What a model says of itself: explanations, summaries, evaluations, as data that print well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mlestruct.dual import Certificate


class Contribution(NamedTuple):
    """One question's share of a pair's centred score: above 0 it helps, below it hurts."""

    column: str
    answer_a: Any
    answer_b: Any
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Why two people score as they do: contributions add up to ``score`` with ``withheld``.

    ``withheld`` is the sum over protected columns, which are only itemised when asked for.
    """

    a: Any
    b: Any
    score: float
    probability: float
    contributions: list[Contribution]
    withheld: float


class Contrast(NamedTuple):
    """An identified combination of weights, debiased; the interval is for the surrogate's limit."""

    column: str
    name: str
    estimate: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """Contrasts with intervals, what is not identified, what was learned from, proof and cost."""

    contrasts: list[Contrast]
    unidentified: list[str]
    notes: list[str]
    certificate: Certificate
    bound: str
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """A held-out cohort: how well true pairs rank among all allowed ones, and how probable.

    ``auc`` holds the areas for ranking by ``marginal``, ``score`` and ``constant`` (−1 on every
    difference); random ranking has .5. ``top`` maps k to the share of people whose partner is
    among their k most probable. ``log_likelihood`` is an interval for the exact one.
    """

    auc: dict[str, float]
    top: dict[int, float]
    top_random: dict[int, float]
    log_likelihood: tuple[float, float]
    log_likelihood_random: float
    pairs: int
    notes: list[str]
