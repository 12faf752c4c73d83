"""``mlestruct warm``: compile what first fits need, beforehand and on every core.

With ``--package`` machine code goes into the package itself, for every processor of a level; see
:mod:`mlestruct.prebuilt`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from mlestruct.cli.options import add_json, say, tell

RUN = "import sys; from mlestruct.cli.warm import JOBS; JOBS[sys.argv[1]]()"


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("warm", help="compile beforehand what first fits would wait for")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)}; all if none")
    parser.add_argument("--package", action="store_true", help="into the package, for wheels of it")
    parser.add_argument(
        "--also", action="append", default=[], metavar="COMMAND", help="and what this command needs"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """A process per job, as many at a time as there are cores."""
    unknown = sorted({*given.jobs} - {*JOBS})
    if unknown:
        raise ValueError(f"nothing to compile for {unknown[0]!r}; there are {', '.join(JOBS)}")
    began, commands = time.perf_counter(), [shlex.split(command) for command in given.also]
    commands += [[sys.executable, "-c", RUN, name] for name in given.jobs or JOBS]
    with (
        _recording(given.package) as more,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        missed = list(filter(None, pool.map(lambda one: _missed(one, more), commands)))
    seconds = time.perf_counter() - began
    say(given, f"ready after {seconds:.0f} s")
    tell(given, seconds=seconds, missed=missed)
    for command in missed:
        print(f"mlestruct: {command} could not be compiled", file=sys.stderr)
    return 1 if missed else 0


@contextlib.contextmanager
def _recording(wanted: bool) -> Iterator[dict[str, str]]:
    """The environment of processes whose kernels are put into the package in the end."""
    if not wanted:
        yield {}
        return
    from mlestruct import prebuilt

    name, features = prebuilt.level()
    with tempfile.TemporaryDirectory() as folder:
        yield {
            prebuilt.RECORD: folder,
            "NUMBA_CACHE_DIR": folder,
            "NUMBA_CPU_NAME": name,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in features),
        }
        print(f"machine code for {name}: {prebuilt.pack(Path(folder))}")


def _missed(command: list[str], more: dict[str, str]) -> str | None:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, env={**os.environ, **threads, **more})
    return command[-1] if done.returncode else None


def _roommates() -> None:
    import mlestruct as ms
    from mlestruct import data

    people, pairs, _ = data.roommates(40)
    before, after = (
        {name: column[chosen] for name, column in people.items()}
        for chosen in (people["year"] < 3, people["year"] == 3)
    )
    model = ms.RoommateModel(id="id", cohort="year", same="gender", ordinal="q*", alpha=10.0)
    model.fit(before, pairs)
    plan = model.assign(after)
    model.summary()
    model.explain(plan, plan.pairs[0].a)
    model.evaluate(after, pairs)


def _matchings() -> None:
    import mlestruct as ms

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 4, 4, 2)), [rng.permutation(4) for _ in range(4)]
    _used(ms.MatchingModel(), x, np.array(y))


def _grids() -> None:
    import mlestruct as ms

    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 5, 2))
    _used(ms.GridModel(), x, (x[..., 0] + rng.standard_normal(x.shape[:3]) > 0).astype(int))


def _sequences() -> None:
    import mlestruct as ms

    rng = np.random.default_rng(0)
    x = [rng.standard_normal((5, 3)) for _ in range(6)]
    _used(ms.SequenceModel(), x, [(one + rng.gumbel(size=one.shape)).argmax(1) for one in x])


def _solvers() -> None:
    """A solver of one's own: the best of eight parts."""
    import mlestruct as ms

    rng = np.random.default_rng(0)
    x, eye = [rng.standard_normal((8, 2)) for _ in range(4)], np.eye(8)
    model = ms.StructuredModel(ms.Custom(8), oracle=lambda score: eye[score.argmax()], tol=0.01)
    model.fit(x, [eye[rng.integers(8)] for _ in x])


def _used(model: Any, x: Any, y: Any) -> None:
    model.fit(x, y)
    model.predict(x)
    model.predict_marginals(x)


JOBS: dict[str, Callable[[], None]] = {
    "roommates": _roommates,
    "grids": _grids,
    "matchings": _matchings,
    "sequences": _sequences,
    "solvers": _solvers,
}
