"""Blocks of pairs as examples, their features, and the choice of λ by held-out cohorts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mlestruct import limits
from mlestruct.batch import Batch
from mlestruct.checkpoint import Loop
from mlestruct.drive import Progress
from mlestruct.estimators.door import alphas_of
from mlestruct.estimators.roommates.observed import ObservedGroup
from mlestruct.estimators.roommates.people import People
from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.features import Pairs, Question
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.sandwich import Sandwich
from mlestruct.learners import Model, mle_struct
from mlestruct.learners.convex import Learner
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints
from mlestruct.tables import Column

OTHERS, LARGEST = 10, 20_000  # pairs not observed, for every observed one and in all
NEWTON, PART = 8, 2048  # steps, from nothing; pairs whose products are added up at a time
Extra = Mapping[str, Callable[[Mapping[str, Column]], Array]]
"""Features of one's own: from some people's columns to a symmetric (people × people) matrix."""
Truth = Callable[[Mapping[str, Column]], Array]
"""The scores that pairs were drawn by: from some people's columns to a symmetric matrix."""


@dataclass(frozen=True)
class Sample:
    """What is learned from: a matching per block, and the features of all of its pairs."""

    batch: Batch[Matching]
    features: Pairs
    cohort: Ints = field(repr=False)

    @classmethod
    def of(
        cls,
        people: People,
        blocks: Sequence[ObservedGroup],
        questions: Sequence[Question],
        extra: Extra,
    ) -> Sample:
        """Blocks of one cohort (the first of its group's columns) are held out together."""
        batch = Batch.of(
            [Matching(len(block.members)) for block in blocks],
            [block.pairs for block in blocks],
            weight=[block.weight for block in blocks],
        )
        features = pair_features(batch, people, [b.members for b in blocks], questions, extra)
        first = [block.group.key[:1] for block in blocks]
        return cls(batch, features, np.array([first.index(key) for key in first]))

    @cached_property
    def near(self) -> Pairs:
        """The features that matchings are learned with; those of pairs by themselves are not."""
        return self.features.near()

    def select(self, members: Ints) -> Sample:
        return Sample(
            self.batch.select(members), self.features.select(members), self.cohort[members]
        )

    def held_out(self) -> Iterator[tuple[Sample, Sample]]:
        """(all other cohorts, this cohort), for every cohort."""
        for number in np.unique(self.cohort):
            mine = self.cohort == number
            yield self.select(np.flatnonzero(~mine)), self.select(np.flatnonzero(mine))

    def log_likelihood(self, theta: Array, rho: float) -> float:
        """The log-likelihood of the pairs under these weights, by the surrogate."""
        from mlestruct.inference import marginals

        scores = self.near.potentials(theta)
        found = marginals(self.batch, scores, rho=rho)
        assert self.batch.target is not None
        return float(
            self.batch.weight @ (self.batch.totals(scores * self.batch.target) - found.upper)
        )


def learn(
    sample: Sample,
    alpha: float | Sequence[float],
    rho: float,
    tol: float,
    told: Callable[[Progress], object],
    loop: Loop,
) -> tuple[Model, float, list[tuple[float, float]], list[float]]:
    """The model, its alpha, the score of every alpha, and those that did not converge."""
    alphas = alphas_of(alpha)
    learner = mle_struct(rho, solver=FrankWolfe(tol=tol, checkpoint=loop))
    scores, missed = np.zeros(1), list[float]()
    if len(alphas) > 1:
        scores, missed = choose(learner, sample, alphas, rho)
    chosen = float(alphas[scores.argmax()])
    (model,) = learner.path(sample.batch, sample.near, [chosen], told)
    return model, chosen, list(zip(alphas.tolist(), scores.tolist(), strict=True)), missed


def sandwich(
    sample: Sample, theta: Array, alpha: float, rho: float, tau: Array | None = None
) -> Sandwich:
    """Errors of weights, from the observed pairs: for one year as for many."""
    dual = mle_struct(rho, regulariser=alpha).dual(sample.batch, sample.near)
    if tau is None:
        from mlestruct.inference import marginals

        tau = marginals(sample.batch, sample.near.potentials(theta), rho=rho).tau
    return Sandwich.of(dual, theta, tau, "parts")


def choose(
    learner: Learner, sample: Sample, alphas: Array, rho: float
) -> tuple[Array, list[float]]:
    """The log-likelihood of held-out cohorts under every alpha, each learned on the others.

    With the alphas of which some fit did not converge.
    """
    order, total = np.argsort(-alphas, kind="stable"), np.zeros(len(alphas))
    missed = np.zeros(len(alphas), dtype=bool)
    if len(np.unique(sample.cohort)) < 2:
        raise ValueError("several alphas need two cohorts or more: each is held out in turn")
    for number, (rest, held) in enumerate(sample.held_out()):
        if number and limits.late():
            limits.note(f"alpha was chosen by {number} of the held-out cohorts alone")
            break
        models, gained = learner.path(rest.batch, rest.near, alphas[order].tolist()), 0.0 * total
        for k, model in zip(order, models, strict=True):
            gained[k] = held.log_likelihood(model.theta, rho)
            missed[k] |= not model.converged
        if number == 0 or not limits.late():
            total += gained
    return total, alphas[missed].tolist()


def pair_features(
    batch: Batch[Matching],
    people: People,
    members: Sequence[Ints],
    questions: Sequence[Question],
    extra: Extra,
) -> Pairs:
    """Features of the pairs among these members."""
    planes = [[own(people.table.rows(rows).columns) for own in extra.values()] for rows in members]
    return Pairs.of(
        batch,
        [people.codes[rows] for rows in members],
        questions,
        planes=planes if extra else None,
        extra=tuple(extra),
    )


def logistic(sample: Sample) -> Array:
    """The baseline that looks at one pair at a time: is it one of those observed, or another?

    A logistic regression with a small ridge, on all observed pairs and at most ``OTHERS`` times as
    many others, drawn from a fixed seed. Its constant is left out: it ranks nobody.
    """
    rng, rows, hits = np.random.default_rng(0), [], []
    for m in range(len(sample.batch)):
        structure, own = sample.batch.structure(m), sample.features.select(np.array([m]))
        assert sample.batch.target is not None
        true = np.flatnonzero(sample.batch.target[sample.batch.coordinates(m)] > 0.5)
        count = min(OTHERS * len(true), LARGEST // max(len(sample.batch), 1), structure.size)
        drawn = np.setdiff1d(rng.choice(structure.size, count, replace=False), true)
        k = np.concatenate([true, drawn])
        rows.append(own.rows(*structure.nodes_of(k)))
        hits.append(np.arange(len(k)) < len(true))
    X, y = np.concatenate(rows), np.concatenate(hits).astype(float)
    X = np.hstack([X, np.ones((len(X), 1))])
    theta, slices = np.zeros(X.shape[1]), [slice(k, k + PART) for k in range(0, len(X), PART)]
    for _ in range(NEWTON):
        p = 1.0 / (1.0 + np.exp(-np.clip(X @ theta, -30.0, 30.0)))
        H, weight = np.eye(len(theta)), p * (1.0 - p)
        for part in slices:
            H += X[part].T @ (weight[part, None] * X[part])
        theta = theta + np.linalg.solve(H, X.T @ (y - p) - theta)
    return np.asarray(theta[:-1])


def constant(answers: Sequence[Answers], questions: Sequence[Question], extra: int) -> Array:
    """The baseline that learns nothing: −1 on every difference, 1 on the same answer."""
    weights = [np.zeros(len(question.weights)) for question in questions]
    for weight, asked in zip(weights, answers, strict=True):
        weight[0] = -1.0 if asked.role == "ordinal" else 1.0
    return np.concatenate([np.empty(0), *weights, np.zeros(extra)])
