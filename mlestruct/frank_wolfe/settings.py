"""The settings of Frank-Wolfe: what fits and predictions carry, until one of them asks to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from mlestruct.checkpoint import AnyCheckpoint
from mlestruct.drive import Budget, Progress, drive, last
from mlestruct.dual import Dual, Interior
from mlestruct.engine import Engine
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array, as_count
from mlestruct.structures.batch import Batch

Step = Literal["auto", "pairwise", "block", "batch", "batch_fixed"]
Draw = Literal["permutation", "uniform", "gaps"]
Keep = Literal["best", "last"]
Sums = Callable[[Batch[Any], Array], tuple[Array, Array, Any]]
"""Scores to log Z and τ of every example, summed over all outcomes: exact."""


class Limited:
    """Settings of which some say what a run may take."""

    def check(self: Any, least: dict[str, int], **kinds: Any) -> None:
        """A ValueError for a number below its ``least``, or a word that is none of its kind."""
        for name, fewest in least.items():
            if name != "corrective" or self.corrective is not None:
                as_count(getattr(self, name), name, fewest)
        self.budget.check()
        for name, kind in {**kinds, "keep": Keep}.items():
            if (given := getattr(self, name)) not in get_args(kind):
                raise ValueError(f"{name} is one of {', '.join(get_args(kind))}, not {given!r}")

    @property
    def budget(self: Any) -> Budget:
        """What a run may take."""
        return Budget(self.tol, self.rounds, self.seconds, self.calls)

    def solve(
        self: Any, dual: Dual, oracle: Oracle[Any], start: Array | None = None, **more: Any
    ) -> Progress:
        """The last round of :meth:`run`."""
        return last(self.run(dual, oracle, start, **more))


@dataclass(frozen=True)
class FrankWolfe(Limited):
    """Minimises a :class:`Dual` through its oracle alone; every round comes with its certificate.

    ``tol`` is the relative gap to stop at. ``step``: ``pairwise`` on active sets (with at most
    ``corrective`` passes over known vertices between calls, while they gain, 8 unless the structure
    says otherwise), or plain steps, per ``block`` or of the whole ``batch``, with exact line
    search; ``batch_fixed`` are the papers' 2/(k+2). ``auto`` is pairwise unless memory has too
    little room for vertices. The papers' own is :class:`BCFW`. ``keep`` says which weights a run
    returns: those of the best bound (``best``; if it is cut short and they are proven to be worse
    than the weights to begin with, those), or the ``last`` ones, as the papers do. ``centre``
    holds θ near where it was (max-margin: near the best so far), so that questions do not leap;
    fixed steps have none.

    ``shards`` fixes what is asked together, so any ``engine`` with any number of ``workers`` gives
    the same bits: ``threads`` (the default of several workers), or another of
    :mod:`mlestruct.engine`. Adapts by counts, never by clock. With a ``checkpoint`` a run goes on
    where an earlier one was ended, on whatever engine.
    """

    tol: float = 1e-3
    step: Step = "auto"
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    corrective: int | None = None
    warm: int = 5
    shards: int = 8
    workers: int = 1
    engine: Engine | str | None = None
    checkpoint: AnyCheckpoint = None
    centre: bool = True
    keep: Keep = "best"

    def __post_init__(self) -> None:
        least = {"rounds": 0, "corrective": 0, "warm": 0, "shards": 1, "workers": 1}
        self.check(least, step=Step)

    def run(
        self,
        dual: Dual,
        oracle: Oracle[Any],
        start: Array | None = None,
        sums: Sums | None = None,
        inner: Interior | None = None,
    ) -> Iterator[Progress]:
        """Yield a ``Progress`` per round; the last has ``done`` set. Leave the loop to stop.

        ``sums`` computes log Z exactly, over outcomes that the structures list: it bounds the
        optimum then, and the oracle is asked for vertices alone. ``inner`` is a point inside the
        polytope to begin at; without it one is looked for.
        """
        from mlestruct.frank_wolfe.rounds import method

        start = None if start is None else dual.batch.vector(start, "start")
        found = method(self, dual, oracle, start, sums, inner)
        return drive(found, self.budget, self.checkpoint)


@dataclass(frozen=True)
class BCFW(Limited):
    """Block-coordinate Frank-Wolfe as it was published, one example a step; for ``solver=``.

    ``rounds`` is the largest number of passes. A pass has as many steps as there are examples M;
    ``draw`` says which example a step is for: each once in random order (``permutation``), any
    (``uniform``), or one drawn in proportion to the ``gaps``. Step k has length 2M/(k+2M) if
    ``fixed``, else that of an exact line search. ``average`` certifies the weighted average of θ,
    ``keep`` is that of :class:`FrankWolfe`,
    ``cache`` keeps that many vertices per example, ``centre`` (of no paper) holds θ near where the
    last pass left it. A certificate asks the oracle once per example, after ``every`` passes.
    """

    tol: float = 1e-3
    draw: Draw = "permutation"
    fixed: bool = False
    average: bool = False
    cache: int = 0
    centre: bool = False
    rounds: int = 1000
    calls: int | None = None
    seconds: float | None = None
    every: int = 10
    random_state: int = 0
    checkpoint: AnyCheckpoint = None
    keep: Keep = "best"

    def __post_init__(self) -> None:
        self.check({"rounds": 0, "cache": 0, "every": 1, "random_state": 0}, draw=Draw)
        if self.fixed and self.centre:
            raise ValueError("fixed steps follow no objective, so a centre cannot help them")

    @property
    def engine(self) -> NoReturn:
        """None: a ValueError for learners that ask for one, to look at all examples at once."""
        raise ValueError(
            "solver= is a BCFW, which steps on one example after another: it is for mle_struct, "
            "trw, ssvm and piecewise, with every label; here give a FrankWolfe"
        )

    def run(
        self, dual: Dual, oracle: Oracle[Any], start: Array | None = None
    ) -> Iterator[Progress]:
        """Yield a ``Progress`` per certified pass; the last has ``done`` set."""
        from mlestruct.frank_wolfe.bcfw import method

        start = None if start is None else dual.batch.vector(start, "start")
        return drive(method(self, dual, oracle, start), self.budget, self.checkpoint)
