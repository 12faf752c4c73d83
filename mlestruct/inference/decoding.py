"""Best outcomes as outcomes: where an oracle answers with fractions, whole ones with their bounds.

A relaxation's best point may be worth more than any outcome, and rounding it may be worth much
less. Fractions are therefore decoded again: by the structure's own exact solver, by maxima summed
out variable by variable where the graph is narrow, by CP-SAT within a budget that is counted and
not timed, so that two runs agree; and what is not proven best says how far it may be from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import Infeasible
from mlestruct.oracle import HULL, Validated, attained, load, resolve
from mlestruct.oracle.registry import AnyOracle
from mlestruct.structures import FactorGraph
from mlestruct.structures.base import Array, Ints, Structure, refuse_made
from mlestruct.structures.batch import Batch, as_finite_scores

MOST = 1e-3  # and never more than that, however large scores are
DOUBT = 1e-6  # relative: what is left between a score and its bound by solvers' own tolerances
NARROW = 0.25  # GiB of tables up to which graphs are decoded exactly by their width
EACH, SHARED = 2.0, 10  # CP-SAT's deterministic seconds an example; from so many on it is shared
LARGEST = 20_000  # coordinates that CP-SAT is asked about


@dataclass(frozen=True)
class Decoded:
    """Outcomes, each with its own score and a proven bound on what any outcome scores.

    A score is −∞ where an oracle's fractions were decoded to no outcome that is allowed.
    """

    outcomes: list[Any]
    scores: Array
    upper: Array

    @property
    def proven(self) -> NDArray[np.bool_]:
        """Of every example: no outcome is better, up to solvers' tolerances."""
        return np.asarray(self.upper - self.scores <= _doubt(self.upper))


def decode(
    batch: Batch[Any], scores: ArrayLike, oracle: AnyOracle = None, *, effort: float = EACH
) -> Decoded:
    """The oracle's answers where they are outcomes; better and proven ones where they are not.

    ``effort`` is what CP-SAT may spend on each, in seconds that are counted, not timed.
    """
    values = as_finite_scores(batch, scores)
    vertices, upper = Validated(resolve(oracle, batch)).many(batch, values)
    parts = np.flatnonzero((vertices != 0.0) & (vertices != 1.0))
    broken = np.unique(batch.owner[parts]) if len(parts) else parts
    reached = batch.totals(values * vertices)
    effort = effort * max(min(1.0, SHARED / max(len(broken), 1)), 0.05)
    for m in broken:
        part = batch.coordinates(int(m))
        found = _whole(batch.structure(int(m)), values[part], vertices[part], upper[m], effort)
        vertices[part], reached[m], upper[m] = found
    outcomes = [
        batch.structure(m).decode(vertices[batch.coordinates(m)]) for m in range(len(batch))
    ]
    return Decoded(outcomes, reached, upper)


def _whole(
    structure: Structure, score: Array, vertex: Array, upper: float, effort: float
) -> tuple[Array, float, float]:
    """The best outcome that was found, its score, and the least bound."""
    best, worth = structure.encode(structure.decode(vertex)), -np.inf
    for found, bound in _attempts(structure, score, best, effort):
        upper = min(upper, bound)
        if structure.contains(found) and attained(score, found) > worth:
            best, worth = found, attained(score, found)
        if upper - worth <= _doubt(upper):
            break
    return best, worth, max(upper, worth)


def _doubt(upper: Any) -> Any:
    """What solvers' tolerances may leave between a proven answer and its bound."""
    return np.minimum(DOUBT * (1.0 + np.abs(upper)), MOST)


def _attempts(
    structure: Structure, score: Array, rounded: Array, effort: float
) -> Iterator[tuple[Array, float]]:
    """(an outcome, a bound), cheapest first."""
    one, solvers = Batch.of(structure, count=1), list[Any]()
    yield rounded, np.inf
    if isinstance(structure, FactorGraph):
        from mlestruct.inference.elimination import best_states, plan

        cost = plan(structure).estimate
        if cost.complete and cost.gib <= NARROW:
            found = structure.encode(best_states(structure, score[None], NARROW)[0])
            yield found, attained(score, found)
            return
        solvers += ["trw_s"] * structure.is_pairwise
    elif structure.default_oracle is not None and (own := resolve(None, one)).polytope == HULL:
        vertices, upper = own.many(one, score)
        yield vertices, float(upper[0])
    if structure.constraints() is not None and structure.size <= LARGEST:
        solvers.append("cp_sat")
    for name in solvers:
        solver: Any = load(name)
        try:
            solver = replace(solver, effort=effort) if name == "cp_sat" else solver
            vertices, upper = solver.many(one, score)
        except Infeasible:
            raise
        except (RuntimeError, ValueError):  # no answer within its budget, or not its kind of rows
            continue
        yield vertices, float(upper[0])


def k_best(nodes: Array, steps: Array, k: int) -> tuple[Ints, Array]:
    """(sequences × length) states and their scores, best first: k, or all if there are fewer.

    Viterbi with the k best prefixes of every state in place of one, which are all that the k best
    sequences can begin with. O(n k K²).

    ``nodes`` (length × K) scores of states, ``steps`` (length − 1 × K × K) of transitions; −inf
    where one is forbidden.

    >>> k_best(np.array([[0.0, 1.0], [0.0, 3.0]]), np.zeros((1, 2, 2)), 3)[0].tolist()
    [[1, 1], [0, 1], [1, 0]]
    """
    n, K = nodes.shape
    k = min(k, K**n)
    refuse_made(k * nodes.size, f"k={k}")
    states, scores = np.empty((k, n), dtype=np.int64), np.empty(k)
    best, came = nodes[:1], list[Ints]()  # prefixes by rank and last state
    for step, node in zip(steps, nodes[1:], strict=True):
        total = (best[:, :, None] + step).reshape(-1, K)
        few = min(k, len(total))
        came.append(np.argpartition(total, -few, axis=0)[-few:])
        best = np.take_along_axis(total, came[-1], axis=0) + node
    last = np.argsort(-best.ravel(), kind="stable")[:k]
    scores = best.ravel()[last]
    last, scores = last[scores > -np.inf], scores[scores > -np.inf]
    states = np.empty((len(last), n), dtype=np.int64)
    for t in range(n - 1, -1, -1):
        rank, states[:, t] = np.divmod(last, K)
        last = came[t - 1][rank, states[:, t]] if t else last
    return states, scores
