"""Frank-Wolfe for fits that are driven round by round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from mlestruct.drive import Budget, OwnRounds, Progress, drive, last
from mlestruct.dual import Dual
from mlestruct.engine import engine_of
from mlestruct.learning import bcfw, frank_wolfe
from mlestruct.learning.asking import Asked, RemoteOracle
from mlestruct.learning.loop import Found
from mlestruct.learning.run import OracleRun, Sums
from mlestruct.oracle import Oracle
from mlestruct.structures.base import Array


class Driven:
    @property
    def budget(self: Any) -> Budget:
        return Budget(self.tol, self.rounds, self.seconds, self.calls)

    def solve(self: Any, *given: Any, **more: Any) -> Any:
        return last(self.run(*given, **more))


class _Late:
    """What a run asks of its loop."""

    def __init__(self, loop: Any) -> None:
        self.state, self.late = loop.tree, loop.late


def _progress(run: OracleRun, found: Found) -> Progress:
    def of(one: Found) -> Progress:
        given = one.round, one.calls, one.examples, one.certificate, one.theta, one.tau, one.at
        return Progress(*given, asking=one.asking, bytes=one.bytes)

    other = run.instead(found)
    return replace(of(found), instead=None if other is found else of(other))


def _proof(run: Any, why: str) -> Progress:
    return _progress(run, run.certified())


class FrankWolfe(Driven, frank_wolfe.FrankWolfe):
    def run(
        self,
        dual: Dual,
        oracle: Oracle[Any],
        start: Array | None = None,
        sums: Sums | None = None,
        inner: Any = None,
    ) -> Iterator[Progress]:
        start = None if start is None else dual.batch.vector(start, "start")

        def rounds(loop: Any) -> Iterator[Progress]:
            engine = engine_of(self.engine, self.workers)
            remote = RemoteOracle(engine, oracle)
            run = frank_wolfe.Rounds(self, dual, remote, _Late(loop), start, inner)
            run.sums = sums
            with closing(Asked(engine, dual.batch, oracle, self.shards)) as asked:
                if loop.tree is not None:
                    run.go_on(loop.tree, asked)
                while True:
                    loop.save(partial(run.where, asked))
                    found = run.prove(asked)
                    yield _progress(run, run.said(found))
                    run.move(found)

        setting = partial(self._setting, dual, oracle, start, sums)
        method = OwnRounds("frank_wolfe", rounds, setting, dual.batch.size)
        return drive(method, self.budget, self.checkpoint)


class BCFW(Driven, bcfw.BCFW):
    def run(
        self, dual: Dual, oracle: Oracle[Any], start: Array | None = None
    ) -> Iterator[Progress]:
        start = None if start is None else dual.batch.vector(start, "start")

        def rounds(loop: Any) -> Iterator[Progress]:
            run = bcfw.Passes(self, dual, oracle, _Late(loop), start)
            if loop.tree is not None:
                run.go_on(loop.tree)
            while True:
                loop.save(run.where)
                if run.number % self.every == 0:
                    yield _progress(run, run.certified())
                else:
                    idle = _progress(run, run.found())
                    yield replace(idle, left=float("inf"), silent=True, prove=partial(_proof, run))
                run.once(loop.late)

        setting = partial(self._setting, dual, oracle, start, None)
        method = OwnRounds("bcfw", rounds, setting, dual.batch.size)
        return drive(method, self.budget, self.checkpoint)
