"""RoommateModel: from a table of people and the pairs observed, to next year's pairs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mlestruct import Certificate, limits
from mlestruct.errors import DataWarning, not_fitted, outside, refuse_removed
from mlestruct.estimators import stored
from mlestruct.estimators.convergence import Ending
from mlestruct.estimators.params import Parameters
from mlestruct.estimators.stored import StoredFit
from mlestruct.learners import Found, Interrupted
from mlestruct.learning.checkpoints import Unwritten
from mlestruct.learning.loop import BROKEN, AnyCheckpoint, Loop
from mlestruct.progress import Show, watcher
from mlestruct.roommates.cells import written
from mlestruct.roommates.frames import table
from mlestruct.roommates.leaks import Agreement, in_words, leaks, refuse_crossed
from mlestruct.roommates.learning import (
    Knowledge,
    Questions,
    Sample,
    learn,
    logistic,
    marks,
    sandwich,
)
from mlestruct.roommates.observed import ColumnNames, Larger, blocks_of, read_pairs
from mlestruct.roommates.people import Missing, People, ids_of
from mlestruct.roommates.questionnaire import (
    Answers,
    Names,
    Unknown,
    doubts,
    fitting,
    idle_codes,
    listed,
    roles_of,
    survey,
)
from mlestruct.roommates.summary import ContrastTable, RoommateSummary
from mlestruct.storage.digest import shown
from mlestruct.structures.base import Array, Ints

if TYPE_CHECKING:
    from mlestruct.roommates.evaluation import Evaluation, Held
    from mlestruct.roommates.pairing import Decision
    from mlestruct.roommates.plan import Explanation, Plan
    from mlestruct.roommates.rooms import Consent, Fixed, Rule

NoAnswer = Sequence[Any] | Mapping[str, Any]
ROLES = ("ordinal", "binary", "categorical", "ignore")
ALLOWED = {
    "missing": ("refuse", "neutral"),
    "larger": ("refuse", "leave_out"),
}
UNKNOWN = ("refuse", "neutral", "nearest")


@dataclass(kw_only=True, eq=False, repr=False)
class RoommateModel(Parameters):
    """Learns from observed pairs which answers go together, and pairs up new people.

    Columns are named by themselves or by patterns (``"q*"``). ``ordinal`` answers are numbers
    compared by |difference|, ``binary`` and ``categorical`` ones by same or different. With
    ``answers`` every unordered pair of levels has a weight as well: that takes thousands of pairs,
    or a large ``alpha``.

    People are paired within a ``cohort`` (a column; None: all are one) and only with the ``same``
    values in those columns. Where (nearly) all observed pairs agree in another column, ``assign``
    refuses a plan whose pairs do not, unless the column is in ``mix``. ``protected`` columns are
    learned from, but explanations do not itemise them unless asked. Columns without a role, free
    text among them, are ignored, and the summary says so.

    ``partners`` names the columns of ids in tables of pairs. Where rows are of one person each, in
    a table of its own or in that of people, ``room`` names the column of the room (or several that
    make one), ``partner`` that of the partner's id; rooms of three and more are refused, or the
    people in them left out (``larger``). ``weight`` is a column of weights of pairs. People without
    a pair are left out of learning.

    ``no_answer`` are codes that mean a missing answer, for all questions or by column. ``missing``
    answers are refused (``refuse``) or count as an average one (``neutral``). ``unknown`` is what
    becomes, when people are paired up, of an answer that nobody gave in the fit: it is refused,
    counts as an average one, or as the ``nearest`` number; for all questions or by column.

    ``alpha`` is λ of (λ/2)‖θ‖²; of several, held-out cohorts choose. ``rho`` reweights the
    entropy: ½ bounds log Z from above, 1 is Bethe. ``tol`` is the relative gap to certify.
    ``max_seconds`` bounds each call that takes long (``fit``, ``assign``, ``probabilities``,
    ``explain``, ``evaluate``), unless the call names its own: then a warning says what was cut.
    ``progress`` shows a bar (default: where somebody watches), or is a function told of each round.

    After ``fit``: ``coef_``, ``names_``, ``certificate_``, ``history_``, ``n_iter_``, ``alpha_``,
    ``alpha_scores_``, ``converged_`` (it reached ``tol``; else a warning), ``notes_`` (what was
    left out).

    >>> people = [{"id": i, "tidy": i % 3} for i in range(6)]
    >>> model = RoommateModel(ordinal="tidy").fit(people, [(0, 3), (1, 4), (2, 5)])
    >>> [pair[:2] for pair in model.assign(people).pairs]
    [(0, 3), (1, 4), (2, 5)]
    """

    id: str = "id"
    cohort: str | None = None
    same: Names = ()
    mix: Names = ()
    ordinal: Names = ()
    binary: Names = ()
    categorical: Names = ()
    ignore: Names = ()
    protected: Names = ()
    answers: bool = False
    partners: Sequence[str] = ("id_a", "id_b")
    room: Names = ()
    partner: Names = ()
    larger: Larger = "refuse"
    weight: str | None = None
    no_answer: NoAnswer = ()
    missing: Missing = "refuse"
    unknown: Unknown | Mapping[str, Unknown] = "refuse"
    alpha: float | Sequence[float] = 1.0
    rho: float = 0.5
    tol: float = 1e-9
    max_seconds: float | None = None
    progress: Show = None
    coef_: Array = field(init=False)
    certificate_: Certificate = field(init=False)

    def fit(
        self,
        people: Any,
        pairs: Any = None,
        *,
        checkpoint: AnyCheckpoint = None,
        max_seconds: float | None = None,
    ) -> Self:
        """Learn from a table of people and one of pairs, or a list of (id, id).

        Without ``pairs`` the table of people says who shares, by ``room`` or ``partner``. Pairs of
        cohorts that ``people`` does not hold are skipped, where ``pairs`` has the cohort's column.
        The likelihood is that of each group's pairs given who was paired, and given whose pairs
        have which weight. With a ``checkpoint`` (a path, or :class:`Checkpoint`) a fit that was
        ended goes on, bit for bit; Ctrl-C leaves the model of the last round. After ``max_seconds``
        the best weights so far are kept, with a looser certificate and rougher errors.
        """
        with self._limited(max_seconds, "fit"):
            return self._fit(people, pairs, checkpoint)

    def _limited(self, max_seconds: float | None, call: str) -> limits.limited:
        """The limit of one call: as asked for, or the model's own."""
        seconds = self.max_seconds if max_seconds is None else max_seconds
        return limits.limited(seconds, f"{type(self).__name__}.{call}")

    def _fit(self, people: Any, pairs: Any, checkpoint: AnyCheckpoint) -> Self:
        self._check_settings()
        sample, asked, known_again, notes, agreed, cohorts = self._sampled(people, pairs)
        baseline = logistic(sample)
        show = watcher("roommates", self.progress)

        def keep(model: Found, alpha: float, tried: list[tuple[float, float]]) -> None:
            if model.short == "seconds":
                notes.append("max_seconds ended the fit: errors of weights are rough")
            tau = model.tau if len(model.tau) else None
            errors = sandwich(sample, model.theta, alpha, self.rho, tau)
            rows = [errors.contrast(row)[:4] for row in asked.contrasts.matrix]
            told = ContrastTable(np.array(rows), errors.units, errors.rank)
            fitted = StoredFit(model, alpha, tried)
            self._keep(
                Knowledge(
                    asked, self.rho, fitted, told, baseline, known_again, notes, agreed, cohorts
                )
            )

        given_as = self.get_params().items()
        named = {name: shown(value) for name, value in given_as if name != "progress"}
        loop = Loop.begin(checkpoint, type(self).__name__, lambda: named)
        try:
            settings = self.alpha, self.rho, self.tol
            model, alpha, tried, missed = learn(sample, *settings, show, loop)
            keep(model, alpha, tried)
        except (Interrupted, Unwritten) as ended:
            if ended.model is not None:
                keep(ended.model, ended.given, [])
            raise
        except BROKEN as error:
            loop.blame(error)
            raise
        loop.keep()
        missed = [other for other in missed if other != alpha]
        how = model.short, model.certificate, self.tol, missed
        ending = Ending(*how, len(self.alpha_scores_), self.get_params())
        ending.warn(type(self).__name__)
        if ending.heard or len(self.alpha_scores_) == 1:  # else the choice of alpha was cut short
            limits.told()
        return self

    def _sampled(
        self, people: Any, pairs: Any
    ) -> tuple[Sample, Questions, Ints, list[str], tuple[Agreement, ...], tuple[str, ...]]:
        """The sample, its questions, digests of its pairs, notes, where all agree, cohorts."""
        given = table(people, [self.id, *self._groups])
        homes = [n for n in (*listed(self.room), *listed(self.partner)) if n in given.names]
        taken = [self.id, *self._groups, *homes]
        roles = roles_of(given.names, {role: getattr(self, role) for role in ROLES}, taken)
        roles_of(given.names, {"protected": self.protected}, ())  # refuses names of no column
        codes = self._codes([name for name, role in roles.items() if role != "ignore"])
        idle, given = idle_codes(given, codes), given.without(codes)
        known, notes, faults = survey(given, taken, roles, ids_of(given, self.id))
        everybody = People.read(given, self.id, self._groups, known, self.missing, {}, faults)
        observed = read_pairs(pairs, everybody, self._columns)
        blocks, left_out = blocks_of(observed, everybody)
        decided = {*taken, *roles_of(given.names, {"mix": self.mix}, ())}
        columns = {name: given.columns[name] for name in given.names if name not in decided}
        leaking = leaks(columns, observed.rows, everybody.group_of)
        agreed = tuple(leak.agreed for leak in leaking if leak.agreed is not None)
        asked_of = {asked.column for asked in known}
        odd = [*doubts(given, known), *everybody.notes, *observed.doubts]
        odd += in_words(leak for leak in leaking if leak.column in asked_of)
        for doubt in odd:
            warnings.warn(doubt, DataWarning, stacklevel=outside())
        notes = [*given.said, *notes, *idle, *odd]
        notes += in_words(leak for leak in leaking if leak.rule and leak.column not in asked_of)
        asked = Questions(known, self.answers, self.missing == "neutral")
        if not asked.names:
            raise ValueError("no answers to compare: name columns in ordinal, binary, categorical")
        sample = Sample.of(everybody, blocks, asked.questions)
        again = marks(everybody, np.concatenate([b.members[b.pairs] for b in blocks]))
        keys = [block.group.key[0] for block in blocks if self.cohort is not None]
        cohorts = tuple(dict.fromkeys(str(written(key)) for key in keys))
        return sample, asked, again, notes + left_out, agreed, cohorts

    def _check_settings(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                words = " or ".join(map(repr, allowed))
                raise ValueError(f"{name} is {words}, not {getattr(self, name)!r}")
        self._unknown(self.unknown, None)
        if listed(self.room) and listed(self.partner):
            raise ValueError("who shares is said by room= or by partner=, not by both")
        if not isinstance(self.partners, str) and len(self.partners) >= 2:
            return
        raise ValueError(f"partners are two columns of ids, not {self.partners!r}")

    def _codes(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        """The codes for no answer of every column."""
        codes = _by_column("no_answer", self.no_answer, columns)
        return {name: values for name, given in codes.items() if (values := listed(given))}

    def _keep(self, known: Knowledge) -> None:
        fitted, model = known.fitted, known.fitted.model
        self.coef_, self.certificate_, self.history_ = model.theta, model.certificate, model.history
        self.n_iter_, self.route_ = len(model.history), model.route
        self.converged_ = not model.short
        self.alpha_, self.alpha_scores_ = fitted.alpha, fitted.alpha_scores
        self.names_, self.notes_, self._knowledge = known.asked.names, known.notes, known

    @property
    def _known(self) -> Knowledge:
        if not hasattr(self, "_knowledge"):
            raise not_fitted(self)
        return self._knowledge

    @property
    def cohorts_(self) -> tuple[str, ...]:
        """The cohorts that were learned from, as text."""
        return self._known.cohorts

    @property
    def roles_(self) -> dict[str, str]:
        """Every column that is used, and as what."""
        roles = {self.id: "id"} | ({} if self.cohort is None else {self.cohort: "cohort"})
        roles |= dict.fromkeys(listed(self.same), "same")
        return roles | {answers.column: answers.role for answers in self._known.asked.answers}

    @property
    def questions_(self) -> tuple[Answers, ...]:
        """Every question that was learned from, with the answers people gave."""
        return self._known.asked.answers

    @property
    def protected_(self) -> list[str]:
        """The columns that explanations do not itemise."""
        asked = [answers.column for answers in self._known.asked.answers]
        return fitting(asked, self.protected)

    @property
    def _groups(self) -> list[str]:
        """The columns that keep people apart."""
        return [*([] if self.cohort is None else [self.cohort]), *listed(self.same)]

    @property
    def _columns(self) -> ColumnNames:
        return ColumnNames(
            tuple(self.partners),
            self.cohort,
            self.weight,
            self.id,
            tuple(listed(self.room)),
            tuple(listed(self.partner)),
            self.larger,
        )

    def _unknown(
        self, unknown: Unknown | Mapping[str, Unknown], columns: Sequence[str] | None
    ) -> dict[str, Unknown]:
        """What becomes of unknown answers, for every column."""
        rules = _by_column("unknown", unknown, columns)
        for rule in rules.values():
            if rule not in UNKNOWN:
                raise ValueError(f"unknown is {' or '.join(map(repr, UNKNOWN))}, not {rule!r}")
        return rules

    def _read(self, people: Any, unknown: Unknown | Mapping[str, Unknown] | None = None) -> People:
        asked = self._known.asked
        columns = [answers.column for answers in asked.answers]
        given = table(people, [self.id, *self._groups]).without(self._codes(columns))
        rule: Missing = "neutral" if asked.neutral else "refuse"
        instead = self._unknown(self.unknown if unknown is None else unknown, columns)
        return People.read(given, self.id, self._groups, asked.answers, rule, instead)

    def assign(
        self,
        people: Any,
        *,
        forbid: Sequence[Rule] = (),
        require: Sequence[Rule] = (),
        rooms: Any = None,
        fixed: Fixed | None = None,
        consent: Consent = (),
        decision: Decision = "map",
        unknown: Unknown | Mapping[str, Unknown] | None = None,
        mix: Names = (),
        max_seconds: float | None = None,
    ) -> Plan:
        """Pair up a table of people: the best total score, or the most pairs expected right.

        ``rooms`` is a table with columns ``room`` and ``size`` (1, 2 or 4; without it all are for
        2), and those of ``same`` where rooms belong to groups. A column ``fixed`` there, or the
        mapping ``fixed``, says who is to be in which room; a column ``accessible`` there and one
        among people, who needs such a room. Without rooms a group of odd size leaves one person
        over. ``consent`` are pairs (person, other): whoever is named first may share only with the
        others so named. ``unknown`` takes the place of the model's own; ``mix`` are further columns
        in which partners may differ though all observed pairs agree (else a ValueError).

        A plan is best whatever the time; with ``max_seconds`` its probabilities are computed at
        once, as exactly as that allows. Where groups are left without a plan by then, a
        TimeoutError says how many.
        """
        from mlestruct.roommates.plan import Plan
        from mlestruct.roommates.rooms import refused_by, rooms_of

        if decision not in ("map", "expected"):
            raise ValueError(f"decision is 'map' or 'expected', not {decision!r}")
        if fixed and rooms is None:
            raise ValueError("fixed= needs rooms=, a table of rooms")
        with self._limited(max_seconds, "assign"):
            read = self._read(people, unknown)
            given = None
            if rooms is not None:
                given = rooms_of(table(rooms, ["room"]), read, self._groups, fixed or {})
            worths = [self._known.worth(read, group.members) for group in read.groups]
            alone = [*forbid, *refused_by(read, consent)]
            plan = Plan.of(read, worths, alone, require, given, decision, self._known.rho)
            self.refuse_crossed(plan, mix)
            if np.isfinite(limits.left()):
                for pairing in plan.pairings:
                    _ = pairing.beliefs
        return plan

    def refuse_crossed(self, plan: Plan, mix: Names = ()) -> None:
        """Raise a ValueError if a plan's homes differ where (nearly) all observed pairs agree."""
        agreed, people = self._known.agreed, plan.people.table
        columns = [*dict.fromkeys((*people.names, *(one.column for one in agreed)))]
        mixed = {*roles_of(columns, {"mix": mix}, ()), *fitting(columns, self.mix)}
        refuse_crossed([one for one in agreed if one.column not in mixed], people, plan.twos)

    def probabilities(
        self,
        people: Any,
        count: int | None = None,
        each: int | None = None,
        *,
        max_seconds: float | None = None,
    ) -> Any:
        """A table of every pair's pseudo-probability, or of the ``count`` most probable ones.

        With ``each`` a pair is listed if it is among the ``each`` most probable of either person.

        Columns ``a``, ``b``, ``probability``, ``score``, ``group``, most probable first, in the
        kind of table that ``people`` is. Each person's probabilities add up to 1.
        """
        from mlestruct.roommates.pairing import likely

        given, known = table(people), self._known
        read = self._read(given)
        pairings = [known.pairing(read, group) for group in read.groups]
        with self._limited(max_seconds, "probabilities"):
            return given.back(likely(given.as_names(self.id), pairings, count, each))

    def explain(
        self,
        plan: Plan,
        person: Hashable,
        partner: Hashable = None,
        *,
        protected: bool = False,
        max_seconds: float | None = None,
    ) -> Explanation:
        """Which answers help or hurt a pair: somebody's own in the plan, or with ``partner``.

        What answers add is exact whatever the time; after ``max_seconds`` the pair's probability is
        as good as was found by then, and a warning says so.
        """
        from mlestruct.roommates.plan import Explanation

        other = plan.partner(person) if partner is None else partner
        if other is None:
            raise ValueError(f"{person!r} has no partner in the plan; name one by partner=")
        (pairing, a), (theirs, b) = (plan.find(p, "explain") for p in (person, other))
        if theirs is not pairing or a == b:
            raise ValueError(f"{person!r} and {other!r} are no two people of one group")
        withheld = () if protected else self.protected_
        known = "beliefs" in pairing.__dict__
        with self._limited(max_seconds, "explain"):
            found = Explanation.of(plan.people.table, pairing, (a, b), withheld)
            if not known and limits.cut():  # what was cut short is no plan's
                del pairing.__dict__["beliefs"]
        return found

    def evaluate(
        self,
        people: Any,
        pairs: Any = None,
        top: Sequence[int] = (1, 5, 10),
        *,
        max_seconds: float | None = None,
        **removed: object,
    ) -> Evaluation:
        """Judge on people and pairs that were not learned from; who is in no pair is left out.

        The result's first line counts the pairs that were learned from. After ``max_seconds``
        probabilities are as good as was found by then: bounds hold, ranks by probability are rough,
        and a warning and ``notes`` say so.
        """
        from mlestruct.roommates.evaluation import evaluate

        for name in removed:
            refuse_removed(f"evaluate({name}=)")
            raise TypeError(f"evaluate() has no argument {name!r}")
        with self._limited(max_seconds, "evaluate"):
            groups, notes = self._held(people, pairs)
            found = evaluate(groups, top, notes)
            if (limit := limits.cut()) is not None:
                found = replace(found, notes=[*found.notes, limit.words()])
        return found

    def score(self, people: Any, pairs: Any) -> float:
        """The share of people whose observed partner the best plan gives them.

        Of those in ``pairs``; who is in no pair is left out, as in :meth:`evaluate`.
        """
        groups, _ = self._held(people, pairs)
        right = [group.pairing.solution.partner == group.partner for group in groups]
        return float(np.concatenate(right).mean())

    def _held(self, people: Any, pairs: Any) -> tuple[list[Held], list[str]]:
        """Every group of the people in pairs, to judge on; and in words who is left out."""
        read = self._read(people)
        columns = replace(self._columns, weight=None)
        observed = read_pairs(pairs, read, columns)
        blocks, notes = blocks_of(observed, read, "compare with")
        notes += observed.doubts
        held = [self._known.held(read, block) for block in blocks]
        return held, [*read.notes, *notes]

    def summary(self) -> RoommateSummary:
        """What was learned, how sure it is, what cannot be known, and the proof; ``print`` it."""
        return self._known.summary()

    def report(
        self, path: str | os.PathLike[str], people: Any, pairs: Any = None, **asked: Any
    ) -> None:
        """Write the page that ``mlestruct roommates assign`` writes: the plan and its reasons.

        With the people's own ``pairs`` it also says how good the plan is. ``asked`` is what
        :meth:`assign` takes, ``names`` (a column to show beside ids) and ``protected``.
        """
        from mlestruct.roommates.report import Report

        known = None if pairs is None else table(pairs)
        Report.of(self, table(people), known, **asked).page(path)

    def save(self, path: stored.Path) -> None:
        """Write a model file, which predicts the same bits in another process; no data, no code.

        It tells which answers were given, so nobody but its owner may read it.
        """
        known = self._known
        kind, settings = type(self).__name__, self.get_params()
        stored.write(path, kind, settings, known.fitted, known.packed(), private=True)

    @classmethod
    def load(cls, path: stored.Path, **again: Any) -> Self:
        """A saved model."""
        settings, fitted, learned = stored.read(path, cls.__name__, again)
        with stored.loading(path, cls.__name__):
            model = cls().set_params(**settings)
            model._keep(Knowledge.unpacked(fitted, learned))
        return model


def _by_column(name: str, given: Any, columns: Sequence[str] | None) -> dict[str, Any]:
    """A setting by column, or one for all of them; None where columns are not known yet."""
    if not isinstance(given, Mapping):
        return dict.fromkeys([""] if columns is None else columns, given)
    strange = [own for own in given if columns is not None and own not in columns]
    if strange:
        there = ", ".join(columns or ())
        raise ValueError(f"{name}: {strange[0]!r} is no column of answers; there are {there}")
    return dict(given)
