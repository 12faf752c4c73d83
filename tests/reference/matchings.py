"""Inference on matchings: exact, and over the degree polytope or the hull of matchings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlestruct.inference.exact import exact, outcomes
from mlestruct.structures import BipartiteMatching, Matching
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from tests.reference.cases import Fields, Malformed
from tests.reference.core import Got
from tests.reference.factor_graphs import nodes_of
from tests.reference.solving import Solved, infer, oracle_for

DEGREES = "linear_program"  # Σ of a node's edges = 1
HULL = None  # the structure's own solver: exact matchings


def _log_weights(inputs: Fields) -> Array:
    weights = inputs.array("weights", 2)
    if weights.shape[0] != weights.shape[1] or not (weights > 0).all():
        raise Malformed(f"{inputs.where}.weights must be square and positive")
    return np.log(weights)


def _exact(structure: Any, score: Array, shape: tuple[int, ...], expected: Fields) -> Iterator[Got]:
    found = exact(structure, score)
    values = {
        "permanent": np.exp(found.log_z),
        "logZ": found.log_z,
        "marginals": found.tau.reshape(shape),
    }
    for name, value in values.items():
        if name in expected:
            yield Got((name,), value)


def _pair(
    found: Solved, log_z: tuple[str | int, ...], tau: tuple[str | int, ...], shape: Any
) -> Iterator[Got]:
    yield found.value(log_z, -found.objective)
    yield found.point(tau, shape)


def _asked(expected: Fields, got: Iterator[Got], base: int = 0) -> Iterator[Got]:
    """Those that are asked for."""
    return (item for item in got if item.place[base] in expected)


def _variants(
    structure: Any, score: Array, shape: Any, expected: Fields, log_z: str, oracle: Any
) -> Iterator[Got]:
    """Every named ρ, common to all vertices."""
    if "variants" not in expected:
        return
    variants = expected.inside("variants")
    for name in variants:
        variant = variants.inside(name)
        found = infer(structure, score, variant.array("rho"), oracle)
        places = ("variants", name, log_z), ("variants", name, "tau")
        yield from _asked(variant, _pair(found, *places, shape), 2)


def permanent(inputs: Fields, expected: Fields) -> Iterator[Got]:
    W = _log_weights(inputs)
    structure = BipartiteMatching(len(W))
    yield from _exact(structure, W, W.shape, expected)
    yield from _variants(structure, W, W.shape, expected, "logZ", HULL)


def vertex_optimum(inputs: Fields, expected: Fields) -> Iterator[Got]:
    W = _log_weights(inputs)
    structure = BipartiteMatching(len(W))
    yield from _exact(structure, W, W.shape, expected)
    for name, rho in (("bethe", 1.0), ("rho_half", 0.5)):
        found = infer(structure, W, rho)
        pair = _pair(found, (f"{name}_logZ",), (f"{name}_tau",), W.shape)
        yield from _asked(expected, pair)


def all_ones(inputs: Fields, expected: Fields) -> Iterator[Got]:
    sizes = [int(n) for n in inputs.whole("n", 1)]
    if "log_perm" in expected:
        values = [exact(BipartiteMatching(n), np.zeros(n * n)).log_z for n in sizes]
        yield Got(("log_perm",), values)
    for name, rho in (("log_bethe", 1.0), ("log_rho_half", 0.5)):
        if name in expected:
            found = [infer(BipartiteMatching(n), np.zeros(n * n), rho) for n in sizes]
            gap = max((one.gap for one in found), default=0.0)
            values = [-one.objective for one in found]
            yield Got((name,), values, gap, f"within gap {gap:.1e}")


def partial_bipartite(inputs: Fields, expected: Fields) -> Iterator[Got]:
    theta = inputs.array("theta", 2)
    structure = BipartiteMatching(theta.shape[0], theta.shape[1], "partial")
    if "n_matchings" in expected:
        yield Got(("n_matchings",), len(outcomes(structure)))
    yield from _exact(structure, theta, theta.shape, expected)
    yield from _variants(structure, theta, theta.shape, expected, "logZ", HULL)


def general(inputs: Fields) -> tuple[Matching, Array]:
    """A general graph's perfect matchings and the scores of its edges."""
    edges, theta = inputs.whole("edges", 2), inputs.array("theta", 1)
    if len(edges) != len(theta):
        raise Malformed(f"{inputs.where}.theta has {len(theta)} entries for {len(edges)} edges")
    return Matching(nodes_of(edges), edges), theta


def _count(structure: Matching, expected: Fields) -> Iterator[Got]:
    if "n_matchings" in expected:
        yield Got(("n_matchings",), len(outcomes(structure)))


def perfect_matching(inputs: Fields, expected: Fields) -> Iterator[Got]:
    structure, theta = general(inputs)
    yield from _count(structure, expected)
    yield from _exact(structure, theta, theta.shape, expected)
    yield from _variants(structure, theta, theta.shape, expected, "logZ_local", DEGREES)


def polytopes(inputs: Fields, expected: Fields) -> Iterator[Got]:
    structure, theta = general(inputs)
    yield from _count(structure, expected)
    yield from _exact(structure, theta, theta.shape, expected)
    batch = Batch.of(structure, bias=theta)
    if "map_value" in expected:
        yield Got(("map_value",), float(oracle_for(batch, HULL).many(batch, theta)[0] @ theta))
    vertex, _ = oracle_for(batch, DEGREES).many(batch, theta)
    if "lp_degree_only_value" in expected:
        yield Got(("lp_degree_only_value",), float(vertex @ theta))
    if "lp_half_integral" in expected:
        yield Got(("lp_half_integral",), bool((vertex == 0.5).any()))
    for polytope, oracle in (("local", DEGREES), ("matching_polytope", HULL)):
        for name, rho in (("bethe", 1.0), ("rho_half", 0.5)):
            if any(key.startswith(f"{name}_{polytope}") for key in expected):
                found = infer(structure, theta, rho, oracle)
                places = (f"{name}_{polytope}_logZ",), (f"{name}_{polytope}_tau",)
                yield from _asked(expected, _pair(found, *places, theta.shape))
