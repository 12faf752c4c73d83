"""RoommateModel: from a table of people and the pairs observed, to next year's pairs."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mlestruct.estimators.roommates.plan import Plan
from mlestruct.estimators.roommates.reports import Evaluation, Explanation, Summary

Names = str | Sequence[str]
Id = Hashable
Rule = tuple[Id, Id]


class RoommateModel:
    """Learns from observed pairs which answers go together, and pairs up new people.

    Columns are named by themselves or by patterns (``"q*"``). ``ordinal`` answers are numbers
    compared by |difference|, ``binary`` and ``categorical`` ones by same or different; with
    ``answers`` every unordered pair of levels has a weight as well. People are paired within a
    ``cohort`` (a column; None: all are one) and only with the ``same`` values in those columns.
    ``protected`` columns, and those of ``same``, are not itemised in explanations unless asked.
    Columns without a role, free text among them, are ignored, and the summary says so.

    ``partners`` names the two columns of ids in tables of pairs; ``weight`` a column of weights
    there, or ``outcomes`` maps the values of the column it names to weights. ``missing`` answers
    are refused (``refuse``), or count as an average one (``neutral``); people without a pair are
    left out of learning (``leave_out``) or refused (``refuse``).

    ``alpha`` is λ of (λ/2)‖θ‖²; of several, held-out cohorts choose. ``rho`` reweights the
    entropy: ½ bounds log Z from above, 1 is Bethe. ``tol`` is the relative gap to certify.

    After ``fit``: ``coef_``, ``names_``, ``certificate_``, ``history_``, ``n_iter_``, ``alpha_``.

    >>> import mlestruct as ms
    >>> people = [{"id": i, "tidy": i % 3} for i in range(6)]
    >>> model = ms.RoommateModel(ordinal="tidy").fit(people, [(0, 3), (1, 4), (2, 5)])
    >>> [sorted(pair[:2]) for pair in model.assign(people).pairs]
    [[0, 3], [1, 4], [2, 5]]
    """

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
        answers: bool = True,
        partners: tuple[str, str] = ("id_a", "id_b"),
        weight: str | None = None,
        outcomes: Mapping[Any, float] | None = None,
        missing: Literal["refuse", "neutral"] = "refuse",
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
        """Learn from tables of people and of pairs (or a list of (id, id)).

        Pairs of cohorts that ``people`` does not hold are skipped; that needs the cohort's column
        in ``pairs``. Likelihood is that of each group's pairs given who was paired, and given
        which people had pairs of each weight.
        """
        raise NotImplementedError

    def assign(
        self,
        people: Any,
        *,
        forbid: Sequence[Rule] = (),
        require: Sequence[Rule] = (),
        rooms: Any = None,
        decision: Literal["map", "expected"] = "map",
    ) -> Plan:
        """Pair up a table of people: the best total score, or the most pairs expected right.

        ``rooms`` is a table with columns ``room`` and ``size`` (1, 2 or 4), and the columns of
        ``same`` where rooms belong to groups.
        """
        raise NotImplementedError

    def probabilities(
        self, people: Any, *, forbid: Sequence[Rule] = (), require: Sequence[Rule] = ()
    ) -> Any:
        """Every allowed pair's pseudo-probability, most probable first, to be taken as a table."""
        raise NotImplementedError

    def explain(
        self, plan: Plan, person: Id, partner: Id = None, *, protected: bool = False
    ) -> Explanation:
        """Which answers help or hurt a pair: the person's own in the plan, or with ``partner``."""
        raise NotImplementedError

    def evaluate(self, people: Any, pairs: Any, top: Sequence[int] = (1, 5, 10)) -> Evaluation:
        """Judge on people and pairs that were not learned from."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """What was learned, how sure it is, and what proves it; ``print`` it."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file; it predicts the same bits in another process."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file."""
        raise NotImplementedError

    coef_: NDArray[np.float64]
