"""How far a reader walks: functions, files and frames of one warm fit and one prediction.

Named functions of our own, counted by Python's profiler in a process of its own; comprehensions,
lambdas and kernels do not count. ``python -m benchmarks.walk FOLDER`` prints those of any checkout.
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

def solver():
    X = [rng.standard_normal((4, 3)) for _ in range(10)]
    y = [np.eye(4, dtype=int)[rng.integers(4)] for _ in X]
    best = lambda score: np.eye(4, dtype=int)[int(np.argmax(score))]
    model = ms.StructuredModel(ms.Custom(4, exactly_one=[[0, 1, 2, 3]]), oracle=best)
    return model, (X, y), lambda m: m.predict_marginals(X)

def sequence():
    X = [rng.standard_normal((6, 3)) for _ in range(12)]
    y = [rng.integers(0, 2, 6) for _ in X]
    return ms.SequenceModel(), (X, y), lambda m: m.predict_marginals(X)

def dicts():
    X = [[{"word": "ab"[k], "size": float(k)} for k in rng.integers(0, 2, 6)] for _ in range(12)]
    y = [rng.integers(0, 2, 6) for _ in X]
    return ms.SequenceModel(), (X, y), lambda m: m.predict_marginals(X)

def grid():
    X = rng.standard_normal((4, 5, 5, 2))
    y = rng.integers(0, 2, (4, 5, 5))
    return ms.GridModel(), (X, y), lambda m: m.predict_marginals(X)

def roommates():
    people, pairs = ms.data.roommates(40, 2, seed=1)[:2]
    settings = dict(id="id", cohort="year", same=["gender"], ordinal="q*", alpha=1.0)
    return ms.RoommateModel(**settings), (people, pairs), lambda m: m.probabilities(people)

def own(code):
    file = code.co_filename
    ours = "/mlestruct" in file and "/benchmarks/" not in file and "/native/" not in file
    return ours and not code.co_name.startswith("<")

def walked(call):
    seen, calls, deepest, depth = set(), 0, 0, 0
    def profile(frame, event, argument):
        nonlocal calls, depth, deepest
        if event not in ("call", "return") or not own(frame.f_code):
            return
        depth += 1 if event == "call" else -1
        if event == "call":
            calls, deepest = calls + 1, max(deepest, depth)
            seen.add(frame.f_code)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    if len(sys.argv) > 2:
        names = (f"{code.co_filename.split('/mlestruct')[-1]}: {code.co_qualname}" for code in seen)
        print(*sorted(names), "", sep="\\n")
    files = {code.co_filename for code in seen}
    return {"functions": len(seen), "files": len(files), "frames": deepest, "calls": calls}

make = {"MatchingModel": matching, "own solver": solver, "SequenceModel": sequence,
        "SequenceModel, dicts": dicts, "GridModel": grid, "RoommateModel": roommates}[sys.argv[1]]
model, examples, predict = make()
model.fit(*examples)
predict(model)
found = {"fit": walked(lambda: model.fit(*examples)), "predict": walked(lambda: predict(model))}
print(json.dumps(found))
"""

MOST = {  # the conditions: functions, files, frames
    "MatchingModel": {"fit": (130, 26, 14), "predict": (62, 17, 9)},
    "own solver": {"fit": (150, 30, 14), "predict": ()},
    "SequenceModel": {"fit": (160, 32, 14), "predict": ()},
    "SequenceModel, dicts": {"fit": (195, 34, 14)},
    "GridModel": {"fit": (220, 34, 14)},
    "RoommateModel": {"fit": (240, 38, 17)},
}
MOST_CALLS = {"own solver, predict: calls": 1200}


def counted(folder: Path) -> Iterator[tuple[str, str, int, int | None]]:
    """Yield call, quantity, count and condition of a checkout."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'oracles'}"}
    for front, parts in MOST.items():
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, front],
            cwd=folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = json.loads(ran.stdout.splitlines()[-1])
        for part, most in parts.items():
            for number, (quantity, value) in enumerate(found[part].items()):
                known = MOST_CALLS.get(f"{front}, {part}: {quantity}")
                yield f"{front}, {part}", quantity, value, (*most, *[known] * 4)[number]


def run(quick: bool) -> Iterator[Row]:
    """A row per number, with its condition."""
    for call, quantity, value, most in counted(HERE):
        yield {
            "benchmark": "walk",
            "workload": call,
            "quantity": quantity,
            "ours": value,
            "target": "" if most is None else f"<= {most}",
            "met": None if most is None else value <= most,
        }


if __name__ == "__main__":
    for call, quantity, value, most in counted(Path(sys.argv[1] if sys.argv[1:] else HERE)):
        print(f"{value:8d} {'' if most is None else f'of {most}':8s} {call}: {quantity}")
