"""Bad inputs to structures, batches, scores, features, entropies and learners, one row each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import mlestruct as ms
from benchmarks._faults.refusal import Bad, bad
from mlestruct import learners
from mlestruct.inference import best
from mlestruct.inference.sampling import sample, sample_matchings
from mlestruct.readers import Attributes

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
PERFECT, FRIENDS, LINE, LATTICE = (
    ms.BipartiteMatching(3),
    ms.Matching(4),
    ms.chain(3, 2),
    ms.grid(2, 3),
)
FORK = ms.Paths([(0, 1), (0, 2), (1, 3), (2, 3)], 0, 3)
PAIRED = ms.Batch.of([PERFECT, ms.BipartiteMatching(2)], [[0, 1, 2], [1, 0]])
WORDS = ms.Batch.of([ms.chain(3, 2), ms.chain(2, 2)], [[0, 1, 0], [0, 1]])
ROWS, NODES = RNG.standard_normal((13, 2)), RNG.standard_normal((5, 2))


def at(rows: Any, place: Any, value: Any) -> Any:
    """A copy of an array with another value in one place."""
    changed = rows.copy()
    changed[place] = value
    return changed


def structures() -> Iterator[Bad]:
    """What no structure can be made of."""
    graph, match, many = ms.FactorGraph, ms.Matching, ms.BipartiteMatching
    yield bad("FactorGraph", "numbers of states are integers, got 2.5", graph, [2.5, 2], [(0, 1)])
    yield bad(
        "FactorGraph", "variables of factors are integers, got 0.2", graph, [2, 2], [(0.2, 1)]
    )
    yield bad("FactorGraph", "a factor is a list of variables", graph, [2, 2], [1])
    yield bad(
        "FactorGraph", "1e.18 coordinates; a structure has at most", graph, [10**6] * 3, [(0, 1, 2)]
    )
    yield bad("FactorGraph", "at most 2147483648", graph, [2**32] * 2, [(0, 1)])
    yield bad("FactorGraph", "variable 0 has two required", graph, [2], [], fixed=[1, 1])
    yield bad("FactorGraph", "factor 1 repeats", graph, [2, 2], [(0, 1), (1, 0)])
    yield bad("chain", "length is -1", ms.chain, -1, 2)
    yield bad("grid", "rows are integers, got 2.5", ms.grid, 2.5, 2)
    yield bad("grid", "variable 0 has 0 states", ms.grid, 2, 2, 0)
    yield bad("tree", "no cycle", ms.tree, [(0, 1), (1, 2), (2, 0)], [2, 2, 2])
    yield bad("skip_chain", "factor 3 names variable 9 of 4", ms.skip_chain, 4, 2, [(0, 9)])
    yield bad("RegionGraph", r"link \(0, 7\)", ms.RegionGraph, [2, 2], [(0, 1)], links=[(0, 7)])
    yield bad("RegionGraph", "integers, got 0.5", ms.RegionGraph, [2, 2], [(0, 0.5)])
    yield bad("Matching", "edge 0 joins node 0 to itself", match, 4, [(0, 0)])
    yield bad("Matching", r"edge \(0, 1\) is listed twice", match, 4, [(0, 1), (1, 0)])
    yield bad("Matching", r"edge 0 is \(0, 9\)", match, 4, [(0, 9)])
    yield bad("Matching", "node numbers are integers, got inf", match, 4, [(0, INF)])
    yield bad("Matching", "node numbers must be numbers", match, 4, [("a", "b")])
    yield bad(
        "Matching", "both required and forbidden", match, 4, required=[(0, 1)], forbidden=[(1, 0)]
    )
    yield bad("BipartiteMatching", "rows are integers, got 2.5", many, 2.5)
    yield bad("BipartiteMatching", "node numbers are integers", many, 2, forbidden=[(0.5, 1)])
    yield bad("BipartiteMatching", "expected pairs", many, 2, forbidden=[(0, 1, 1)])
    yield bad(
        "BMatching", "both required and", ms.BMatching, 4, forbidden=[(0, 1)], required=[(0, 1)]
    )
    yield bad("BMatching", "node 0 has capacity nan", ms.BMatching, 4, capacity=NAN)
    yield bad("Paths", "node numbers are integers, got 1.5", ms.Paths, [(0, 1.5)], 0, 1)
    yield bad("Paths", "coordinates; a structure has at most", ms.Paths, [(0, 1)], 0, 10**12)
    yield bad("Flow", "arc 0 joins node 0 to itself", ms.Flow, [(0, 0)], {})
    yield bad("Flow", "nodes with a supply are integers", ms.Flow, [(0, 1)], {0.5: 1})
    yield bad("Ising", "node numbers are integers", ms.Ising, 3, [(0, 1.5)])
    yield bad("Custom", "group 0: coordinates are integers", ms.Custom, 3, exactly_one=[[0, 1.5]])
    yield bad("Custom", "A holds NaN or infinity", ms.Custom, 2, A=[[INF, 1]])


def outcomes() -> Iterator[Bad]:
    """Observed outcomes that are none of their structure."""
    rows: list[tuple[Any, Any, str]] = [
        (PERFECT, [0, 1, 5], "row 2 has column 5 of 3"),
        (PERFECT, [0, 0, 1], r"column 0 is matched by rows \[0, 1\]"),
        (PERFECT, [0, 1, -1], "row 2 is not matched"),
        (PERFECT, [0, 1, INF], "columns are integers, got inf"),
        (PERFECT, ["a", "b", "c"], "columns must be numbers"),
        (PERFECT, None, "columns must be numbers|a column for each"),
        (FRIENDS, [(0, 1)], "node 2 is not matched"),
        (FRIENDS, [(0, 1), (0, 2)], "node 0 is in 2 pairs"),
        (FRIENDS, [1, 2, 3, 0], "node 0 has partner 1, whose partner is 2"),
        (FRIENDS, [(0, 1), (2, 2)], r"\(2, 2\) is no pair"),
        (LINE, [0, 1, 5], "variable 2 has state 5"),
        (LINE, [0, 1, 0.5], "states are integers, got 0.5"),
        (LINE, [0, 1, NAN], "states are integers, got nan"),
        (LINE, [0, 1], "an outcome has 3 states"),
        (FORK, [0], "a path runs from 0 to 3"),
        (FORK, [2, 0], "arc 0 does not start where"),
        (ms.Custom(3, exactly_one=[[0, 1]]), [1, 1, 0], "group 0 has 2 ones"),
        (ms.Custom(3, A=[[1, 1, 1]], upper=[1]), [1, 0, 1], "violates the structure's constraints"),
        (ms.BipartiteMatching(2, forbidden=[(0, 0)]), [0, 1], "which the structure fixes at 0"),
        (ms.Ising(3, [(0, 1), (1, 2)]), [0, 2, 1], "a state 0 or 1 for each"),
    ]
    for structure, outcome, says in rows:
        yield bad("Batch.of", f"example 0: .*({says})", ms.Batch.of, structure, [outcome])


def batches() -> Iterator[Bad]:
    """Examples, weights and biases."""
    one = partial(ms.Batch.of, PERFECT, [[0, 1, 2]])
    yield bad("Batch.of", "at least one example", ms.Batch.of, [])
    yield bad("Batch.of", "example 1: None is no structure", ms.Batch.of, [PERFECT, None])
    yield bad("Batch.of", "2 examples but 1 outcomes", ms.Batch.of, [PERFECT] * 2, [[0, 1, 2]])
    yield bad("Batch.of", "3 examples but 1 outcomes", one, count=3)
    for weight in (0.0, -1.0, NAN, INF):
        yield bad("Batch.of", f"example 0 has weight {weight:g}", one, weight=[weight])
    yield bad("Batch.of", "example weights must be numbers", one, weight=["much"])
    for value in (NAN, INF, -INF):
        yield bad(
            "Batch.of", f"bias of coordinate 3 is {value}", one, bias=at(np.zeros(9), 3, value)
        )


def scores() -> Iterator[Bad]:
    """Scores to infer from."""
    for structure in (PERFECT, FRIENDS, LINE, LATTICE, FORK):
        batch = ms.Batch.of(structure, count=2)
        wrong = at(np.zeros(batch.size), structure.size + 1, NAN)
        kind = type(structure).__name__
        for door in (best, ms.marginals, ms.exact):
            says = "example 1: score of coordinate 1 is nan"
            yield bad(f"{door.__name__} of {kind}", says, door, batch, wrong)
        says = "to forbid a part, let the structure fix it at 0"
        yield bad(f"marginals of {kind}", says, ms.marginals, batch, np.full(batch.size, -INF))
    yield bad("best", "scores must be numbers", best, ms.Batch.of(PERFECT), ["a"] * 9)
    yield bad("exact", "8 scores for 9 coordinates", ms.exact, PERFECT, np.zeros(8))
    yield bad("exact", "score of coordinate 0 is inf", ms.exact, LINE, np.full(LINE.size, INF))
    yield bad(
        "sample", "score of coordinate 0 is nan", sample, LINE, np.full(LINE.size, NAN), 3, RNG
    )
    yield bad("sample", "count is -1", sample, LINE, np.zeros(LINE.size), -1, RNG)
    yield bad(
        "sample_matchings", "count are integers", sample_matchings, FRIENDS, np.zeros(6), 1.5, RNG
    )


def impossible() -> Iterator[Bad]:
    """Structures without an outcome: who is to blame is named."""
    triangles = ms.Matching(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    star = ms.Matching(4, [(0, 1), (0, 2), (0, 3)])
    hall = ms.BipartiteMatching(3, forbidden=[(0, 0), (0, 1), (1, 0), (1, 1)])
    rows: list[tuple[Any, str]] = [
        (ms.Matching(5), "5 nodes cannot all be paired"),
        (ms.Matching(4, [(0, 1), (1, 2)]), r"nodes \[0, 1, 2\]|node 3"),
        (triangles, r"nodes \[0, 1, 2\] have allowed edges only among themselves"),
        (star, r"without node\(s\) \[0\] the odd groups \[1\]; \[2\]; \[3\]"),
        (hall, r"rows \[0, 1\] have only columns \[2\] between them"),
        (ms.chain(2, 2).forbid([(0, 0), (0, 1)]), "variable 0 has no possible state left"),
        (ms.Paths([(0, 1), (2, 3)], 0, 3), "no allowed path leads from node 0 to node 3"),
        (ms.BMatching(3, capacity=1, exact=True), r"nodes \[0, 1, 2\]"),
        (ms.Flow([(0, 1)], {0: 2, 1: -2}), "node 0 must send 2 to 2"),
    ]
    for structure, says in rows:
        batch = ms.Batch.of(structure)
        for door in (best, ms.marginals):
            yield bad(f"{door.__name__}, impossible", says, door, batch, np.zeros(batch.size))


def features() -> Iterator[Bad]:
    """Features that do not fit their examples."""
    csr, split = sp.csr_array, [NODES[:3], NODES[3:]]
    for value in (NAN, INF, -INF):
        says = f"example 1: feature 1 of coordinate 1 is {value}"
        yield bad("Dense", says, ms.Dense.of, PAIRED, at(ROWS, (10, 1), value))
        yield bad("Sparse", says, ms.Sparse.of, PAIRED, csr(at(ROWS, (10, 1), value)))
    yield bad("Dense", "example 0: 8 feature rows for 9", ms.Dense.of, PAIRED, [ROWS[:8], ROWS[8:]])
    yield bad("Dense", "must be numbers: dtype complex128", ms.Dense.of, PAIRED, ROWS + 1j)
    yield bad("Dense", "there are no features", ms.Dense.of, PAIRED, ROWS[:, :0])
    yield bad(
        "Sparse", "example 0: 8 feature rows", ms.Sparse.of, PAIRED, [csr(ROWS[:8]), csr(ROWS[8:])]
    )
    yield bad("Sparse", "dtype complex128", ms.Sparse.of, PAIRED, csr(ROWS + 1j))
    yield bad(
        "Tied", "example 0: 2 feature rows for 3 nodes", ms.Tied.of, WORDS, [NODES[:2], NODES[2:]]
    )
    yield bad(
        "Tied", "example 1: feature 0 of node 1 is nan", ms.Tied.of, WORDS, at(NODES, (4, 0), NAN)
    )
    yield bad("Tied", "example 1 has 1 features", ms.Tied.of, WORDS, [split[0], split[1][:, :1]])
    yield bad("Tied", "node features must be numbers", ms.Tied.of, WORDS, NODES.astype(str))
    yield bad("Tied", "needs labelled graphs, not BipartiteMatching", ms.Tied.of, PAIRED, ROWS)
    asked = [ms.Question.ordinal("noise", ["low", "high"])]
    people = ms.Batch.of(FRIENDS)
    yield bad(
        "Pairs",
        "person 1 answers 'noise' with level 2",
        ms.Pairs.of,
        people,
        [[[0], [2], [0], [1]]],
        asked,
    )
    yield bad(
        "Question",
        r"levels are \['a', 'a'\], and must differ",
        ms.Question.ordinal,
        "noise",
        ["a", "a"],
    )
    yield bad(
        "Attributes", "example 0, position 1: 3 is no name", Attributes.of, [[{"a": 1.0}, {3: 1.0}]]
    )
    yield bad("Attributes", "position 0: 'a' is nan", Attributes({"a": 0}).rows, [{"a": NAN}])


def settings() -> Iterator[Bad]:
    """Regularisers, entropies, solvers and learners."""
    of = ms.Regulariser.of
    for lam in (0.0, -1.0):
        yield bad("Regulariser", f"lam.0. is {lam}; it must be positive", of, 2, lam)
    yield bad("Regulariser", "lam holds NaN", of, 2, NAN)
    yield bad(
        "Regulariser", r"lower\[0\] is 1.0; it must be at most upper", of, 2, lower=1, upper=0
    )
    yield bad("Regulariser", "cannot fix weight 5 of 2", of, 2, fixed={5: 0.0})
    free = ms.Batch.of(ms.grid(3, 3))
    for rho in (NAN, INF, [1.0, 2.0], "magic"):
        yield bad("Entropy", "rho=|no reweighting named 'magic'", ms.Entropy.of, free, rho)
    yield bad("Entropy", "not provably concave", ms.Entropy.of, free, 1.0)
    yield bad("Entropy", "temperature is -1", ms.Entropy.of, free, temperature=-1)
    for name, value in (
        ("tol", NAN),
        ("rounds", -1),
        ("workers", 0),
        ("shards", 0),
        ("seconds", NAN),
    ):
        yield bad("FrankWolfe", f"{name} is {value}", ms.FrankWolfe, **{name: value})
    tied = ms.Tied.of(WORDS, NODES)
    for name, make in learners.LEARNERS.items():
        blind = ms.Batch.of([LINE, ms.chain(2, 2)])
        yield bad(
            name, "learns from outcomes, and this batch has none", _fit, make(), blind, tied, 1.0
        )
        yield bad(name, "lam.0. is -1.0; it must be positive", _fit, make(), WORDS, tied, -1.0)
        short = ms.Dense.of(PAIRED, ROWS)
        yield bad(name, "features have 13 rows for 22 coordinates", _fit, make(), WORDS, short, 1.0)
        if name != "perceptron":  # which has none
            yield bad(name, "lam.0. is 0.0; it must be positive", _fit, make(), WORDS, tied, 0.0)
    misfit = "the oracle 'qpbo' is for FactorGraph, not BipartiteMatching"
    yield bad("best", misfit, best, PAIRED, np.zeros(13), "qpbo")


def _fit(learner: Any, batch: Any, features: Any, lam: float) -> Any:
    return next(iter(learner.path(batch, features, [lam])))
