"""Decisions: regret of weights learned from decisions alone, beside PyEPO's Fenchel-Young loss.

PyEPO's own generators: shortest paths on a 5 × 5 grid, and knapsacks of 16 items with two weights
each, of capacity 20; 5 context features, noise .5, 100 decisions to learn from, 1,000 to judge by,
seeds 0 to 9. All learn a linear predictor of every part's score from the context and see
decisions, never costs; what is tuned holds a quarter of the 100 out, then learns from all. Ours are
``StructuredModel`` on the solver alone: the default learner, its alpha of eight by held-out
likelihood, which is held to the target; beside it the averaged perceptron as it is, which has no
alpha. PyEPO's is its perturbed loss at its defaults (10 samples, sigma 1) with Adam in batches of
32, its rate (.001, .01, .1) and epochs (up to 50) by its own held-out loss. All ask one solver,
which looks the best up in a list. Regret is PyEPO's normalised one, by the true costs; a cell is
met up to one standard error of the difference on equal seeds. CPU seconds with tuning.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms

Row = dict[str, Any]
Array = NDArray[np.float64]
PEER = "PyEPO, perturbed FY"
LEARNED, JUDGED, SEEDS, HELD = 100, 1000, 10, 0.25
LEARNERS = {"mle_struct": tuple(10.0 ** np.arange(-1.5, 2.1, 0.5)), "perceptron": (1.0,)}
HELD_TO = "mle_struct"
QUANTITIES = {"regret": "regret", "calls": "solver calls", "seconds": "CPU s"}
RATES, EPOCHS, CHUNK = (1e-3, 1e-2, 1e-1), 50, 32
SIDE, ITEMS, CAPACITY, FEATURES, NOISE = 5, 16, 20.0, 5, 0.5


class Problem(NamedTuple):
    """All decisions there are, contexts, and what each part is worth: scores, to be maximised."""

    every: Array
    context: Array
    worth: Array
    sign: int  # of PyEPO's objective: −1 where it minimises costs

    def best(self, scores: Array) -> Array:
        """The best decision under each row of scores."""
        return np.asarray(self.every[(scores @ self.every.T).argmax(axis=1)])

    def regret(self, scores: Array) -> float:
        """Of deciding by these scores in the examples to judge by, as a share of the best."""
        worth = self.worth[LEARNED:]
        best, reached = ((worth * self.best(s)).sum(axis=1) for s in (worth, scores))
        return float((best - reached).sum() / np.abs(best).sum())


class Found(NamedTuple):
    """What a learner reached, and what it took."""

    regret: float
    calls: int
    seconds: float


def run(quick: bool) -> Iterator[Row]:
    """Three rows a cell: regret, calls of the solver, CPU seconds."""
    for name, make in (("shortest path", paths), ("knapsack", knapsacks)):
        for degree in (1, 6) if quick else (1, 4, 6):
            problems = [make(degree, seed) for seed in range(2 if quick else SEEDS)]
            yield from cell(f"{name}, degree {degree}", problems)


def cell(workload: str, problems: list[Problem]) -> Iterator[Row]:
    """Means over the seeds."""
    theirs = [perturbed(p, seed) for seed, p in enumerate(problems)]
    for learner, alphas in LEARNERS.items():
        ours = [structured(p, seed, learner, alphas) for seed, p in enumerate(problems)]
        for field, name in QUANTITIES.items():
            a, b = (np.array([getattr(one, field) for one in some]) for some in (ours, theirs))
            found: Row = {"benchmark": "decisions", "workload": f"{workload}, {learner}"}
            found |= {"quantity": name, "ours": a.mean(), "peer": b.mean(), "peer_name": PEER}
            found["ratio"] = a.mean() / b.mean()
            if field == "regret":
                error = (a - b).std(ddof=1) / np.sqrt(len(a))
                found["target"] = f"≤ peer + {error:.2g}"
                below = bool(a.mean() <= b.mean() + error)
                found["met"] = below if learner == HELD_TO else None
            yield found


def paths(degree: int, seed: int) -> Problem:
    """Monotone routes through a grid; arcs in PyEPO's order."""
    from pyepo.data import shortestpath

    sizes = (LEARNED + JUDGED, FEATURES, (SIDE, SIDE))
    x, cost = shortestpath.genData(*sizes, deg=degree, noise_width=NOISE, seed=seed)
    return Problem(routes(SIDE), x, -cost.astype(float), -1)


def routes(side: int) -> Array:
    """(routes × arcs): each row's arcs to the right, then those down from it."""
    arcs: dict[tuple[int, int], int] = {}
    for i in range(side):
        row = side * i + np.arange(side)
        steps = [(a, a + 1) for a in row[:-1].tolist()]
        steps += [(a, a + side) for a in row.tolist() if i + 1 < side]
        for step in steps:
            arcs[step] = len(arcs)
    turns = list(combinations(range(2 * side - 2), side - 1))
    found = np.zeros((len(turns), len(arcs)))
    for route, down in zip(found, turns, strict=True):
        place = 0
        for k in range(2 * side - 2):
            place, before = place + (side if k in down else 1), place
            route[arcs[before, place]] = 1.0
    return found


def knapsacks(degree: int, seed: int) -> Problem:
    """Items with two weights, both within the capacity."""
    from pyepo.data import knapsack

    sizes = (LEARNED + JUDGED, FEATURES, ITEMS)
    weights, x, value = knapsack.genData(*sizes, dim=2, deg=degree, noise_width=NOISE, seed=seed)
    return Problem(packings(weights, CAPACITY), x, value.astype(float), 1)


def packings(weights: Array, capacity: float) -> Array:
    """(sets × items): every set within the capacity; each item added to all that have room."""
    found = np.zeros((1, weights.shape[1]))
    for item in range(weights.shape[1]):
        room = (found @ weights.T + weights[:, item] <= capacity).all(axis=1)
        more = found[room].copy()
        more[:, item] = 1.0
        found = np.concatenate([found, more])
    return found


def structured(problem: Problem, seed: int, learner: str, alphas: Sequence[float]) -> Found:
    """``StructuredModel``, by the solver alone."""
    solve, asked = counted(problem.every)
    context = np.column_stack([problem.context, np.ones(len(problem.context))])
    parts = problem.every.shape[1]
    seen = list(problem.best(problem.worth[:LEARNED]))
    begun = time.process_time()
    X = [ms.features.crossed(row, parts) for row in context]
    model = ms.StructuredModel(
        oracle=solve, learner=learner, alpha=alphas, held_out=HELD, random_state=seed, tol=1e-2
    )
    with warnings.catch_warnings():  # a perceptron proves nothing, and says so
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        model.fit(X[:LEARNED], seen)
    seconds = time.process_time() - begun
    return Found(problem.regret(np.array(model.potentials(X[LEARNED:]))), asked[0], seconds)


def counted(every: Array) -> tuple[Callable[[Array], Array], list[int]]:
    """A solver, and how often it was asked."""
    asked = [0]

    def solve(scores: Array) -> Array:
        asked[0] += 1
        return np.asarray(every[(every @ scores).argmax()])

    return solve, asked


def perturbed(problem: Problem, seed: int) -> Found:
    """PyEPO's loss, its rate and its epochs by what was held out."""
    import torch

    torch.set_num_threads(1)
    model, asked = opt_model(problem)
    x = torch.tensor(problem.context, dtype=torch.float32)
    w = torch.tensor(problem.best(problem.worth[:LEARNED]), dtype=torch.float32)
    begun = time.process_time()
    order = np.random.default_rng(seed).permutation(LEARNED)
    held, kept = np.split(order, [round(HELD * LEARNED)])
    tried = [
        (loss, rate, epochs)
        for rate in RATES
        for epochs, loss in enumerate(trained(model, x, w, kept, rate, EPOCHS, seed, held)[1], 1)
    ]
    _, rate, epochs = min(tried)
    net, _ = trained(model, x, w, np.arange(LEARNED), rate, epochs, seed)
    seconds = time.process_time() - begun
    with torch.no_grad():
        scores = problem.sign * net(x[LEARNED:]).numpy().astype(float)
    return Found(problem.regret(scores), asked[0], seconds)


def opt_model(problem: Problem) -> tuple[Any, list[int]]:
    """The same solver as PyEPO asks it."""
    from pyepo import EPO
    from pyepo.model.opt import optModel

    solve, asked = counted(problem.every)

    class Listed(optModel):  # type: ignore[misc]
        modelSense = EPO.MINIMIZE if problem.sign < 0 else EPO.MAXIMIZE

        def _getModel(self) -> tuple[None, list[int]]:
            return None, list(range(problem.every.shape[1]))

        def setObj(self, c: Any) -> None:
            self.cost = np.asarray(c, dtype=float)

        def solve(self) -> tuple[Array, float]:
            found = solve(problem.sign * self.cost)
            return found, float(self.cost @ found)

    return Listed(), asked


def trained(
    model: Any,
    x: Any,
    w: Any,
    kept: NDArray[np.int64],
    rate: float,
    epochs: int,
    seed: int,
    held: NDArray[np.int64] | None = None,
) -> tuple[Any, list[float]]:
    """A linear predictor after some epochs, and what it loses on ``held`` after each."""
    import torch
    from pyepo.func import perturbedFenchelYoung

    torch.manual_seed(seed)
    net, shuffle = torch.nn.Linear(x.shape[1], w.shape[1]), torch.Generator().manual_seed(seed)
    steps, loss = torch.optim.Adam(net.parameters(), lr=rate), perturbedFenchelYoung(model)
    lost = []
    for _ in range(epochs):
        chosen = torch.tensor(kept)[torch.randperm(len(kept), generator=shuffle)]
        for part in chosen.split(CHUNK):
            steps.zero_grad()
            loss(net(x[part]), w[part]).backward()
            steps.step()
        if held is not None:
            with torch.no_grad():  # the same draws after every epoch
                lost.append(float(perturbedFenchelYoung(model)(net(x[held]), w[held])))
    return net, lost
