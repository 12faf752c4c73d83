"""Constrained approximate maximum entropy learning (2008): do consistency and concavity pay?

``vision`` labels generated superpixel graphs: 30 to 50 superpixels at random places, an edge for
every side of their Delaunay triangulation and a tenth as many chords, 7 classes, weak features on
the nodes (8: one hint a class, and 1), one weight per pair of different classes on the edges:
56 + 21 weights, as in the paper. Labels are a Gibbs sample of the model itself, 500 sweeps long.
All of this was fixed before the first run. ``coupling`` scales the edge weights. For want of
machine time there are 18 images (the paper: 80), every convex problem is solved to a relative gap
of 1e-3, and CAMEL stops after 10 rounds; this too was decided before the first full run.

``ner`` finds names in tweets (``wnut17``) with skip-chains: equal capitalised words are linked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from mlestruct import Batch, Sparse
from mlestruct.entropy import Entropy
from mlestruct.features import Features
from mlestruct.frank_wolfe import FrankWolfe
from mlestruct.inference.sampling import gibbs
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import LEARNERS
from mlestruct.learners.camel import Camel
from mlestruct.structures import FactorGraph
from papers._run import Row, Setting, main

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

CLASSES, SIGNAL, CHORDS, SWEEPS = 7, 0.7, 0.1, 500
IMAGES, SMALLEST, LARGEST, FOLDS = 18, 30, 50, 3
COUPLINGS, SEEDS = (0.25, 0.5, 1.0), 5
LAM = 0.01  # the paper has none; this much keeps every optimum finite
PAIRS = list(combinations(range(CLASSES), 2))

SOLVER = FrankWolfe(tol=1e-3)
CCCP: dict[str, Any] = {"rounds": 10, "tol": 1e-2}

LEARN: dict[str, tuple[str, dict[str, Any]]] = {
    "piecewise": ("piecewise", {}),
    "CAMEL(0)": ("camel0", {}),
    "CAMEL": ("camel", CCCP),
    "CAMEL, empirical start": ("camel", CCCP | {"start": "empirical"}),
    "CCCP without consistency": ("camel", CCCP | {"consistent": False}),
    "LBP": ("lbp", {}),
}


@dataclass(frozen=True)
class Learnt:
    """Weights and their cost; ``settled`` is the first round within 1 % of CCCP's whole gain."""

    theta: Array
    rounds: int
    settled: int
    seconds: float


@dataclass(frozen=True)
class Images:
    """Labelled graphs, one sparse feature matrix each."""

    graphs: list[FactorGraph]
    features: list[Any]
    labels: list[Ints]

    def some(self, members: Ints) -> Images:
        def pick(items: list[Any]) -> list[Any]:
            return [items[m] for m in members]

        return Images(pick(self.graphs), pick(self.features), pick(self.labels))

    def problem(self) -> tuple[Batch[Any], Sparse]:
        batch = Batch.of(self.graphs, self.labels)
        return batch, Sparse.of(batch, self.features)


def superpixels(rng: np.random.Generator) -> FactorGraph:
    """Neighbours in a triangulation, and some chords."""
    points = rng.random((rng.integers(SMALLEST, LARGEST + 1), 2))
    edges = {
        (int(min(a, b)), int(max(a, b)))
        for triangle in Delaunay(points).simplices
        for a, b in combinations(triangle, 2)
    }
    wanted = int(len(edges) * (1 + CHORDS))
    while len(edges) < wanted:
        a, b = rng.choice(len(points), 2, replace=False)
        edges.add((int(min(a, b)), int(max(a, b))))
    return FactorGraph([CLASSES] * len(points), sorted(edges))


def design(graph: FactorGraph, hints: Array) -> Any:
    """Coordinates × (8·7 + 21): every hint for every class, every pair of different classes."""
    nodes = sp.kron(hints, sp.eye(CLASSES))
    table = np.zeros((CLASSES, CLASSES, len(PAIRS)))
    for k, (a, b) in enumerate(PAIRS):
        table[a, b, k] = table[b, a, k] = 1.0
    edges = sp.kron(np.ones((graph.n_factors, 1)), table.reshape(-1, len(PAIRS)))
    return sp.block_diag([nodes, edges], format="csr")


def generate(coupling: float, seed: int, count: int) -> Images:
    """Labels from the edges alone, then hints: the label by ``SIGNAL``, under unit noise."""
    rng = np.random.default_rng([2008, seed])
    weights = coupling * rng.normal(-1.0, 1.0, len(PAIRS))
    graphs = [superpixels(rng) for _ in range(count)]
    features, labels = [], []
    for graph in graphs:
        theta = np.concatenate([np.zeros(8 * CLASSES), weights])
        blank = design(graph, np.zeros((graph.n_nodes, 8)))
        drawn = gibbs(graph, blank @ theta, 1, rng, burn=SWEEPS).outcomes()[0]
        hints = SIGNAL * np.eye(CLASSES)[drawn] + rng.standard_normal((graph.n_nodes, CLASSES))
        features.append(design(graph, np.column_stack([hints, np.ones(graph.n_nodes)])))
        labels.append(np.asarray(drawn))
    return Images(graphs, features, labels)


def accuracy(theta: Array, images: Images) -> float:
    """% of superpixels whose largest loopy belief is right; every learner is judged so."""
    batch, features = images.problem()
    messages = SumProduct.of(Entropy.of(batch, 1.0, allow_nonconvex=True), takeover=False)
    tau = messages.many(batch, features.potentials(theta)).tau
    right = total = 0
    for m, (graph, labels) in enumerate(zip(images.graphs, images.labels, strict=True)):
        nodes = tau[batch.coordinates(m)][: graph.node_start[-1]].reshape(-1, CLASSES)
        right += int((nodes.argmax(axis=1) == labels).sum())
        total += len(labels)
    return 100 * right / total


def learn(name: str, batch: Batch[Any], features: Features, lam: float) -> Learnt:
    """By name; CPU seconds are those of all threads."""
    kind, options = LEARN[name]
    clock = time.process_time()
    learner: Any = LEARNERS[kind](regulariser=lam, solver=SOLVER, **options)
    if not isinstance(learner, Camel):
        theta = learner.fit(batch, features).theta
        return Learnt(theta, 1, 1, time.process_time() - clock)
    rounds = list(learner.each(batch, features))
    reached = np.array([one.objective for one in rounds])
    near = reached >= reached[-1] - 0.01 * (reached[-1] - reached[0])
    settled = int(near.argmax()) + 1
    return Learnt(rounds[-1].theta, len(rounds), settled, time.process_time() - clock)


def vision(setting: Setting) -> Iterator[Row]:
    """Accuracy on held-out images: mean and standard error over seeds × folds, and paired."""
    count, seeds = (3, 1) if setting.quick else (IMAGES, SEEDS)
    for coupling in COUPLINGS[-1:] if setting.quick else COUPLINGS:
        right: dict[str, list[float]] = {name: [] for name in LEARN}
        found: dict[str, list[Learnt]] = {name: [] for name in LEARN}
        for seed in range(seeds):
            images = generate(coupling, seed, count)
            fold = np.arange(count) % FOLDS
            for f in range(FOLDS):
                train, test = (images.some(np.flatnonzero(part)) for part in (fold != f, fold == f))
                for name in LEARN:
                    learnt = learn(name, *train.problem(), LAM)
                    found[name].append(learnt)
                    right[name].append(accuracy(learnt.theta, test))
        for name, runs in found.items():
            percent, gain = np.array(right[name]), np.subtract(right[name], right["piecewise"])
            yield {
                "coupling": coupling,
                "learner": name,
                "accuracy": float(percent.mean()),
                "se": _error(percent),
                "above piecewise": float(gain.mean()),
                "its se": _error(gain),
                "rounds": float(np.median([run.rounds for run in runs])),
                "to 99 % of the gain": float(np.median([run.settled for run in runs])),
                "CPU s": float(np.mean([run.seconds for run in runs])),
            }


def _error(sample: Array) -> float:
    return float(sample.std(ddof=1) / np.sqrt(len(sample)))


EXPERIMENTS = {"vision": vision}

if __name__ == "__main__":
    sys.exit(main("camel", EXPERIMENTS))
