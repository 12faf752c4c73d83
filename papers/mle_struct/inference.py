"""Marginals of perfect matchings: Frank-Wolfe against matching BP, and perturb-and-MAP.

Scores of n × n tables are standard normal times ``SPREAD``. Reported: CPU seconds until the
largest error of any marginal is, and stays, below each level, the reference being the Bethe
optimum (ρ = 1) by messages to convergence. BP's budget grows by doubled sweeps, each from cold;
Frank-Wolfe's curve comes from one run. Perturb-and-MAP is another approximation, so its distance
from Bethe does not vanish: its error and time at ``DRAWS`` samples are given.

``crossing`` asks where Frank-Wolfe would be first, as in the paper: over how peaked scores are,
against messages in logarithms as a textbook has them, with rounds and sweeps counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

import mlestruct as ms
from mlestruct.features import Dense
from mlestruct.inference.matching import Scaling
from mlestruct.inference.sampling import perturb_and_map
from papers._run import Row, Setting
from papers.mle_struct.clock import clocked, reached, rounds_of

Array = NDArray[np.float64]
SIZES, LEVELS, SEEDS, SPREAD = (20, 40, 60, 80, 100), (0.05, 0.01, 0.005, 0.001), 3, 2.0
DRAWS, ROUNDS, SWEEPS = 100, 3000, 4096
QUICK = (10, 200)  # size, rounds
SPREADS, PEAKED_ROUNDS = (1.0, 2.0, 5.0, 10.0, 20.0), 1000
COLOURS = {"frank_wolfe": "#0072B2", "bp": "#E69F00"}


def inference(setting: Setting) -> Iterator[Row]:
    """Every size: medians over seeds of the seconds to each level."""
    seeds, rounds = (1, QUICK[1]) if setting.quick else (SEEDS, ROUNDS)
    for curve in (frank_wolfe(5, 0, 30), messages(5, 0)):
        list(curve)  # kernels are compiled before any clock runs
    perturbed(5, 0, np.zeros(25))
    curves = []
    for n in QUICK[:1] if setting.quick else SIZES:
        times: dict[str, list[list[float]]] = {"frank_wolfe": [], "bp": []}
        drawn = []
        for seed in range(seeds):
            exact = Scaling(1.0).many(*problem(n, seed)).tau
            runs = {"frank_wolfe": frank_wolfe(n, seed, rounds), "bp": messages(n, seed)}
            for method, run in runs.items():
                points = errors(run, exact)
                curves.append((n, method, points))
                found = reached(points, LEVELS).values()
                times[method].append([np.inf if s is None else s for s in found])
            drawn.append(perturbed(n, seed, exact))
        for method, rows in times.items():
            middle = np.median(rows, axis=0).tolist()
            yield {
                "n": n,
                "method": method,
                **dict(zip((f"s to {level:g}" for level in LEVELS), middle, strict=True)),
            }
        error, seconds = np.median(drawn, axis=0).tolist()
        yield {
            "n": n, "method": "perturb and MAP", "draws": DRAWS, "error": error, "seconds": seconds
        }  # fmt: skip
    if setting.plot is not None:
        draw(setting, curves)


def crossing(setting: Setting) -> Iterator[Row]:
    """Every size and spread: medians over seeds of rounds, sweeps and seconds to each level."""
    sizes, spreads = (QUICK[:1], (2.0,)) if setting.quick else (SIZES, SPREADS)
    seeds, rounds = (1, QUICK[1]) if setting.quick else (SEEDS, PEAKED_ROUNDS)
    list(frank_wolfe(5, 0, 30))
    for spread in spreads:
        for n in sizes:
            found = [races(n, seed, spread, rounds) for seed in range(seeds)]
            for level, each in zip(LEVELS, np.median(found, axis=0).tolist(), strict=True):
                names = "rounds", "sweeps", "s of Frank-Wolfe", "s of messages in logarithms"
                yield {"spread": spread, "n": n, "level": level} | dict(
                    zip(names, each, strict=True)
                )


def races(n: int, seed: int, spread: float, rounds: int) -> list[list[float]]:
    """For every level: rounds, sweeps, and the seconds of both; infinite where not reached."""
    exact = Scaling(1.0).many(*problem(n, seed, spread)).tau
    both = []
    for run in (frank_wolfe(n, seed, rounds, spread), clocked(textbook(n, seed, spread))):
        points = errors(run, exact)
        counted = [(float(k), error) for k, (_, error) in enumerate(points, 1)]
        both.append([reached(curve, LEVELS).values() for curve in (counted, points)])
    (rounded, slow), (swept, quick) = both
    return [
        [np.inf if one is None else one for one in each]
        for each in zip(rounded, swept, slow, quick, strict=True)
    ]


def textbook(n: int, seed: int, spread: float) -> Iterator[Array]:
    """τ after every sweep of belief propagation in log-odds, all rows, then all columns."""
    score = problem(n, seed, spread)[1].reshape(n, n)
    from_columns = np.zeros((n, n))
    for _ in range(SWEEPS):
        from_rows = -others(score + from_columns, axis=1)
        from_columns = -others(score + from_rows, axis=0)
        yield expit(score + from_rows + from_columns).ravel()


def others(odds: Array, axis: int) -> Array:
    """log Σ exp over all other entries of the row, or of the column, from one sum for each line."""
    best = odds.argmax(axis=axis, keepdims=True)
    rest = odds.copy()
    np.put_along_axis(rest, best, -np.inf, axis=axis)
    second = logsumexp(rest, axis=axis, keepdims=True)
    whole = np.logaddexp(second, np.take_along_axis(odds, best, axis))
    found: Array = whole + np.log(-np.expm1(rest - whole))
    np.put_along_axis(found, best, second, axis=axis)
    return found


def problem(n: int, seed: int, spread: float = SPREAD) -> tuple[ms.Batch[Any], Array]:
    rng = np.random.default_rng([20, n, seed])
    return ms.Batch.of(ms.BipartiteMatching(n), count=1), spread * rng.standard_normal(n * n)


def frank_wolfe(
    n: int, seed: int, rounds: int, spread: float = SPREAD
) -> Iterator[tuple[float, Array]]:
    """(CPU seconds so far, τ) of every round: learning without features is inference."""
    _, score = problem(n, seed, spread)
    batch = ms.Batch.of(ms.BipartiteMatching(n), [np.arange(n)], bias=score)
    solver = ms.FrankWolfe(tol=1e-9, rounds=rounds)
    learner = ms.mle_struct(1.0, route="frank_wolfe", solver=solver)
    nothing = Dense(np.zeros((batch.size, 0)), batch.offsets)
    rounds = rounds_of(learner, batch, nothing)
    return ((seconds, state.tau) for seconds, state in rounds)


def messages(n: int, seed: int) -> Iterator[tuple[float, Array]]:
    """(CPU seconds, τ) at sweeps 1, 2, 4, …, each run from cold."""
    batch, score = problem(n, seed)
    for power in range(int(np.log2(SWEEPS)) + 1):
        start = time.process_time()
        tau = Scaling(1.0, sweeps=1 << power).many(batch, score).tau
        yield time.process_time() - start, tau


def errors(run: Iterable[tuple[float, Array]], exact: Array) -> list[tuple[float, float]]:
    """(seconds, largest error) along a run."""
    return [(seconds, float(np.abs(tau - exact).max())) for seconds, tau in run]


def perturbed(n: int, seed: int, exact: Array) -> tuple[float, float]:
    (batch, score), rng = problem(n, seed), np.random.default_rng([1, seed])
    start = time.process_time()
    drawn = perturb_and_map(batch.structure(0), score, DRAWS, rng)
    seconds = time.process_time() - start
    return float(np.abs(drawn.vertices.mean(axis=0) - exact).max()), seconds


def draw(setting: Setting, curves: list[tuple[int, str, list[tuple[float, float]]]]) -> None:
    """Error over time at the smallest and the largest size, every seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.0))
    sizes = sorted({n for n, _, _ in curves})
    for ax, size in zip(figure.subplots(1, 2, sharey=True), (sizes[0], sizes[-1]), strict=True):
        for style, method in (("-", "frank_wolfe"), ("--", "bp")):
            runs = [points for n, name, points in curves if (n, name) == (size, method)]
            for number, points in enumerate(runs):
                seconds, error = np.maximum(np.array(points).T, 1e-13)
                label = method if number == 0 else None
                ax.loglog(seconds, error, style, color=COLOURS[method], lw=1, label=label)
        ax.set(title=f"n = {size}", xlabel="CPU seconds")
    ax.legend(frameon=False)
    figure.axes[0].set_ylabel("largest error of a marginal")
    setting.save(figure, "mle_struct_inference")
