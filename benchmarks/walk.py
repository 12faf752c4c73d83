"""How far a reader walks: functions, files and frames of one warm fit and one prediction.

Own functions only, counted by Python's profiler in a process of its own; kernels count where
Python calls them. ``peer`` are the numbers of commit 1892acb by this script, stored below;
``python -m benchmarks.walk FOLDER`` prints those of any checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
HERE = Path(__file__).resolve().parents[1]

PROGRAM = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import mlestruct as ms
rng = np.random.default_rng(0)

def matching():
    X = rng.standard_normal((12, 5, 5, 3))
    y = [rng.permutation(5) for _ in X]
    return ms.MatchingModel(), (X, y), lambda m: m.predict_marginals(X)

def sequence():
    X = [rng.standard_normal((6, 3)) for _ in range(12)]
    y = [rng.integers(0, 2, 6) for _ in X]
    return ms.SequenceModel(), (X, y), lambda m: m.predict_marginals(X)

def solver():
    X = [rng.standard_normal((4, 3)) for _ in range(12)]
    y = [np.eye(4, dtype=int)[rng.integers(4)] for _ in X]
    best = lambda score: np.eye(4, dtype=int)[int(np.argmax(score))]
    model = ms.StructuredModel(ms.Custom(4, exactly_one=[[0, 1, 2, 3]]), oracle=best)
    return model, (X, y), lambda m: m.predict_marginals(X)

def roommates():
    people, pairs = ms.data.roommates(40, 2, seed=1)[:2]
    settings = dict(id="id", cohort="year", same=["gender"], ordinal="q*", alpha=1.0)
    return ms.RoommateModel(**settings), (people, pairs), lambda m: m.probabilities(people)

def own(frame):
    name = frame.f_code.co_filename
    return "/mlestruct" in name and "/benchmarks/" not in name

def walked(call):
    seen, files, deepest, depth = set(), set(), 0, 0
    def profile(frame, event, argument):
        nonlocal depth, deepest
        if event not in ("call", "return") or not own(frame):
            return
        depth += 1 if event == "call" else -1
        if event == "call":
            deepest = max(deepest, depth)
            seen.add(frame.f_code)
            files.add(frame.f_code.co_filename)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"functions": len(seen), "files": len(files), "deepest frame": deepest}

make = {"MatchingModel": matching, "SequenceModel": sequence, "own solver": solver,
        "RoommateModel": roommates}[sys.argv[1]]
model, examples, predict = make()
model.fit(*examples)
ours = [m for n, m in sys.modules.items() if n.split(".")[0].startswith("mlestruct")]
paths = {m.__file__ for m in ours if getattr(m, "__file__", None)}
lines = sum(len(open(p, encoding="utf-8").readlines()) for p in paths)
predict(model)
found = {"fit": walked(lambda: model.fit(*examples)), "predict": walked(lambda: predict(model))}
found["loaded by a fit"] = {"modules": len(paths), "lines": lines}
print(json.dumps(found))
"""

FRONTS = ("MatchingModel", "SequenceModel", "RoommateModel", "own solver")

BEFORE: dict[str, float] = {
    "MatchingModel, fit: functions": 270,
    "MatchingModel, fit: files": 43,
    "MatchingModel, fit: deepest frame": 28,
    "MatchingModel, predict: functions": 169,
    "MatchingModel, predict: files": 30,
    "MatchingModel, predict: deepest frame": 12,
    "MatchingModel, loaded by a fit: modules": 242,
    "MatchingModel, loaded by a fit: lines": 30_165,
    "SequenceModel, fit: functions": 315,
    "SequenceModel, fit: files": 44,
    "SequenceModel, fit: deepest frame": 25,
    "SequenceModel, predict: functions": 190,
    "SequenceModel, predict: files": 29,
    "SequenceModel, predict: deepest frame": 14,
    "SequenceModel, loaded by a fit: modules": 238,
    "SequenceModel, loaded by a fit: lines": 29_235,
    "RoommateModel, fit: functions": 412,
    "RoommateModel, fit: files": 56,
    "RoommateModel, fit: deepest frame": 30,
    "RoommateModel, predict: functions": 236,
    "RoommateModel, predict: files": 36,
    "RoommateModel, predict: deepest frame": 18,
    "RoommateModel, loaded by a fit: modules": 246,
    "RoommateModel, loaded by a fit: lines": 30_158,
    "own solver, fit: functions": 236,
    "own solver, fit: files": 38,
    "own solver, fit: deepest frame": 23,
    "own solver, predict: functions": 227,
    "own solver, predict: files": 36,
    "own solver, predict: deepest frame": 21,
    "own solver, loaded by a fit: modules": 236,
    "own solver, loaded by a fit: lines": 29_116,
    "lines, core: loops, learners, objectives, dual": 8_847,
    "lines, families": 0,
    "lines, all: mlestruct and oracles": 37_280,
}

WISHES = {
    "MatchingModel, fit: functions": 130,
    "MatchingModel, fit: files": 24,
    "MatchingModel, fit: deepest frame": 14,
    "MatchingModel, predict: functions": 60,
    "MatchingModel, predict: files": 15,
    "MatchingModel, loaded by a fit: modules": 100,
    "lines, all: mlestruct and oracles": 37_280,
    "MatchingModel, loaded by a fit: lines": 15_082,
}


def counted(folder: Path) -> dict[str, float]:
    """Every number of a checkout."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'oracles'}"}
    found: dict[str, float] = {}
    for front in FRONTS:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, front],
            cwd=folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for part, numbers in json.loads(ran.stdout.splitlines()[-1]).items():
            found |= {f"{front}, {part}: {name}": value for name, value in numbers.items()}
    return found | lines(folder)


def lines(folder: Path) -> dict[str, float]:
    """Of the core, of families, of all: every Python file, comments and blank lines too."""
    sizes = {
        path.relative_to(folder).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for part in ("mlestruct", "oracles")
        for path in (folder / part).rglob("*.py")
    }
    total = sum(size for name, size in sizes.items() if "/verify/" not in name)
    families = sum(size for name, size in sizes.items() if "/families/" in name)
    core = (
        "batch",
        "dual",
        "entropy",
        "reweighting",
        "regulariser",
        "lbfgs",
        "checkpoint",
        "method",
        "drive",
    )
    kept = [f"mlestruct/{name}.py" for name in core]
    folders = ("frank_wolfe", "train", "learners", "objectives")
    inside = [n for n in sizes if n.split("/")[1] in folders or n in kept]
    return {
        "lines, core: loops, learners, objectives, dual": sum(sizes[name] for name in inside),
        "lines, families": families,
        "lines, all: mlestruct and oracles": total,
    }


def run(quick: bool) -> Iterator[Row]:
    """A row per number, with what was wished for."""
    for name, value in counted(HERE).items():
        workload, _, quantity = name.partition(": ")
        before, wish = BEFORE.get(name), WISHES.get(name)
        yield {
            "benchmark": "walk",
            "workload": workload,
            "quantity": quantity,
            "ours": value,
            "peer": before,
            "peer_name": "1892acb",
            "ratio": value / before if before else None,
            "target": "" if wish is None else f"wish <= {wish}",
        }


if __name__ == "__main__":
    for name, value in counted(Path(*sys.argv[1:2]).resolve() if sys.argv[1:] else HERE).items():
        print(f"{value:8.0f}  {name}")
