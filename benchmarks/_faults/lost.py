"""Processes killed in the middle: fits that go on from their file, workers that are replaced."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._faults import hostile
from mlestruct.inference import best
from mlestruct.learners import LEARNERS, Found
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.structures.base import Array


@dataclass(frozen=True)
class Fit:
    """A way to learn, and a problem for it."""

    name: str
    learner: str
    route: str
    structure: Any

    def run(self, solver: ms.FrankWolfe) -> Found:
        """The model; of a checkpoint that is there, what is left of the fit."""
        rng = np.random.default_rng(3)
        blind = ms.Batch.of(self.structure, count=12)
        outcomes, *_ = best(blind, rng.standard_normal(blind.size))
        batch = ms.Batch.of(self.structure, outcomes)
        features = ms.Dense.of(batch, rng.standard_normal((batch.size, 4)))
        route = {} if self.learner == "perceptron" else {"route": self.route, "solver": solver}
        made = LEARNERS[self.learner](regulariser=0.1, **route)
        return next(iter(made.path(batch, features, [0.1])))


FITS = [
    Fit("Frank-Wolfe on matchings", "mle_struct", "frank_wolfe", ms.BipartiteMatching(5)),
    Fit("Frank-Wolfe on grids", "mle_struct", "frank_wolfe", ms.grid(3, 3)),
    Fit("messages on grids", "trw", "direct", ms.grid(4, 4, 3)),
    Fit("chains", "exact_mle", "direct", ms.chain(8, 4)),
    Fit("pseudo-likelihood", "pseudo_likelihood", "direct", ms.grid(4, 4)),
    Fit("max-margin", "ssvm", "frank_wolfe", ms.BipartiteMatching(5)),
]
SOLVER = ms.FrankWolfe(tol=1e-7, rounds=60)


def bits(model: Found) -> bytes:
    """What must not change: weights, certificate and every round but for its seconds."""
    rows = [(calls, value, gap) for calls, _, value, gap in model.history]
    proof = model.certificate
    numbers = [proof.gap, proof.objective, *model.theta, *np.ravel(rows)]
    return np.array(numbers, dtype=float).tobytes()


def killed(fit: Fit, kills: int, seed: int = 0) -> str | None:
    """A fit killed again and again at any moment, and gone on with, is as if nothing had been."""
    rng, expected = np.random.default_rng(seed), bits(fit.run(SOLVER))
    with TemporaryDirectory() as folder:
        runs = Runs(fit, Path(folder))
        whole, found = runs.seconds(), []
        for _ in range(kills):
            while not runs.kill(float(rng.random()) * whole / 2):  # it ended first: begin anew
                found.append(runs.take())
        runs.finish()
        found.append(runs.take())
    if None in found:
        return f"{fit.name}: a fit was lost"
    return None if set(found) == {expected} else f"{fit.name}: other bits"


@dataclass(frozen=True)
class Runs:
    """A fit in processes of its own, one after the other, that go on from one checkpoint."""

    fit: Fit
    folder: Path

    def kill(self, seconds: float) -> bool:
        """Run it for so long; False where it had ended by then."""
        child = self._start()
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])

    def finish(self) -> None:
        """Run it to its end."""
        os.waitpid(self._start(), 0)

    def seconds(self) -> float:
        """How long it takes if nobody kills it."""
        began = time.perf_counter()
        self.finish()
        self.take()
        return time.perf_counter() - began

    def take(self) -> bytes | None:
        """What it found, None if nothing; then everything is as before its first run."""
        result = self.folder / "bits"
        found = result.read_bytes() if result.exists() else None
        for file in self.folder.iterdir():
            file.unlink()
        return found

    def _start(self) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child asks none
            child = os.fork()  # everything is compiled and imported already
        if child == 0:
            try:
                kept = replace(SOLVER, checkpoint=Checkpoint(self.folder / "kept", every=1))
                found = bits(self.fit.run(kept))
                (self.folder / "bits.part").write_bytes(found)
                os.replace(self.folder / "bits.part", self.folder / "bits")
            finally:
                os._exit(0)
        return child


def worker_killed(engine: Any, after: int) -> str | None:
    """A worker that is killed within a round, once, changes no bit of the fit."""
    with TemporaryDirectory() as folder:
        mark = Path(folder) / "killed"
        solver = replace(hostile.SOLVER, engine=engine)
        model = hostile.fit(hostile.Assigns(dies_once(mark), after), solver)
        if not mark.exists():
            return f"nobody was killed within {after} questions"
    return None if hostile.same(model, hostile.right()) else f"other bits, killed after {after}"


def dies_once(mark: Path) -> Callable[[Array, list[Array]], Array]:
    """A solver that kills its own process, unless a mark says that it has."""

    def does(score: Array, answers: list[Array]) -> Array:
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return answers[-1]

    return does
