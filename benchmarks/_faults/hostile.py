"""Oracles that do wrong by one example of six, from some question on, and what is to come of it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import mlestruct as ms
from mlestruct.engine import Dask
from mlestruct.errors import LostWorker
from mlestruct.learners import Found
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.structures.base import Array

VICTIM, SIZE = 3, 3  # the one example of six whose matchings are 3 × 3
AFTER = 4  # answers to it that are right
SOLVER = ms.FrankWolfe(tol=1e-6, rounds=40)
Does = Callable[[Array, list[Array]], Any]
"""From a score and the right answers to it so far, this one's last, to what is returned."""


class Assigns:
    """Best assignments; of the victim, from question ``after`` on, whatever ``does`` makes of it.

    No dataclass: checkpoints know a solver by its name, so that a mended one may go on.
    """

    def __init__(self, does: Does | None = None, after: int = AFTER) -> None:
        self.does, self.after = does, after
        self.answers: list[Array] = []

    def __call__(self, score: Array) -> Any:
        rows, columns = linear_sum_assignment(score, maximize=True)
        best = np.zeros(score.shape)
        best[rows, columns] = 1.0
        if self.does is None or len(score) != SIZE:
            return best
        self.answers.append(best)
        return best if len(self.answers) <= self.after else self.does(score, self.answers)


@dataclass(frozen=True)
class Hostile:
    """A way to do wrong; ``says`` is its error's, None where the fit has to end all the same."""

    name: str
    does: Does
    says: str | None
    kind: type[Exception] = ValueError
    at_once: bool = True
    """Whether it is caught by its first wrong answer: then going on gives the bits of no fault."""


@dataclass(frozen=True)
class Deadly(Hostile):
    """One that takes its process with it, or never ends: asked in a process, from the start."""

    engine: Dask = field(default_factory=lambda: Dask(workers=1))


def problem() -> tuple[ms.Batch[Any], ms.Dense]:
    """Six matchings to learn three weights from."""
    rng = np.random.default_rng(7)
    sizes = [SIZE if m == VICTIM else 4 for m in range(6)]
    outcomes = [rng.permutation(n) for n in sizes]
    batch = ms.Batch.of([ms.BipartiteMatching(n) for n in sizes], outcomes)
    return batch, ms.Dense.of(batch, rng.standard_normal((batch.size, 3)))


def fit(oracle: Any, solver: ms.FrankWolfe = SOLVER) -> Found:
    """The model that an oracle alone leads to."""
    learner = ms.mle_struct(oracle=oracle, route="frank_wolfe", solver=solver)
    return learner.fit(*problem())


def right() -> Found:
    """The model of an oracle that does no wrong."""
    return fit(Assigns())


def same(one: Found, other: Found) -> bool:
    """Bit for bit, but for the seconds it took."""
    rounds = [[(calls, value, gap) for calls, _, value, gap in m.history] for m in (one, other)]
    return rounds[0] == rounds[1] and one.theta.tobytes() == other.theta.tobytes()


def fault(case: Hostile) -> str | None:
    """What is wrong with how the library takes it, and with going on after it; None if nothing."""
    with TemporaryDirectory() as folder:
        kept = replace(SOLVER, checkpoint=Checkpoint(Path(folder) / "kept", every=1))
        deadly = isinstance(case, Deadly)
        asked = replace(kept, engine=case.engine) if isinstance(case, Deadly) else kept
        try:
            model = fit(Assigns(case.does, 0 if deadly else AFTER), asked)
        except Exception as error:
            return _misnamed(case, error) or _lost(case, fit(Assigns(), kept))
        finally:
            if isinstance(case, Deadly):
                case.engine.close()
    if case.says is not None:
        return "nobody noticed"
    return _unproven(model)


def _lost(case: Hostile, model: Found) -> str | None:
    proven = model.certificate.relative <= SOLVER.tol and _unproven(model) is None
    good = same(model, right()) if case.at_once else proven
    return None if good else "a healthy solver did not go on from the checkpoint"


def _misnamed(case: Hostile, error: Exception) -> str | None:
    told = "\n".join([str(error), *getattr(error, "__notes__", [])])
    if case.says is None or not isinstance(error, case.kind) or not re.search(case.says, told):
        return f"it raised {type(error).__name__}: {told}"
    return None if re.search(rf"example {VICTIM}\b", told) else f"no example is named: {told}"


def _unproven(model: Found) -> str | None:
    """A certificate has to hold: the optimum lies within its gap."""
    best, proof = right().certificate, model.certificate
    short = proof.objective - best.objective - proof.gap
    return f"the error exceeds the gap by {short:.3g}" if short > 0 else None


def worst(score: Array) -> Array:
    """The worst assignment instead of the best."""
    rows, columns = linear_sum_assignment(score)
    found = np.zeros(score.shape)
    found[rows, columns] = 1.0
    return found


def overwrites(score: Array, answers: list[Array]) -> Array:
    """A right answer that leaves its question destroyed."""
    score[:] = np.nan
    return answers[-1]


def reuses(score: Array, answers: list[Array]) -> Array:
    """Right answers, all in one array that the next one overwrites."""
    answers[0][:] = answers[-1]
    return answers[0]


def raises(score: Array, answers: list[Array]) -> Array:
    """An error of its own."""
    raise ZeroDivisionError("the solver's own")


def bounded(slack: float) -> Does:
    """The worst answer, with a bound that is right and ``slack`` too large."""
    return lambda score, answers: ms.Answer(
        worst(score), float((score * answers[-1]).sum()) + slack
    )


def random(score: Array, answers: list[Array]) -> Array:
    """Any assignment."""
    return np.eye(SIZE)[np.random.default_rng().permutation(SIZE)]


def hangs(score: Array, answers: list[Array]) -> Array:
    """Never an answer."""
    while True:
        time.sleep(1.0)


def exits(score: Array, answers: list[Array]) -> Array:
    """The end of its process, without a word."""
    os._exit(3)


def crashes(score: Array, answers: list[Array]) -> Array:
    """A segmentation fault."""
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("still here")


BELOW = "no score exceeds .* but (the current point|the observed outcome) has"
HOSTILE = [
    Hostile("raises", raises, "the solver raised this", ZeroDivisionError),
    Hostile("returns nothing", lambda score, answers: None, None),
    Hostile("another shape", lambda score, answers: np.eye(SIZE - 1), "is no outcome"),
    Hostile("text", lambda score, answers: "best", "is no outcome"),
    Hostile("NaN", lambda score, answers: np.full((SIZE, SIZE), np.nan), "is no outcome"),
    Hostile("no matching", lambda score, answers: np.ones((SIZE, SIZE)), "an infeasible answer"),
    Hostile("a fraction", lambda score, answers: np.full((SIZE, SIZE), 1 / SIZE), "are 0 or 1"),
    Hostile("the worst answer", lambda score, answers: worst(score), BELOW),
    Hostile("a stale answer", lambda score, answers: answers[0], BELOW, at_once=False),
    Hostile("random answers", random, BELOW, at_once=False),
    Hostile("a bound of NaN", lambda score, answers: ms.Answer(answers[-1], np.nan), "by nan"),
    Hostile("a bound too low", bounded(-1e3), "its own answer reaches|no score exceeds"),
    Hostile("a bound of text", lambda score, answers: ms.Answer(answers[-1], "much"), "much"),
    Hostile("a bound of infinity", bounded(np.inf), None),
    Hostile("roughly right, with a bound", bounded(0.5), None),
    Hostile("overwrites its question", overwrites, None),
    Hostile("reuses its answers", reuses, None),
]  # fmt: skip
DEADLY = [
    Deadly("hangs", hangs, "", LostWorker, engine=Dask(workers=1, timeout=5.0)),
    Deadly("exits", exits, "", LostWorker),
    Deadly("a segmentation fault", crashes, "", LostWorker),
]
