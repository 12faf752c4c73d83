"""Judging a model on pairs it did not learn from: ranks, probabilities, likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.estimators.roommates.pairing import Pairing
from mlestruct.inference import marginals
from mlestruct.inference.bounds import Interval, halves, halves_interval, log_z_interval
from mlestruct.results import Shown
from mlestruct.structures.base import Array, Ints, as_count


class Held(NamedTuple):
    """One group: its people, who really shared with whom, and the scores of the baseline."""

    pairing: Pairing
    partner: Ints
    score: Array
    constant: Array


@dataclass(frozen=True)
class Evaluation(Shown):
    """How well held-out pairs rank among all that were possible, and how probable they were.

    ``auc``: the chance that a true pair ranks above another pair of its cohort, by ``marginal``,
    by ``score``, by the ``constant`` baseline (−1 on every difference) and at ``random``.
    ``top[k]``: the share of people whose partner is among their k most probable; ``top_random``.
    ``log_likelihood``: an interval for the exact one, by the theorems that ``why`` names;
    ``log_likelihood_estimate``: by the Bethe value, exact if all were alike; no bound;
    ``log_likelihood_random``: that of a uniform matching.
    """

    auc: dict[str, float]
    top: dict[int, float]
    top_random: dict[int, float]
    log_likelihood: tuple[float, float]
    log_likelihood_estimate: float
    log_likelihood_random: float
    why: str
    pairs: int
    notes: list[str]

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure, beside its value at random."""
        rows = [(f"AUC by {name}", value, self.auc["random"]) for name, value in self.auc.items()]
        rows += [(f"partner among {k}", s, self.top_random[k]) for k, s in self.top.items()]
        likely = self.log_likelihood_estimate, self.log_likelihood_random
        rows.append(("log-likelihood, about", *likely))
        return {n: [row[k] for row in rows] for k, n in enumerate(("measure", "value", "random"))}

    def remarks(self) -> list[str]:
        return [f"{self.pairs} pairs held out", *self.notes]

    def plot(self, ax: Any = None) -> Any:
        """The areas under the curve, and chance."""
        from mlestruct.plot import dots

        return dots(list(self.auc), list(self.auc.values()), mark=0.5, label="AUC", ax=ax)

    def __str__(self) -> str:
        area = ", ".join(f"{name} {value:.3f}" for name, value in self.auc.items())
        hits = ", ".join(
            f"{k}: {100 * share:.1f} % ({100 * self.top_random[k]:.1f} % at random)"
            for k, share in self.top.items()
        )
        low, high = self.log_likelihood
        return "\n".join(
            [
                f"{self.pairs} pairs held out",
                f"AUC within cohort by {area}",
                f"partner among the most probable {hits}",
                f"log-likelihood about {self.log_likelihood_estimate:.1f} (by Bethe), proven in "
                f"[{low:.1f}, {high:.1f}] ({self.why}); {self.log_likelihood_random:.1f} at random",
                *self.notes,
            ]
        )


def evaluate(groups: Sequence[Held], tops: Sequence[int], notes: list[str]) -> Evaluation:
    """Areas are averaged over cohorts, weighted by their pairs."""
    tops = [as_count(k, "top", least=1) for k in tops]
    ranked = [_ranks(held) for held in groups]
    people = sum(len(rank) for rank in ranked)
    intervals = [_log_likelihood(held) for held in groups]
    return Evaluation(
        auc={
            "marginal": _areas(groups, [held.pairing.tau for held in groups]),
            "score": _areas(groups, [held.score for held in groups]),
            "constant": _areas(groups, [held.constant for held in groups]),
            "random": 0.5,
        },
        top={k: sum(int((rank <= k).sum()) for rank in ranked) / people for k in tops},
        top_random={
            k: sum(len(r) * min(1.0, k / (len(r) - 1)) for r in ranked) / people for k in tops
        },
        log_likelihood=(
            float(sum(i.lower for i in intervals)), float(sum(i.upper for i in intervals))
        ),
        log_likelihood_estimate=sum(_bethe(held) for held in groups),
        log_likelihood_random=-sum(_log_matchings(len(rank)) for rank in ranked),
        why=intervals[0].why,
        pairs=people // 2,
        notes=notes,
    )  # fmt: skip


def _areas(groups: Sequence[Held], values: Sequence[Array]) -> float:
    """The mean of the cohorts' areas under the curve."""
    cohorts: dict[Any, list[tuple[Array, Array]]] = {}
    for held, value in zip(groups, values, strict=True):
        true = value[held.pairing.structure.graph.index(_pairs(held.partner))]
        cohorts.setdefault(held.pairing.group.key[:1], []).append((value, true))
    areas, weights = [], []
    for parts in cohorts.values():
        every, true = (np.concatenate(part) for part in zip(*parts, strict=True))
        areas.append(area(every, true))
        weights.append(len(true))
    return float(np.average(areas, weights=weights))


def area(every: Array, true: Array) -> float:
    """The chance that one of ``true`` is larger than one of the others, ties counting half."""

    def below(values: Array) -> float:
        ordered = np.sort(values)
        places = np.searchsorted(ordered, true, "left") + np.searchsorted(ordered, true, "right")
        return 0.5 * float(places.sum())

    others = len(every) - len(true)
    return (below(every) - below(true)) / (len(true) * others) if others else 0.5


def _pairs(partner: Ints) -> Ints:
    people = np.arange(len(partner))
    return np.stack([people, partner], axis=1)[people < partner]


def _ranks(held: Held) -> NDArray[np.float64]:
    """Where everybody's partner stands among the others by probability, ties shared."""
    people = np.arange(len(held.partner))
    ranks = np.empty(len(people))
    for person in people:
        tau = np.delete(held.pairing.at(person, people)[1], person)
        true = held.pairing.at(person, held.partner[person])[1]
        ranks[person] = (tau > true).sum() + 0.5 * ((tau == true).sum() + 1)
    return ranks


def _log_likelihood(held: Held) -> Interval:
    """Of one group's matching: ρ = ½ bounds log Z above, any split into two halves below."""
    pairing = held.pairing
    batch = Batch.of(pairing.structure, count=1)
    above = marginals(batch, pairing.scores, rho=0.5)
    side = halves(pairing.structure.n_nodes, pairing.tau, pairing.solution.partner)
    inside = log_z_interval(above) & halves_interval(pairing.structure, pairing.scores, side)
    reached = _reached(held)
    return Interval(reached - inside.upper[0], reached - inside.lower[0], inside.why)


def _bethe(held: Held) -> float:
    """By the Bethe value of log Z, moved so that it is exact where all scores are equal."""
    n = len(held.partner)
    batch = Batch.of(held.pairing.structure, count=1)
    value = float(marginals(batch, held.pairing.scores, rho=1.0).lower[0])
    uniform = n / 2 * (log(n - 1) + (n - 2) * log1p(-1 / (n - 1))) if n > 2 else 0.0
    return _reached(held) - (value + _log_matchings(n) - uniform)


def _reached(held: Held) -> float:
    """The score of the true matching."""
    place = held.pairing.structure.graph.index(_pairs(held.partner))
    return float(held.pairing.scores[place].sum())


def _log_matchings(people: int) -> float:
    """Log of how many perfect matchings there are: (n − 1)!!."""
    return lgamma(people + 1) - people / 2 * log(2.0) - lgamma(people / 2 + 1)
