"""What a fit has learned: enough to score new people, to judge, to summarise and to be stored."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from mlestruct.batch import Batch
from mlestruct.estimators.roommates.leaks import Agreement
from mlestruct.estimators.roommates.learning import Extra, Truth, constant, pair_features
from mlestruct.estimators.roommates.observed import ObservedGroup
from mlestruct.estimators.roommates.people import Group, People
from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.estimators.roommates.summary import Contrasts, ContrastTable, RoommateSummary
from mlestruct.estimators.stored import StoredFit
from mlestruct.features import Pairs, Question
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints

if TYPE_CHECKING:
    from mlestruct.estimators.roommates.evaluation import Held
    from mlestruct.estimators.roommates.pairing import Pairing, Worth


@dataclass(frozen=True)
class Questions:
    """The questions of a fit: their answers, and what of them is compared."""

    answers: tuple[Answers, ...]
    indicators: bool
    neutral: bool
    extra: Extra = field(default_factory=dict)

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
        return [*(w for question in self.questions for w in question.weights), *self.extra]

    @property
    def contrasts(self) -> Contrasts:
        return Contrasts.of(self.answers, self.questions, list(self.extra))


@dataclass(frozen=True)
class Knowledge:
    """Questions and weights, debiased contrasts with errors, and in words what was left out.

    ``logistic`` are a baseline's weights, ``marks`` tell the pairs that were learned from, and
    ``agreed`` are the columns in which these pairs agree though no rule says so.
    """

    asked: Questions
    rho: float
    fitted: StoredFit
    told: ContrastTable
    logistic: Array
    marks: Ints = field(repr=False)
    notes: list[str]
    agreed: tuple[Agreement, ...] = ()

    def worth(self, people: People, members: Ints) -> Worth:
        """The centred scores among some people."""
        from mlestruct.estimators.roommates.pairing import Worth

        columns = people.table.rows(members).columns
        extra = {name: own(columns) for name, own in self.asked.extra.items()}
        codes = people.codes[members]
        questions = self.asked.questions_for(codes)
        return Worth.of(questions, codes, self.fitted.model.theta, extra)

    def pairing(self, people: People, group: Group) -> Pairing:
        """A group without rules or rooms."""
        from mlestruct.estimators.roommates.pairing import Pairing

        return Pairing.of(people, group, self.worth(people, group.members), self.rho)

    def held(self, people: People, block: ObservedGroup, truth: Truth | None = None) -> Held:
        """People whose pairs are known, with the learned scores, the baselines' and the truth's."""
        from mlestruct.estimators.roommates.evaluation import Held

        if truth is not None and not callable(truth):
            raise ValueError(f"truth is a function of people's columns, not {truth!r:.40}")
        asked, members = self.asked, block.members
        pairing = self.pairing(people, replace(block.group, members=members))
        batch = Batch.of(Matching(len(members)), count=1)
        questions = asked.questions_for(people.codes[members])
        features = pair_features(batch, people, [members], questions, asked.extra)
        partner = np.empty(len(members), dtype=np.int64)
        partner[block.pairs] = block.pairs[:, ::-1]
        baseline = constant(asked.answers, asked.questions, len(asked.extra))
        rules = {"constant": baseline, "logistic": self.logistic}
        others = {name: features.potentials(theta) for name, theta in rules.items()}
        if truth is not None:
            none = np.empty((len(members), 0), dtype=np.int64)
            plane = truth(people.table.rows(members).columns)
            own = Pairs.of(batch, [none], [], planes=[[plane]], extra=["truth"])
            others["ceiling"] = own.potentials(np.ones(1))
        known = np.isin(marks(people, members[block.pairs]), self.marks)
        score = features.potentials(self.fitted.model.theta)
        return Held(pairing, partner, score, others, int(known.sum()))

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
        }

    @classmethod
    def unpacked(cls, fitted: StoredFit, known: dict[str, Any], extra: Extra) -> Knowledge:
        """The inverse of :meth:`packed`."""
        answers = tuple(Answers(**row) for row in known["answers"])
        asked = Questions(answers, known["indicators"], known["neutral"], extra)
        rest = known["logistic"], known["marks"], known["notes"]
        agreed = tuple(
            Agreement(**{**row, "blocks": tuple(map(tuple, row["blocks"]))})
            for row in known.get("agreed", ())
        )
        return cls(asked, known["rho"], fitted, ContrastTable(*known["told"]), *rest, agreed)


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
