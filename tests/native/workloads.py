"""What native entries return at given scores, as digests of bits; or at many sizes, as a test.

    python -m tests.native.workloads            print a digest per workload
    python -m tests.native.workloads LEVEL      store them as those of a level: v3 or baseline
    python -m tests.native.workloads SECONDS    run all at random sizes for so long

Scores are NumPy's uniform numbers, which no mathematical library makes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.inference.exact import exact
from mlestruct.inference.routine import routine
from mlestruct.oracle import load
from mlestruct.structures import BipartiteMatching, FactorGraph, Matching, Paths
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.odd_sets import violated_sets

STORED = Path(__file__).with_name("bits.json")
Rng = np.random.Generator


def scores(rng: Rng, size: int, scale: float = 1.0) -> Array:
    return scale * (2.0 * rng.random(size) - 1.0)


def grid(n: int, states: int) -> FactorGraph:
    cells = np.arange(n * (n + 1)).reshape(n, n + 1)
    pairs = [*zip(cells[:, :-1].flat, cells[:, 1:].flat, strict=True)]
    pairs += zip(cells[:-1].flat, cells[1:].flat, strict=True)
    return FactorGraph([states] * cells.size, pairs)


def chain(n: int, states: int) -> FactorGraph:
    return FactorGraph([states] * n, [(t, t + 1) for t in range(n - 1)])


def ternary(n: int) -> FactorGraph:
    return FactorGraph(
        [2 + v % 3 for v in range(2 * n + 1)], [(2 * t, 2 * t + 1, 2 * t + 2) for t in range(n)]
    )


def ladder(n: int) -> Paths:
    arcs = [(u, v) for u in range(n) for v in range(u + 1, min(u + 4, n + 1))]
    return Paths(arcs, 0, n)


def sparse(n: int) -> Matching:
    return Matching(2 * n, [(u, v) for u in range(2 * n) for v in (u + 1, u + 3) if v < 2 * n])


STRUCTURES = {
    "bipartite": lambda n: BipartiteMatching(n),
    "one-sided": lambda n: BipartiteMatching(n, n + 2, "one_sided"),
    "partial": lambda n: BipartiteMatching(n, n + 1, "partial"),
    "complete": lambda n: Matching(2 * n),
    "complete, partial": lambda n: Matching(n + 1, kind="partial"),
    "sparse": sparse,
    "grid of 2": lambda n: grid(n, 2),
    "grid of 3": lambda n: grid(n, 3),
    "grid of 9": lambda n: grid(min(n, 6), 9),
    "chain": lambda n: chain(n, 4),
    "wide chain": lambda n: chain(n, 17),
    "ternary": lambda n: ternary(n),
    "paths": ladder,
}
EXACT = 9  # nodes or so, up to which all answers are summed
RHOS = (0.25, 0.5, 0.75, 1.0)
SOLVERS = {
    "assignment": ("bipartite", "one-sided", "partial"),
    "blossom": ("complete", "complete, partial", "sparse"),
    "qpbo": ("grid of 2",),
    "trw_s": ("grid of 2", "grid of 3", "grid of 9"),
    "viterbi": ("chain", "wide chain", "ternary"),
    "shortest_path": ("paths",),
}


def inferred(structure: FactorGraph | Matching, rng: Rng, scale: float) -> Iterator[Array]:
    batch = Batch.of(structure, count=2)
    given = scores(rng, batch.size, scale)
    for rho in RHOS if isinstance(structure, (Matching, BipartiteMatching)) else (None,):
        served = routine(Entropy.of(batch, rho))
        if served is not None:
            yield served.rough().many(batch, given).tau  # kernels alone: no BLAS, no SuperLU


def solved(structure: FactorGraph | Matching, name: str, rng: Rng, scale: float) -> Iterator[Array]:
    batch, oracle = Batch.of(structure, count=2), load(name)
    for _ in range(2):  # the second from where the first ended
        yield oracle.many(batch, scores(rng, batch.size, scale))[0]


def summed(structure: FactorGraph | Matching, rng: Rng) -> Iterator[Array]:
    batch = Batch.of(structure, count=2)
    yield exact(batch, scores(rng, batch.size, 3.0)).tau


def broken(structure: Matching, rng: Rng) -> Iterator[Array]:
    tau = rng.random(structure.size)
    degrees = structure.graph.degrees(tau[None])[0]
    yield violated_sets(structure, tau / degrees.max())


def workloads(n: int) -> dict[str, Callable[[Rng], Iterator[Array]]]:
    """Every workload at a size, by name."""
    made = {name: make(n) for name, make in STRUCTURES.items()}
    found: dict[str, Callable[[Rng], Iterator[Array]]] = {}
    for name, s in made.items():
        for scale in (1.0, 8.0):
            found[f"marginals: {name}, {scale}"] = lambda r, s=s, c=scale: inferred(s, r, c)
        if n <= EXACT and s.n_nodes <= 2 * n + 1:
            found[f"exact: {name}"] = lambda r, s=s: summed(s, r)
    found["odd sets"] = lambda r: broken(made["complete, partial"], r)
    for oracle, names in SOLVERS.items():
        for name in names:
            found[f"{oracle}: {name}"] = lambda r, s=made[name], o=oracle: solved(s, o, r, 3.0)
    return found


def digests() -> dict[str, str]:
    """The bits of every workload at three sizes."""
    found = {}
    for n in (2, 7, 9):
        for name, run in workloads(n).items():
            digest = hashlib.sha256()
            for array in run(np.random.default_rng(n)):
                digest.update(np.ascontiguousarray(array).tobytes())
            found[f"{name}, {n}"] = digest.hexdigest()[:16]
    return found


def fuzz(seconds: float) -> None:
    """Run everything at random sizes and scales."""
    rng, end = np.random.default_rng(), time.monotonic() + seconds
    while time.monotonic() < end:
        n, seed = int(rng.integers(1, 20)), int(rng.integers(2**32))
        for name, run in workloads(n).items():
            if time.monotonic() > end:
                return
            sys.stdout.write(f"{n} {seed} {name}\n")
            sys.stdout.flush()
            try:
                for array in run(np.random.default_rng(seed)):
                    assert np.isfinite(array).all()
            except Infeasible:
                pass


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked in ("v3", "baseline"):
        known = json.loads(STORED.read_text()) if STORED.exists() else {}
        known[asked] = digests()
        STORED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    elif asked:
        fuzz(float(asked))
    else:
        sys.stdout.write(json.dumps(digests()))
