"""RoommateModel: from a table of people and the pairs observed, to next year's pairs."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Self

import numpy as np

from mlestruct.batch import Batch
from mlestruct.dual import Certificate
from mlestruct.estimators import stored
from mlestruct.estimators.params import Parameters
from mlestruct.estimators.roommates.contrasts import Contrasts
from mlestruct.estimators.roommates.evaluation import Evaluation, Held, evaluate
from mlestruct.estimators.roommates.explanation import Explanation
from mlestruct.estimators.roommates.learning import Extra, Sample, choose, constant, pair_features
from mlestruct.estimators.roommates.likely import likely
from mlestruct.estimators.roommates.observed import (
    Block,
    Columns,
    blocks_of,
    read_pairs,
    refuse_unpaired,
)
from mlestruct.estimators.roommates.pairing import Decision, Pairing
from mlestruct.estimators.roommates.people import Missing, People, ids_of
from mlestruct.estimators.roommates.plan import Plan
from mlestruct.estimators.roommates.questionnaire import Answers, survey
from mlestruct.estimators.roommates.roles import Names, listed, roles_of
from mlestruct.estimators.roommates.rooms import Fixed, rooms_of
from mlestruct.estimators.roommates.rules import Rule, Rules
from mlestruct.estimators.roommates.summary import Summary
from mlestruct.estimators.roommates.worth import Worth
from mlestruct.features import Question
from mlestruct.frank_wolfe import FrankWolfe, State
from mlestruct.learners import mle_struct
from mlestruct.progress import track
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints
from mlestruct.tables import Table, table

ROLES = ("ordinal", "binary", "categorical", "ignore")


class RoommateModel(Parameters):
    """Learns from observed pairs which answers go together, and pairs up new people.

    Columns are named by themselves or by patterns (``"q*"``). ``ordinal`` answers are numbers
    compared by |difference|, ``binary`` and ``categorical`` ones by same or different. With
    ``answers`` every unordered pair of levels has a weight as well: that takes thousands of pairs,
    or a large ``alpha``. ``extra`` are features of your
    own: names, and functions from some people's columns to a symmetric (people × people) matrix.

    People are paired within a ``cohort`` (a column; None: all are one) and only with the ``same``
    values in those columns. ``protected`` columns are learned from, but explanations do not
    itemise them unless asked. Columns without a role, free text among them, are ignored, and the
    summary says so.

    ``partners`` names the columns of ids in tables of pairs, ``weight`` a column of weights there,
    or of outcomes that ``outcomes`` maps to weights. ``missing`` answers are refused (``refuse``)
    or count as an average one (``neutral``); people without a pair are left out of learning
    (``leave_out``) or refused (``refuse``).

    ``alpha`` is λ of (λ/2)‖θ‖²; of several, held-out cohorts choose. ``rho`` reweights the
    entropy: ½ bounds log Z from above, 1 is Bethe. ``tol`` is the relative gap to certify.

    After ``fit``: ``coef_``, ``names_``, ``certificate_``, ``history_``, ``n_iter_``, ``alpha_``,
    ``alpha_scores_``, ``notes_`` (what was left out).

    >>> people = [{"id": i, "tidy": i % 3} for i in range(6)]
    >>> model = RoommateModel(ordinal="tidy").fit(people, [(0, 3), (1, 4), (2, 5)])
    >>> [pair[:2] for pair in model.assign(people).pairs]
    [(0, 3), (1, 4), (2, 5)]
    """

    coef_: Array
    certificate_: Certificate

    def __init__(
        self,
        *,
        id: str = "id",
        cohort: str | None = None,
        same: Names = (),
        ordinal: Names = (),
        binary: Names = (),
        categorical: Names = (),
        ignore: Names = (),
        protected: Names = (),
        answers: bool = False,
        extra: Extra | None = None,
        partners: tuple[str, str] = ("id_a", "id_b"),
        weight: str | None = None,
        outcomes: Mapping[Any, float] | None = None,
        missing: Missing = "refuse",
        unpaired: Literal["leave_out", "refuse"] = "leave_out",
        alpha: float | Sequence[float] = 1.0,
        rho: float = 0.5,
        tol: float = 1e-9,
        progress: bool | None = None,
    ) -> None:
        self.id = id
        self.cohort = cohort
        self.same = same
        self.ordinal = ordinal
        self.binary = binary
        self.categorical = categorical
        self.ignore = ignore
        self.protected = protected
        self.answers = answers
        self.extra = extra
        self.partners = partners
        self.weight = weight
        self.outcomes = outcomes
        self.missing = missing
        self.unpaired = unpaired
        self.alpha = alpha
        self.rho = rho
        self.tol = tol
        self.progress = progress

    def fit(self, people: Any, pairs: Any) -> Self:
        """Learn from a table of people and one of pairs, or a list of (id, id).

        Pairs of cohorts that ``people`` does not hold are skipped, where ``pairs`` has the
        cohort's column. The likelihood is that of each group's pairs given who was paired, and
        given whose pairs have which weight.
        """
        given = table(people)
        roles = {role: getattr(self, role) for role in ROLES}
        known, notes = survey(given, [self.id, *self._groups], roles, ids_of(given, self.id))
        everybody = self._read(given, known)
        observed = read_pairs(pairs, everybody, self._columns)
        if self.unpaired == "refuse":
            refuse_unpaired(everybody, observed)
        blocks, left_out = blocks_of(observed, everybody)
        sample = Sample.of(everybody, blocks, self._questions(known), self.extra or {})
        self._learn(sample)
        contrasts = Contrasts.of(known, self._questions(known), list(self.extra or {})).matrix
        self.estimates_ = np.stack(
            [contrasts @ self.coef_, np.full(len(contrasts), np.nan)], axis=1
        )
        self.answers_, self.notes_ = known, notes + left_out
        return self

    @property
    def names_(self) -> list[str]:
        """A name for each of ``coef_``."""
        named = [w for question in self._questions(self.answers_) for w in question.weights]
        return [*named, *(self.extra or {})]

    def _learn(self, sample: Sample) -> None:
        alphas = np.atleast_1d(np.asarray(self.alpha, dtype=float))
        learner = mle_struct(self.rho, solver=FrankWolfe(tol=self.tol))
        scores = (
            choose(learner, sample, alphas.tolist(), self.rho) if len(alphas) > 1 else np.zeros(1)
        )
        alpha = float(alphas[scores.argmax()])

        def watched(states: Iterator[State]) -> Iterator[State]:
            return track(states, "roommates", self.progress)

        (model,) = learner.path(sample.batch, sample.features, [alpha], watched)
        self.coef_, self.certificate_, self.route_ = model.theta, model.certificate, model.route
        self.history_, self.n_iter_, self.alpha_ = model.history, len(model.history), alpha
        self.alpha_scores_ = list(zip(alphas.tolist(), scores.tolist(), strict=True))

    @property
    def roles_(self) -> dict[str, str]:
        """Every column that is used, and as what."""
        roles = {self.id: "id"} | ({} if self.cohort is None else {self.cohort: "cohort"})
        roles |= dict.fromkeys(listed(self.same), "same")
        return roles | {answers.column: answers.role for answers in self.answers_}

    @property
    def protected_(self) -> list[str]:
        """The columns that explanations do not itemise."""
        asked = [answers.column for answers in self.answers_]
        return list(roles_of(asked, {"protected": self.protected}, ()))

    @property
    def _groups(self) -> list[str]:
        """The columns that keep people apart."""
        return [*([] if self.cohort is None else [self.cohort]), *listed(self.same)]

    @property
    def _columns(self) -> Columns:
        return Columns(self.partners, self.cohort, self.weight, self.outcomes)

    def _questions(self, known: Sequence[Answers]) -> list[Question]:
        return [answers.question(self.answers, self.missing == "neutral") for answers in known]

    def _read(self, given: Table, known: Sequence[Answers] | None = None) -> People:
        if known is None:
            self._check_fitted()
            known = self.answers_
        return People.read(given, self.id, self._groups, known, self.missing)

    def assign(
        self,
        people: Any,
        *,
        forbid: Sequence[Rule] = (),
        require: Sequence[Rule] = (),
        rooms: Any = None,
        fixed: Fixed | None = None,
        decision: Decision = "map",
    ) -> Plan:
        """Pair up a table of people: the best total score, or the most pairs expected right.

        ``rooms`` is a table with columns ``room`` and ``size`` (1, 2 or 4; without it all are for
        2), and those of ``same`` where rooms belong to groups; ``fixed`` says who is to be in
        which room. Without rooms a group of odd size leaves one person over.
        """
        if decision not in ("map", "expected"):
            raise ValueError(f"decision is 'map' or 'expected', not {decision!r}")
        if fixed and rooms is None:
            raise ValueError("fixed= needs rooms=, a table of rooms")
        read = self._read(table(people))
        given = None
        if rooms is not None:
            given = rooms_of(table(rooms), read, self._groups, fixed or {})
        worths = [self._worth(read, group.members) for group in read.groups]
        return Plan.of(read, worths, forbid, require, given, decision, self.rho)

    def _worth(self, people: People, members: Ints) -> Worth:
        columns = people.table.rows(members).columns
        extra = {name: own(columns) for name, own in (self.extra or {}).items()}
        return Worth.of(self._questions(self.answers_), people.codes[members], self.coef_, extra)

    def probabilities(self, people: Any, count: int | None = None) -> Any:
        """A table of every pair's pseudo-probability, or of the ``count`` most probable ones.

        Columns ``a``, ``b``, ``probability``, ``score``, ``group``, most probable first, in the
        kind of table that ``people`` is. Each person's probabilities add up to 1.
        """
        given = table(people)
        plan = self.assign(given)
        return given.back(likely(given[self.id], plan.pairings, count))

    def explain(
        self, plan: Plan, person: Hashable, partner: Hashable = None, *, protected: bool = False
    ) -> Explanation:
        """Which answers help or hurt a pair: somebody's own in the plan, or with ``partner``."""
        other = plan.partner(person) if partner is None else partner
        if other is None:
            raise ValueError(f"{person!r} has no partner in the plan; name one: partner=")
        (pairing, a), (theirs, b) = (plan.find(p, "explain") for p in (person, other))
        if theirs is not pairing or a == b:
            raise ValueError(f"{person!r} and {other!r} are no two people of one group")
        withheld = () if protected else self.protected_
        return Explanation.of(plan.people.table, pairing, (a, b), withheld)

    def evaluate(self, people: Any, pairs: Any, top: Sequence[int] = (1, 5, 10)) -> Evaluation:
        """Judge on people and pairs that were not learned from; who is in no pair is left out."""
        read = self._read(table(people))
        columns = replace(self._columns, weight=None)
        blocks, notes = blocks_of(read_pairs(pairs, read, columns), read)
        return evaluate([self._held(read, block) for block in blocks], top, notes)

    def _held(self, people: People, block: Block) -> Held:
        """A group whose pairs are known, with the learned scores and the baseline's."""
        batch = Batch.of(Matching(len(block.members)), count=1)
        questions, extra = self._questions(self.answers_), self.extra or {}
        features = pair_features(batch, people, [block.members], questions, extra)
        group = replace(block.group, members=block.members)
        worth, rules = self._worth(people, block.members), Rules.read(people, (), ())
        pairing = Pairing.of(people, group, worth, rules, None, "map", self.rho)
        partner = np.empty(len(block.members), dtype=np.int64)
        partner[block.pairs], partner[block.pairs[:, ::-1]] = block.pairs[:, ::-1], block.pairs
        baseline = constant(self.answers_, questions, len(extra))
        return Held(
            pairing, partner, features.potentials(self.coef_), features.potentials(baseline)
        )

    def summary(self) -> Summary:
        """What was learned, how sure it is, what cannot be known, and the proof; ``print`` it."""
        self._check_fitted()
        contrasts = Contrasts.of(
            self.answers_, self._questions(self.answers_), list(self.extra or {})
        )
        calls, seconds, *_ = self.history_[-1]
        return Summary.of(
            contrasts,
            *self.estimates_.T,
            notes=self.notes_,
            certificate=self.certificate_,
            alpha=self.alpha_,
            evaluations=calls,
            seconds=seconds,
        )

    def save(self, path: stored.Path) -> None:
        """Write a model file, which predicts the same bits in another process; no data, no code."""
        self._check_fitted()
        fitted = stored.Fitted(
            self.coef_,
            self.certificate_,
            self.history_,
            self.alpha_,
            self.alpha_scores_,
            self.route_,
        )
        learned = {
            "answers": np.array(json.dumps([asdict(answers) for answers in self.answers_])),
            "notes": np.array(json.dumps(self.notes_)),
            "estimates": self.estimates_,
        }
        stored.write(path, type(self).__name__, self.get_params(), fitted, learned)

    @classmethod
    def load(cls, path: stored.Path, **again: Any) -> Self:
        """A saved model; ``extra`` features are code, so pass them ``again``."""
        settings, fitted, learned = stored.read(path, cls.__name__, again)
        model = cls().set_params(**settings)
        model.coef_, model.certificate_, model.route_ = (
            fitted.coef,
            fitted.certificate,
            fitted.route,
        )
        model.history_, model.n_iter_ = fitted.history, len(fitted.history)
        model.alpha_, model.alpha_scores_ = fitted.alpha, fitted.alpha_scores
        model.answers_ = tuple(
            Answers(**row | {name: tuple(row[name]) for name in ("levels", "counts")})
            for row in json.loads(str(learned["answers"]))
        )
        model.notes_ = json.loads(str(learned["notes"]))
        model.estimates_ = learned["estimates"]
        return model

    def _check_fitted(self) -> None:
        if not hasattr(self, "answers_"):
            raise ValueError("this RoommateModel is not fitted yet: call fit first")
