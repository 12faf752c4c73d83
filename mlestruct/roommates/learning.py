"""Pairs as examples, the choice of λ by held-out cohorts, and what a fit has learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct import Batch, FrankWolfe, limits
from mlestruct.estimators.examples import alphas_of
from mlestruct.estimators.stored import StoredFit
from mlestruct.features import Pairs, Question
from mlestruct.inference.sandwich import Sandwich
from mlestruct.learners import Found, mle_struct
from mlestruct.learners.convex import Learner
from mlestruct.learning.loop import Loop, Told
from mlestruct.roommates.leaks import Agreement
from mlestruct.roommates.observed import ObservedGroup
from mlestruct.roommates.people import Group, People
from mlestruct.roommates.questionnaire import Answers
from mlestruct.roommates.summary import Contrasts, ContrastTable, RoommateSummary
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints

if TYPE_CHECKING:
    from mlestruct.roommates.evaluation import Held
    from mlestruct.roommates.pairing import Pairing, Worth

OTHERS, LARGEST = 10, 20_000  # pairs not observed, for every observed one and in all
NEWTON, PART = 8, 2048  # steps, from nothing; pairs whose products are added up at a time


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
    ) -> Sample:
        """Blocks of one cohort (the first of its group's columns) are held out together."""
        batch = Batch.of(
            [Matching(len(block.members)) for block in blocks],
            [block.pairs for block in blocks],
            weight=[block.weight for block in blocks],
        )
        features = Pairs.of(batch, [people.codes[block.members] for block in blocks], questions)
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
    told: Told,
    loop: Loop,
) -> tuple[Found, float, list[tuple[float, float]], list[float]]:
    """The model, its alpha, the score of every alpha, and those that did not converge."""
    alphas = alphas_of(alpha)
    learner = mle_struct(rho, solver=FrankWolfe(tol=tol, checkpoint=loop))
    scores, missed = np.zeros(1), list[float]()
    if len(alphas) > 1:
        scores, missed = choose(learner, sample, alphas, rho)
    chosen = float(alphas[scores.argmax()])
    model = learner.under(chosen).fit(sample.batch, sample.near, told=told)
    return model, chosen, list(zip(alphas.tolist(), scores.tolist(), strict=True)), missed


def sandwich(
    sample: Sample, theta: Array, alpha: float, rho: float, tau: Array | None = None
) -> Sandwich:
    """Errors of weights, from the observed pairs: for one year as for many."""
    dual = mle_struct(rho, regulariser=alpha).dual(sample.batch, sample.near)
    if tau is None:
        from mlestruct.inference import marginals

        tau = marginals(sample.batch, sample.near.potentials(theta), rho=rho).tau
    return Sandwich.of(dual, theta, tau)


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


@dataclass(frozen=True)
class Questions:
    """The questions of a fit: their answers, and what of them is compared."""

    answers: tuple[Answers, ...]
    indicators: bool
    neutral: bool

    @cached_property
    def questions(self) -> list[Question]:
        return [answers.question(self.indicators, self.neutral) for answers in self.answers]

    def questions_for(self, codes: Ints) -> list[Question]:
        """The questions, with a level for unknown answers wherever somebody gave one."""
        last = codes.max(axis=0, initial=-1)
        return [
            answers.question(self.indicators, self.neutral or code == len(answers.levels))
            for answers, code in zip(self.answers, last, strict=True)
        ]

    @property
    def names(self) -> list[str]:
        """A name for every weight."""
        return [w for question in self.questions for w in question.weights]

    @property
    def contrasts(self) -> Contrasts:
        return Contrasts.of(self.answers, self.questions)


@dataclass(frozen=True)
class Knowledge:
    """Questions and weights, debiased contrasts with errors, and in words what was left out.

    ``logistic`` are a baseline's weights, ``marks`` tell the pairs that were learned from, and
    ``agreed`` are the columns in which these pairs agree though no rule says so; ``cohorts`` are
    those of the people learned from.
    """

    asked: Questions
    rho: float
    fitted: StoredFit
    told: ContrastTable
    logistic: Array
    marks: Ints = field(repr=False)
    notes: list[str]
    agreed: tuple[Agreement, ...] = ()
    cohorts: tuple[str, ...] = ()

    def worth(self, people: People, members: Ints) -> Worth:
        """The centred scores among some people."""
        from mlestruct.roommates.pairing import Worth

        codes = people.codes[members]
        return Worth.of(self.asked.questions_for(codes), codes, self.fitted.model.theta)

    def pairing(self, people: People, group: Group) -> Pairing:
        """A group without rules or rooms."""
        from mlestruct.roommates.pairing import Pairing

        return Pairing.of(people, group, self.worth(people, group.members), self.rho)

    def held(self, people: People, block: ObservedGroup) -> Held:
        """People whose pairs are known, with the learned scores and the baseline's."""
        from mlestruct.roommates.evaluation import Held

        members = block.members
        pairing = self.pairing(people, replace(block.group, members=members))
        batch, codes = Batch.of(Matching(len(members)), count=1), people.codes[members]
        features = Pairs.of(batch, [codes], self.asked.questions_for(codes))
        partner = np.empty(len(members), dtype=np.int64)
        partner[block.pairs] = block.pairs[:, ::-1]
        known = np.isin(marks(people, members[block.pairs]), self.marks)
        score, other = map(features.potentials, (self.fitted.model.theta, self.logistic))
        return Held(pairing, partner, score, other, int(known.sum()))

    def summary(self) -> RoommateSummary:
        return RoommateSummary.of(self.asked.contrasts, self.told, self.fitted, self.notes)

    def packed(self) -> dict[str, Any]:
        """What a model file holds besides the fit's own."""
        return {
            "answers": [asdict(answers) for answers in self.asked.answers],
            "indicators": self.asked.indicators,
            "neutral": self.asked.neutral,
            "rho": self.rho,
            "told": tuple(self.told),
            "logistic": self.logistic,
            "marks": self.marks,
            "notes": self.notes,
            "agreed": [one._asdict() for one in self.agreed],
            "cohorts": list(self.cohorts),
        }

    @classmethod
    def unpacked(cls, fitted: StoredFit, known: dict[str, Any]) -> Knowledge:
        """The inverse of :meth:`packed`."""
        answers = tuple(Answers(**row) for row in known["answers"])
        asked = Questions(answers, known["indicators"], known["neutral"])
        rest = known["logistic"], known["marks"], known["notes"]
        agreed = tuple(
            Agreement(**{**row, "blocks": tuple(map(tuple, row["blocks"]))})
            for row in known.get("agreed", ())
        )
        return cls(
            asked,
            known["rho"],
            fitted,
            ContrastTable(*known["told"]),
            *rest,
            agreed,
            tuple(known.get("cohorts", ())),
        )


def marks(people: People, pairs: Ints) -> Ints:
    """A digest of every pair, of 64 bits: the group, both ids, and what both answered.

    So a pair that was learned from is known again, and next year's people with this year's ids
    are not taken for them; nobody can be read out of a file that holds these numbers.
    """
    found = []
    for pair in pairs.tolist():
        key = people.groups[people.group_of[pair[0]]].key
        both = sorted((str(people.ids[row]), people.codes[row].tolist()) for row in pair)
        text = repr(([str(part) for part in key], both)).encode()
        found.append(int.from_bytes(sha256(text).digest()[:8], "little", signed=True))
    return np.array(found, dtype=np.int64)
