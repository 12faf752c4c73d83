"""Judging a model on pairs it did not learn from: ranks and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.estimators import Calibration
from mlestruct.results import Shown
from mlestruct.roommates.pairing import Pairing
from mlestruct.roommates.questionnaire import listed
from mlestruct.structures.base import Array, Ints, as_count

FEW = 20  # pairs below which no comparison is worth more than its error


class Held(NamedTuple):
    """One group: its people, who really shared with whom, and every pair's scores.

    ``score`` is the learned one, ``logistic`` that of the logistic regression; ``learned`` says how
    many of the pairs were learned from.
    """

    pairing: Pairing
    partner: Ints
    score: Array
    logistic: Array
    learned: int


RULES = {
    "random": "guessing",
    "logistic": "a logistic regression on pairs, learned from the same people one pair at a time",
}


@dataclass(frozen=True)
class Evaluation(Shown):
    """How well held-out pairs rank among all that were possible.

    ``auc``: the chance that a true pair ranks above another pair of its cohort, by ``marginal``,
    by ``score``, and by the simpler rules that ``RULES`` puts into words. ``auc_error`` are their
    standard errors, each pair with its two people being one unit; ``auc_lead`` is by how much the
    model's marginals are above each simpler rule, and ``auc_lead_error`` that difference's error.
    ``top[k]``: the share of people whose partner is among their k most probable; ``top_error``,
    ``top_random``. ``calibration``: how often pairs of some probability came about. ``learned`` of
    the ``pairs`` were learned from.
    """

    auc: dict[str, float]
    auc_error: dict[str, float]
    auc_lead: dict[str, float]
    auc_lead_error: dict[str, float]
    top: dict[int, float]
    top_error: dict[int, float]
    top_random: dict[int, float]
    calibration: Calibration
    pairs: int
    learned: int
    notes: list[str]

    @property
    def few(self) -> bool:
        """Whether there are too few pairs to compare anything by."""
        return self.pairs < FEW

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure, beside its error and its value at random."""
        rows: list[tuple[Any, ...]] = [
            (f"AUC by {name}", value, self.auc_error.get(name, 0.0), self.auc["random"])
            for name, value in self.auc.items()
        ]
        rows += [
            (f"partner among {k}", share, self.top_error[k], self.top_random[k])
            for k, share in self.top.items()
        ]
        names = "measure", "value", "error", "random"
        return {n: [row[k] for row in rows] for k, n in enumerate(names)}

    def remarks(self) -> list[str]:
        return [self.count(), *self._compared(), *self.notes]

    def plot(self, ax: Any = None) -> Any:
        """The areas under the curve, and chance."""
        from mlestruct.plot import dots

        return dots(list(self.auc), list(self.auc.values()), mark=0.5, label="AUC", ax=ax)

    def count(self) -> str:
        """How many pairs, and whether they were learned from."""
        told = f"{self.pairs} pairs, none of them learned from"
        if self.learned:
            told = f"{self.pairs} pairs, of which {self.learned} WERE LEARNED FROM: no fair test"
        return told + "; too few to compare anything by" * self.few

    def _compared(self) -> list[str]:
        return [
            f"  {self.auc[name]:.3f} by {words}: the model's marginals are "
            f"{self.auc_lead[name]:+.3f} ± {self.auc_lead_error[name]:.3f} beside it"
            for name, words in RULES.items()
        ]


def evaluate(groups: Sequence[Held], tops: Sequence[int], notes: list[str]) -> Evaluation:
    """Areas are averaged over cohorts, weighted by their pairs."""
    tops = [as_count(k, "top", least=1) for k in listed(tops)]
    ranked = [_ranks(held) for held in groups]
    people = sum(len(rank) for rank in ranked)
    areas = {
        "marginal": _areas(groups, [held.pairing.tau for held in groups]),
        "score": _areas(groups, [held.score for held in groups]),
        "logistic": _areas(groups, [held.logistic for held in groups]),
        "random": Area(0.5, np.zeros(people // 2)),
    }
    own = areas["marginal"]
    leads = {n: Area(own.area - areas[n].area, own.pull - areas[n].pull) for n in RULES}
    hits = {k: np.concatenate([_by_pair(r <= k, h.partner)
                               for r, h in zip(ranked, groups, strict=True)])
            for k in tops}  # fmt: skip
    came_true = [np.zeros(len(held.score)) for held in groups]
    for hit, held in zip(came_true, groups, strict=True):
        hit[held.pairing.structure.graph.index(_pairs(held.partner))] = 1.0
    return Evaluation(
        auc={name: found.area for name, found in areas.items()},
        auc_error={name: found.error for name, found in areas.items() if name != "random"},
        auc_lead={name: lead.area for name, lead in leads.items()},
        auc_lead_error={name: lead.error for name, lead in leads.items()},
        top={k: float(hit.mean()) for k, hit in hits.items()},
        top_error={k: _mean_error(hit) for k, hit in hits.items()},
        top_random={
            k: sum(len(r) * min(1.0, k / (len(r) - 1)) for r in ranked) / people for k in tops
        },
        calibration=Calibration.of(
            np.concatenate([held.pairing.tau for held in groups]),
            np.concatenate(came_true),
            bins=8,
            unit=np.repeat(np.arange(len(groups)), [len(hit) for hit in came_true]),
            rare=True,
        ),
        pairs=people // 2,
        learned=sum(held.learned for held in groups),
        notes=notes,
    )  # fmt: skip


class Area(NamedTuple):
    """An area under the curve, and how far each true pair with its two people pulls it."""

    area: float
    pull: Array

    @property
    def error(self) -> float:
        """The infinitesimal jackknife's standard error; NaN of a single pair."""
        n = len(self.pull)
        return float(np.sqrt(n / (n - 1) * (self.pull**2).sum())) if n > 1 else float("nan")


def _mean_error(values: Array) -> float:
    n = len(values)
    return float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def _by_pair(values: NDArray[Any], partner: Ints) -> Array:
    """The mean over both people of every pair."""
    low, high = _pairs(partner).T
    return np.asarray((values[low].astype(float) + values[high]) / 2.0)


def _areas(groups: Sequence[Held], values: Sequence[Array]) -> Area:
    """The mean of the cohorts' areas under the curve, weighted by their pairs."""
    cohorts: dict[Any, list[int]] = {}
    for k, held in enumerate(groups):
        cohorts.setdefault(held.pairing.group.key[:1], []).append(k)
    total = sum(len(held.partner) for held in groups) // 2
    mean, pulls = 0.0, []
    for members in cohorts.values():
        found = _area([groups[k] for k in members], [values[k] for k in members])
        share = len(found.pull) / total
        mean += share * found.area
        pulls.append(share * found.pull)
    return Area(mean, np.concatenate(pulls))


def _area(groups: Sequence[Held], values: Sequence[Array]) -> Area:
    """Of one cohort: Σ of true pairs over Σ of other pairs, each weighed by its pairs' weights.

    The area is a ratio of sums in which a true pair's weight stands for itself, and for its two
    people in the other pairs: the slopes by these weights are what it pulls.
    """
    places = [held.pairing.structure.graph.index(_pairs(held.partner)) for held in groups]
    true = np.concatenate([value[place] for value, place in zip(values, places, strict=True)])
    every = np.concatenate(list(values))
    others = len(every) - len(true)
    if not others:
        return Area(0.5, np.zeros(len(true)))
    below, less = _orders(every, true)
    above = (less - _orders(true, true)[1]) / others
    mean = float(above.mean())
    pulls, done, first = [], 0, 0
    for held, value, place in zip(groups, values, places, strict=True):
        n = len(place)
        lost = 1.0 - below[first : first + len(value)] / len(true) - mean
        lost[place] = 0.0
        low, high = held.pairing.structure.ends.T
        people = np.bincount(low, lost, 2 * n) + np.bincount(high, lost, 2 * n)
        a, b = _pairs(held.partner).T
        own = (above[done : done + n] - mean) / len(true)
        pulls.append(own + (people[a] + people[b]) / others)
        done, first = done + n, first + len(value)
    return Area(mean, np.concatenate(pulls))


def _orders(every: Array, true: Array) -> tuple[Array, Array]:
    """(how many of ``true`` are below each of all, how many of all are below each of ``true``).

    Ties count half. Only ``true`` is sorted: O(all · log true).
    """
    ordered = np.sort(true)
    left = np.searchsorted(ordered, every)
    right, last = left.copy(), len(ordered) - 1
    tied = ordered[np.minimum(left, last)] == every
    right[tied] = np.searchsorted(ordered, every[tied], "right")
    place = np.searchsorted(ordered, true, "left")
    size = len(true) + 1
    less, most = (np.bincount(n, minlength=size).cumsum()[place] for n in (right, left))
    return (left + right) / 2.0, (less + most) / 2.0


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
