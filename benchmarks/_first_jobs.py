"""A job of `python -m benchmarks first_use`, in a process of its own: a small fit, then 20 × it.

Run as a file, with whichever mlestruct is on the path: it asks nothing of the library but its
front door, so that an older commit runs it too. What it prints is one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Fit = Callable[[int, int], Any]  # (how many times the examples, how many times each one's parts)


def roommate(examples: int, parts: int) -> Any:
    """The README's fifteen lines; parts are pairs of people, so their number grows by its root."""
    import mlestruct as ms
    from mlestruct import data

    people, pairs, _ = data.roommates(round(200 * (examples * parts) ** 0.5))
    before = {name: column[people["year"] < 3] for name, column in people.items()}
    after = {name: column[people["year"] == 3] for name, column in people.items()}
    model = ms.RoommateModel(id="id", cohort="year", same="gender", ordinal="q*", alpha=10.0)
    model.fit(before, pairs)
    plan = model.assign(after)
    return str(model.summary()), model.explain(plan, plan.pairs[0].a), model.evaluate(after, pairs)


def _tables(count: int, n: int, d: int) -> tuple[Any, Any]:
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, n, n, d))
    score = x @ np.linspace(1.0, -1.0, d) + rng.gumbel(size=(count, n, n))
    return x, np.array([linear_sum_assignment(one, maximize=True)[1] for one in score])


def matching(examples: int, parts: int) -> Any:
    """20 tables 8 × 8 × 3."""
    import mlestruct as ms

    x, y = _tables(20 * examples, round(8 * parts**0.5), 3)
    model = ms.MatchingModel().fit(x, y)
    return model.predict(x), model.predict_marginals(x)


def grid(examples: int, parts: int) -> Any:
    """10 pictures of 10 × 10 × 2, two labels."""
    import mlestruct as ms

    rng, side = np.random.default_rng(0), round(10 * parts**0.5)
    x = rng.standard_normal((10 * examples, side, side, 2))
    y = (x[..., 0] - x[..., 1] + rng.standard_normal(x.shape[:3]) > 0).astype(int)
    model = ms.GridModel().fit(x, y)
    return model.predict(x), model.predict_marginals(x)


def solver(examples: int, parts: int) -> Any:
    """10 tables 6 × 6 × 3 as a structure nobody described, with scipy's assignment."""
    from scipy.optimize import linear_sum_assignment

    import mlestruct as ms

    n = round(6 * parts**0.5)
    x, y = _tables(10 * examples, n, 3)

    def solve(score: Any) -> Any:
        answer = np.zeros((n, n))
        answer[linear_sum_assignment(score.reshape(n, n), maximize=True)] = 1.0
        return answer.ravel()

    answers = np.eye(n)[y].reshape(len(y), -1)
    model = ms.StructuredModel(ms.Custom(n * n), oracle=solve, tol=0.01)
    return model.fit(list(x.reshape(len(x), n * n, 3)), list(answers)).coef_


def sequence(examples: int, parts: int) -> Any:
    """20 sequences of 9 × 3, three tags."""
    import mlestruct as ms

    rng = np.random.default_rng(0)
    x = [rng.standard_normal((9 * parts, 3)) for _ in range(20 * examples)]
    y = [(one + rng.gumbel(size=one.shape)).argmax(1) for one in x]
    model = ms.SequenceModel().fit(x, y)
    return model.predict(x), model.predict_marginals(x)


JOBS: dict[str, Fit] = {
    "roommate": roommate,
    "matching": matching,
    "grid": grid,
    "solver": solver,
    "sequence": sequence,
}


def cpu() -> float:
    """Processor seconds of this process since it began, and of processes it has waited for."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def main(name: str) -> None:
    """small, then large twice: the second time says what of the first was work."""
    job, clock, began = JOBS[name], [cpu()], [time.perf_counter()]
    clock[0] = 0.0  # the interpreter's start is part of the small job
    for size in ((1, 1), (5, 4), (5, 4)):
        job(*size)
        clock.append(cpu())
        began.append(time.perf_counter())
    taken = dict(zip(("small", "large", "again"), np.diff(clock).round(3).tolist(), strict=True))
    wall = dict(zip(("small", "large", "again"), np.diff(began).round(3).tolist(), strict=True))
    print(json.dumps({"cpu": taken, "wall": wall}))


if __name__ == "__main__":
    main(sys.argv[1])
