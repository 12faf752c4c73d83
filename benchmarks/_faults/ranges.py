"""Random problems at scores from 1e-3 to 1e6, near ties and near vertices: wrong, silent, flagged.

Wrong is an answer that contradicts the list of all outcomes. Silent is one that is, or by its own
bounds may be, further from the truth than ``NAT``, and no warning, error or flag said so; a bound
that is infinite says nothing. Flags and refusals are counted where nothing was wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

import mlestruct as ms
from benchmarks._faults.instances import TOL, _oracle, drawn
from mlestruct.inference import decode
from mlestruct.inference.bounds import log_z_interval
from mlestruct.structures import Structure
from mlestruct.structures.base import Array
from mlestruct.testing import vertices

NAT = 1e-3  # of a nat or a probability, however large the scores
SMALL = 100.0  # scores below which at most one answer in a hundred may be flagged


class Told(NamedTuple):
    """What is to be said of an answer: ``wrong``, ``silent`` or ``flag``, and in words."""

    kind: str
    words: str


def told(seed: int) -> tuple[bool, int, list[Told]]:
    """(whether scores stay below 100, answers that were asked for, what is to be said of them)."""
    rng = np.random.default_rng([18, seed])
    structure = drawn(rng)
    listed = vertices(structure)
    while len(listed) == 0:
        structure = drawn(rng)
        listed = vertices(structure)
    score = scores(structure, listed, rng)
    asked = (_decoded, _summed, _inferred)
    name = f"seed {seed}, {type(structure).__name__}, scores to {np.abs(score).max():.1g}"
    said = [
        Told(one.kind, f"{name}: {one.words}")
        for ask in asked
        for one in _heard(ask, structure, listed, score)
    ]
    return bool(np.abs(score).max() < SMALL), len(asked), said


def scores(structure: Structure, listed: Array, rng: np.random.Generator) -> Array:
    """Of any size: noise, near ties, or an outcome that nearly all of the mass is on."""
    size, kind = 10.0 ** rng.uniform(-3, 6), rng.integers(4)
    noise = rng.standard_normal(structure.size)
    if kind == 0:
        return np.asarray(size * noise)
    if kind == 1:  # equal but for the last digits
        return np.asarray(size * (rng.integers(-1, 2, structure.size) + 1e-9 * noise))
    best = 2.0 * listed[rng.integers(len(listed))] - 1.0
    if kind == 2:
        return np.asarray(size * (best + 0.01 * noise))
    return np.asarray(size * best + noise)


def _heard(ask: Any, structure: Structure, listed: Array, score: Array) -> Iterator[Told]:
    """What an answer is worth; a warning takes the silence from it, an error is a refusal."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = list(ask(structure, listed, score))
        except ValueError as error:
            found = [Told("flag", f"{ask.__name__[1:]} refused: {error}")]
    if heard and not any(one.kind == "wrong" for one in found):
        found = [Told("flag", f"{ask.__name__[1:]}: {heard[0].message}")]
    yield from found


def _decoded(structure: Structure, listed: Array, score: Array) -> Iterator[Told]:
    found = decode(ms.Batch.of(structure), score, _oracle(structure))
    worth, best = listed @ score, float((listed @ score).max())
    own = float(structure.encode(found.outcomes[0]) @ score)
    near = min(NAT, 1e-9 * (1.0 + np.abs(worth).max()))
    if abs(own - found.scores[0]) > near:
        yield Told("wrong", f"says {found.scores[0]}, and its outcome scores {own}")
    if found.upper[0] < best - near:
        yield Told("wrong", f"bounds the best by {found.upper[0]}, which is {best}")
    if own < best - NAT:
        kind = "wrong" if found.proven[0] else "flag"
        yield Told(kind, f"an outcome of {own}, the best has {best}")


def _summed(structure: Structure, listed: Array, score: Array) -> Iterator[Told]:
    if isinstance(structure, ms.Custom):
        return
    found, total = ms.exact(structure, score), listed @ score
    log_z, tau = float(logsumexp(total)), np.exp(total - logsumexp(total)) @ listed
    near = min(NAT, TOL * (1.0 + abs(log_z)))
    if abs(found.log_z - log_z) > near or np.abs(found.tau - tau).max() > NAT:
        off = np.abs(found.tau - tau).max()
        yield Told("wrong", f"log Z is {log_z}, not {found.log_z}; probabilities off by {off:.1g}")


def _inferred(structure: Structure, listed: Array, score: Array) -> Iterator[Told]:
    found = ms.marginals(ms.Batch.of(structure), score, _oracle(structure))
    log_z = float(logsumexp(listed @ score))
    inside, near = log_z_interval(found), min(NAT, TOL * (1.0 + abs(log_z)))
    if not structure.contains(found.tau, 1e-6):
        yield Told("wrong", "marginals leave the polytope")
    if not inside.lower[0] - near <= log_z <= inside.upper[0] + near:
        yield Told("wrong", f"log Z is {log_z}, not in [{inside.lower[0]}, {inside.upper[0]}]")
    gap = float(found.upper[0] - found.lower[0])
    if not gap <= NAT:
        yield Told("silent", f"marginals are proven to {gap:.2g} nats, and nothing was said")
