"""RoommateModel: from a table of people and the pairs observed, to next year's pairs."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from mlestruct import Batch, limits
from mlestruct.errors import DataWarning, outside, refuse_removed
from mlestruct.estimators.base import Estimator
from mlestruct.estimators.examples import Given
from mlestruct.features import Pairs
from mlestruct.inference.sandwich import PAIRS, Sandwich
from mlestruct.learners import Found, mle_struct
from mlestruct.learning.loop import AnyCheckpoint
from mlestruct.roommates.frames import table, written
from mlestruct.roommates.observed import (
    Agreement,
    Hall,
    Larger,
    WhoShares,
    examples_of,
    in_words,
    leaks,
    read_pairs,
    refuse_crossed,
)
from mlestruct.roommates.people import (
    Answers,
    Group,
    Missing,
    Names,
    People,
    Unknown,
    fitting,
    idle_codes,
    ids_of,
    listed,
    roles_of,
    survey,
)
from mlestruct.statistics import Interval, Intervals, Named
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints, as_count

if TYPE_CHECKING:
    from mlestruct.estimators.summary import Summary
    from mlestruct.roommates.evaluation import Evaluation
    from mlestruct.roommates.plan import Explanation, Pairing, Plan
    from mlestruct.roommates.rooms import Consent, Fixed, Rule

NoAnswer = Sequence[Any] | Mapping[str, Any]
ROLES = ("ordinal", "binary", "categorical", "ignore")
ALLOWED = {
    "missing": ("refuse", "neutral"),
    "larger": ("refuse", "leave_out"),
    "unknown": ("refuse", "neutral"),
}
OTHER = "{} is {!r} or {!r}, not {!r}"
LIMIT = "this surrogate's limit: what it would learn from unlimited data, not the true weights"
INDEPENDENT = "groups are so large that pairs are nearly independent of each other"
GIVEN = ("learner", "penalty", "l1", "bounds", "oracle", "solver")  # settings that stay as they are


class Known(NamedTuple):
    """Intervals of what pairs tell, the weights of a logistic regression, digests of all pairs."""

    told: Intervals
    logistic: Array
    marks: Ints


@dataclass(kw_only=True, eq=False, repr=False)
class RoommateModel(Estimator):
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
    people in them left out (``larger``). People without a pair are left out of learning.

    ``no_answer`` are codes that mean a missing answer, for all questions or by column. ``missing``
    answers are refused (``refuse``) or count as an average one (``neutral``). ``unknown`` is what
    becomes, when people are paired up, of an answer that nobody gave in the fit: it is refused or
    counts as an average one (``neutral``).

    ``alpha`` is λ of (λ/2)‖θ‖²; of several, held-out cohorts choose. ``rho`` reweights the
    entropy: ½ bounds log Z from above, 1 is Bethe. ``max_seconds`` bounds each call that takes long
    (``fit``, ``assign``, ``probabilities``, ``explain``, ``evaluate``), unless the call names its
    own: then a warning says what was cut. ``progress`` shows a bar (default: where somebody
    watches), or is a function told of each round. Other settings, and what a fit leaves, are those
    of :class:`Estimator`, for which a table of people is X and one of pairs is y: an example is a
    group of people. ``notes_`` say what was left out.

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
    no_answer: NoAnswer = ()
    missing: Missing = "refuse"
    unknown: Unknown = "refuse"
    rho: Any = 0.5
    tol: float = 1e-9
    private: ClassVar[bool] = True
    learns: ClassVar[tuple[str, ...]] = ("cohorts_",)

    def fit(  # type: ignore[override]
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
        The likelihood is that of each group's pairs given who was paired. With a ``checkpoint`` (a
        path, or :class:`Checkpoint`) a fit that was ended goes on, bit for bit; Ctrl-C leaves the
        model of the last round. After ``max_seconds`` the best weights so far are kept, with a
        looser certificate and rougher errors.
        """
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds) as limit:
            model = copy.copy(self)
            learn: Any = super(RoommateModel, model).fit
            vars(model).pop("_found", None)
            given = model._sampled(people, pairs)
            try:
                learn(given, [], checkpoint=checkpoint)
            except limits.OutOfTime:
                limits.note("no time was left to choose alpha, and the first was taken")
                model.alpha = float(self._alphas()[0])
                learn(given, [])
            finally:
                if "_found" in vars(model):  # also where Ctrl-C ended the fit
                    back = partial(model._look_back, given, vars(model).pop("_found").tau)
                    vars(self).update(vars(model), alpha=self.alpha, _back=back)
            if self._short or not self.alpha_scores_:  # else the choice of alpha was cut short
                limit.hit = False
        return self

    def _sampled(self, people: Any, pairs: Any) -> Given:
        """Tables of people and of who shares as examples, checked; they are remembered."""
        for name in GIVEN:
            if getattr(self, name) != self._defaults()[name]:
                raise ValueError(f"{name}= is not for room-mates, which learn by mle_struct")
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(OTHER.format(name, *allowed, getattr(self, name)))
        if listed(self.room) and listed(self.partner):
            raise ValueError("who shares is said by room= or by partner=, not by both")
        if isinstance(self.partners, str) or len(self.partners) < 2:
            raise ValueError(f"partners are two columns of ids, not {self.partners!r}")
        given = table(people, [self.id, *self._groups])
        homes = [n for n in (*listed(self.room), *listed(self.partner)) if n in given.names]
        taken = [self.id, *self._groups, *homes]
        roles = roles_of(given.names, {role: getattr(self, role) for role in ROLES}, taken)
        roles_of(given.names, {"protected": self.protected}, ())  # refuses names of no column
        codes = self._codes([name for name, role in roles.items() if role != "ignore"])
        idle = list[str]()
        if codes:
            idle, given = idle_codes(given, codes), given.respelled(codes)
        known, notes, faults, odd = survey(given, taken, roles, ids_of(given, self.id))
        everybody = People.read(given, self.id, self._groups, known, self.missing, faults=faults)
        observed = read_pairs(pairs, everybody, self._sharing)
        found, left_out = examples_of(observed, everybody)
        decided = {*taken, *roles_of(given.names, {"mix": self.mix}, ())}
        columns = {name: given.columns[name] for name in given.names if name not in decided}
        leaking = leaks(columns, observed.rows, everybody.group_of)
        asked_of = {asked.column for asked in known}
        odd += [*everybody.notes, *observed.doubts]
        odd += [in_words(one) for one in leaking if one.column in asked_of]
        for doubt in odd:
            warnings.warn(doubt, DataWarning, stacklevel=outside())
        notes = [*notes, *idle, *odd]
        notes += [in_words(o) for o in leaking if not o.few and o.column not in asked_of]
        if not known:
            raise ValueError("no answers to compare: name columns in ordinal, binary, categorical")
        keys = [hall.group.key[0] for hall in found.X if self.cohort is not None]
        self.cohorts_ = tuple(dict.fromkeys(str(written(key)) for key in keys))
        self.questions_, self.agreed_, self._noted = known, tuple(leaking), (*notes, *left_out)
        return found

    def taken(self, X: Any, y: Any) -> Given:
        """A fitted model's groups: all, or those of people in pairs; or examples of its own."""
        if isinstance(X, list) and all(isinstance(x, Hall) for x in X):
            return Given(X, y, range(len(X)), X)
        if y is not None:
            return self._observed(X, y)[0]
        read = self._read(X)
        halls = [Hall(read, group) for group in read.groups]
        return Given(halls, None, range(len(halls)), halls)

    def divided(self, given: Given) -> Iterator[tuple[Given, Given]]:
        """All other cohorts, and this one, in turn: the first of the columns that part people."""
        keys = [hall.group.key[:1] for hall in given.X]
        cohorts = list(dict.fromkeys(keys))
        if len(cohorts) < 2:
            raise ValueError("several alphas need two cohorts or more: each is held out in turn")
        for number, cohort in enumerate(cohorts):
            if number and limits.late():
                limits.note(f"alpha was chosen by {number} of the held-out cohorts alone")
                return
            mine = np.array([key == cohort for key in keys])
            yield given.part(np.flatnonzero(~mine)), given.part(np.flatnonzero(mine))

    def structures(self, X: Sequence[Hall]) -> list[Matching]:
        sizes = (len(hall.group.members) for hall in X)
        return [Matching(size + size % 2) for size in sizes]

    def _pairs(self, batch: Batch[Any], X: Sequence[Hall]) -> Pairs:
        """What every two people's answers are worth to each weight; an empty bed has none."""
        codes = []
        for hall in X:
            own = hall.people.codes[hall.group.members]
            codes.append(np.pad(own, ((0, len(own) % 2), (0, 0)), constant_values=-1))
        last = np.concatenate(codes).max(axis=0, initial=-1)  # of a missing or unknown answer?
        both = zip(self.questions_, last, strict=True)
        asked = [own.question(self.answers, code == len(own.levels)) for own, code in both]
        return Pairs.of(batch, codes, asked)

    def features(self, batch: Batch[Any], X: Sequence[Hall]) -> Pairs:
        """The same but for what all perfect matchings have."""
        return self._pairs(batch, X).near()

    def present(self, x: Hall, outcome: Any) -> list[tuple[Any, Any]]:
        """The pairs as ids."""
        ids = [x.people.ids[row] for row in x.group.members.tolist()]
        twos = [(a, int(b)) for a, b in enumerate(outcome) if a < b < len(ids)]
        return [(ids[a], ids[b]) for a, b in twos]

    def shape(self, x: Hall, structure: Any, flat: Array) -> Array:
        """A table of people and people; who stays alone is in no pair."""
        out = np.zeros((structure.n_nodes,) * 2)
        out[tuple(structure.ends.T)] = flat
        return (out + out.T)[: len(x.group.members), : len(x.group.members)]

    def names(self) -> list[str]:
        self._check_fitted()
        return [w for asked in self.questions_ for w in asked.question(self.answers, False).weights]

    def contrasts(self, against: int = 0) -> list[Named]:
        return [contrast for _, contrast in contrasts_of(self.questions_, self.answers)]

    def _keep(self, model: Found, alpha: float, d: int) -> None:
        super()._keep(model, alpha, d)
        self._found = model

    def _look_back(self, given: Given, tau: Array) -> Known:
        """What a model keeps of the pairs it learned from."""
        from mlestruct.roommates.evaluation import logistic, marks

        batch, features = self._problem(given.X, given.y, given.weight)
        dual = mle_struct(self.rho, regulariser=self.alpha_).dual(batch, features)
        if len(tau) != batch.size:
            tau = self._inference().marginals(batch, features.potentials(self.coef_)).tau
        errors = Sandwich.of(dual, self.coef_, tau)
        told = [(name, errors.contrast(row)) for name, row in self.contrasts()]
        rows = [Interval(name, *found[:4]) for name, found in told if found.identified]
        few = (
            f"pairs are too few for so many weights: {PAIRS:g} each are needed that the model is "
            f"not sure of, and here are {errors.undecided:.3g} in all"
        )
        intervals = Intervals(
            rows if errors.enough else [],
            *(errors.units, "pairs", errors.rank, len(self.coef_), LIMIT, INDEPENDENT),
            refused=None if errors.enough else few,
        )
        return Known(intervals, logistic(batch, self._pairs(batch, given.X)), marks(given))

    @property
    def known_(self) -> Known:
        """What is kept of the pairs learned from; made when it is first asked for."""
        self._check_fitted()
        known: Any = vars(self)["_back"]
        if not isinstance(known, Known):
            known = vars(self)["_back"] = known()
        return known

    def effects(self) -> list[tuple[str, Interval]]:
        """The intervals of everything that pairs tell, each with its column, the surest first."""
        column = {own.name: name for name, own in contrasts_of(self.questions_, self.answers)}
        found = [(column[row.name], row) for row in self.known_.told.rows]
        return sorted(found, key=lambda one: -abs(one[1].estimate) / max(one[1].error, 1e-12))

    def _notes(self, batch: Any, features: Any) -> list[str]:
        cut = "max_seconds ended the fit: errors of weights are rough"
        return [*([cut] if self._short == "seconds" else []), *self._noted]

    def _codes(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        """The codes for no answer of every column."""
        given = self.no_answer
        if not isinstance(given, Mapping):
            return {name: listed(given) for name in columns if listed(given)}
        strange = next((name for name in given if name not in columns), None)
        if strange is not None:
            there = ", ".join(columns)
            raise ValueError(f"no_answer: {strange!r} is no column of answers; there are {there}")
        return {name: listed(codes) for name, codes in given.items()}

    @property
    def protected_(self) -> list[str]:
        """The columns that explanations do not itemise."""
        asked = [answers.column for answers in self.questions_]
        return fitting(asked, self.protected)

    @property
    def _groups(self) -> list[str]:
        """The columns that keep people apart."""
        return [*([] if self.cohort is None else [self.cohort]), *listed(self.same)]

    @property
    def _sharing(self) -> WhoShares:
        way = next((way for way in ("room", "partner") if listed(getattr(self, way))), "partners")
        return WhoShares(way, tuple(listed(getattr(self, way))), self.id, self.cohort, self.larger)

    def _read(self, people: Any, unknown: Unknown | None = None) -> People:
        self._check_fitted()
        rule = self.unknown if unknown is None else unknown
        if rule not in ALLOWED["unknown"]:
            raise ValueError(OTHER.format("unknown", *ALLOWED["unknown"], rule))
        codes = self._codes([own.column for own in self.questions_])
        given = table(people, [self.id, *self._groups]).respelled(codes)
        return People.read(given, self.id, self._groups, self.questions_, self.missing, rule)

    def _observed(self, people: Any, pairs: Any) -> tuple[Given, list[str]]:
        """The groups of those in pairs, and in words who is left out."""
        read = self._read(people)
        observed = read_pairs(pairs, read, self._sharing)
        given, notes = examples_of(observed, read, "compare with")
        return given, [*read.notes, *notes, *observed.doubts]

    def pairing(self, people: People, group: Group, **rules: Any) -> Pairing:
        """A group to pair up, under rules."""
        from mlestruct.roommates.plan import Pairing, worths

        hall = [Hall(people, group)]
        asked = self._pairs(Batch.of(self.structures(hall), count=1), hall).questions
        found = worths(asked, people.codes[group.members], self.coef_)
        return Pairing.of(people, group, found, self._inference(), **rules)

    def assign(
        self,
        people: Any,
        *,
        forbid: Sequence[Rule] = (),
        require: Sequence[Rule] = (),
        rooms: Any = None,
        fixed: Fixed | None = None,
        consent: Consent = (),
        unknown: Unknown | None = None,
        mix: Names = (),
        max_seconds: float | None = None,
    ) -> Plan:
        """Pair up a table of people: the best total score under rules and rooms.

        ``rooms`` is a table with columns ``room`` and ``size`` (1, 2 or 4), and those of ``same``
        where rooms belong to groups. A column ``fixed`` there, or the mapping ``fixed``, says who
        is to be in which room. Without rooms a group of odd size leaves one person
        over. ``consent`` are pairs (person, other): whoever is named first may share only with the
        others so named. ``unknown`` takes the place of the model's own; ``mix`` are further columns
        in which partners may differ though all observed pairs agree (else a ValueError).

        A plan is best whatever the time; with ``max_seconds`` its probabilities are computed at
        once, as exactly as that allows. Where groups are left without a plan by then, a
        TimeoutError says how many.
        """
        from mlestruct.roommates.plan import Plan
        from mlestruct.roommates.rooms import refused_by, rooms_of

        if fixed and rooms is None:
            raise ValueError("fixed= needs rooms=, a table of rooms")
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            read = self._read(people, unknown)
            given = None
            if rooms is not None:
                given = rooms_of(table(rooms, ["room"]), read, self._groups, fixed or {})
            alone = [*forbid, *refused_by(read, consent)]
            plan = Plan.of(self, read, alone, require, given)
            agreed = {one.column: one for one in self.agreed_}
            columns = [*dict.fromkeys((*read.table.names, *agreed))]
            for name in (*roles_of(columns, {"mix": mix}, ()), *fitting(columns, self.mix)):
                agreed.pop(name, None)
            refuse_crossed(agreed.values(), read.table, plan.twos)
            if np.isfinite(limits.left()):
                for pairing in plan.pairings:
                    _ = pairing.beliefs
        return plan

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

        Columns ``a``, ``b``, ``probability``, ``score``, ``group`` by name, most probable first.
        Each person's probabilities add up to 1.
        """
        from mlestruct.roommates.plan import likely

        given = table(people)
        read = self._read(given)
        pairings = [self.pairing(read, group) for group in read.groups]
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            return likely(given.cells[self.id], pairings, count, each)

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
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
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
        from mlestruct.roommates.evaluation import evaluate, marks

        for name in removed:
            refuse_removed(f"evaluate({name}=)")
            raise TypeError(f"evaluate() has no argument {name!r}")
        with limits.limited(max_seconds, type(self).__name__, self.max_seconds):
            top = [as_count(k, "top", least=1) for k in listed(top)]
            given, notes = self._observed(people, pairs)
            batch = Batch.of(self.structures(given.X), given.y)
            features = self._pairs(batch, given.X)
            values = {
                "marginal": np.concatenate([self.pairing(*hall).tau for hall in given.X]),
                "score": features.potentials(self.coef_),
                "logistic": features.potentials(self.known_.logistic),
            }
            cohorts = [hall.group.key[:1] for hall in given.X]
            learned = int(np.isin(marks(given), self.known_.marks).sum())
            found = evaluate(batch, cohorts, values, top, learned, notes)
            if (limit := limits.cut()) is not None:
                found = replace(found, notes=[*found.notes, limit.words()])
        return found

    def score(self, people: Any, pairs: Any) -> float:  # type: ignore[override]
        """The share of people whose observed partner the best plan gives them.

        Of those in ``pairs``; who is in no pair is left out, as in :meth:`evaluate`.
        """
        given, _ = self._observed(people, pairs)
        both = zip(given.X, given.outcomes, strict=True)
        right = [self.pairing(*hall).solution.partner[y] == y[:, ::-1] for hall, y in both]
        return float(np.concatenate(right).mean())

    def summary(self, intervals: Intervals | None = None) -> Summary:
        """What was learned, how sure it is, what proves it and what it cost; ``print`` it."""
        self._check_fitted()
        return super().summary(self.known_.told if intervals is None else intervals)

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

    def stored(self) -> dict[str, Any]:
        """What a model file holds besides the fit's own: answers that were given, and no people."""
        found = super().stored() | {"agreed": tuple(map(tuple, self.agreed_))}
        told, *known = self.known_
        asked = [*map(astuple, self.questions_)]
        return found | {"asked": asked, "told": astuple(told), "known": known}

    def restore(self, learned: dict[str, Any]) -> None:
        super().restore(learned)
        rows, *told = learned["told"]
        intervals = Intervals([Interval(*row) for row in rows], *told)
        self._back = Known(intervals, *learned["known"])
        self.questions_ = tuple(Answers(*row) for row in learned["asked"])
        self.agreed_ = tuple(Agreement(*row) for row in learned["agreed"])


def contrasts_of(asked: Sequence[Answers], indicators: bool) -> list[tuple[str, Named]]:
    """Combinations of weights that pairs can tell, each with its column.

    A question with one weight has that one. A question with a weight per pair of answers has the
    worth of each pair, (P T Pᵀ)_ab with P = I − 1 shareᵀ: less both answers' means over the people
    learned from, plus the mean of all. Whatever is added to all pairs of one answer changes no
    matching's probability.
    """
    questions = [answers.question(indicators, False) for answers in asked]
    count, at, found = sum(len(q.weights) for q in questions), 0, list[tuple[str, Named]]()
    for answers, question in zip(asked, questions, strict=True):
        own, levels = slice(at, at + len(question.weights)), answers.levels
        named, at = [(question.weights[0], np.ones(1))], own.stop
        if len(question.weights) > 1:
            project = np.eye(len(levels)) - answers.share
            tables = project @ question.tables @ project.T
            named = [
                (f"{answers.column} {levels[a]} with {levels[b]}", tables[:, a, b])
                for a, b in combinations_with_replacement(range(len(levels)), 2)
            ]
        for name, part in named:
            row = np.zeros(count)
            row[own] = part
            found.append((answers.column, Named(name, row)))
    return found
