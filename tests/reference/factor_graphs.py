"""Inference on labelled graphs: exact, over the local polytope, and its linear program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlestruct.inference.exact import exact
from mlestruct.inference.routine import Beliefs
from mlestruct.structures import FactorGraph, grid
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.spanning_trees import components, edge_appearance
from tests.reference.cases import Fields, Malformed
from tests.reference.core import Got
from tests.reference.joint import joint_scores
from tests.reference.newton import response
from tests.reference.solving import Solved, infer, inference_dual, oracle_for, polished
from tests.reference.spanning_trees import count_spanning_trees, tightest_appearance

ENUMERABLE = 1 << 22
LEAST_RHO = 1e-7  # at 0 an edge's table is not unique; edges without a coupling want 0


def pairwise(n: int, edges: Any, states: int = 2) -> FactorGraph:
    return FactorGraph([states] * n, edges)


def nodes_of(edges: Any, given: int | None = None) -> int:
    """The length of a per-node input, else 1 + the largest index."""
    return given if given is not None else int(np.max(edges, initial=-1)) + 1


def p1(graph: FactorGraph, tau: Array) -> Array:
    return np.asarray(tau[graph.node_start[:-1] + 1])


def edge_tables(graph: FactorGraph, tau: Array) -> Array:
    return tau[graph.node_start[-1] :].reshape(-1, 2, 2)


def factor_graph_inference(inputs: Fields, expected: Fields) -> Iterator[Got]:
    graph = FactorGraph(inputs.whole("K", 1), inputs.lists("scopes"))
    eta = inputs.array("eta", 1)
    if len(eta) != graph.size:
        raise Malformed(f"{inputs.where}.eta has {len(eta)} entries for {graph.size}")
    yield from exact_quantities(graph, eta, expected)
    A = graph.constraints().A
    if "rows_A" in expected:
        yield Got(("rows_A",), A.shape[0])
    if "rank_A" in expected:
        yield Got(("rank_A",), int(np.linalg.matrix_rank(A.toarray())))
    if "variants" in expected:
        for index, variant in enumerate(expected.objects("variants")):
            found = infer(graph, eta, variant.array("rho"))
            yield from reported(found, ("variants", index), variant, {"tau": found.tau})
    if "domke" in expected:
        yield from weighted(graph, eta, expected.inside("domke"))


def weighted(graph: FactorGraph, eta: Array, expected: Fields) -> Iterator[Got]:
    """min wᵀ(b log b) + vᵀb with v = −η: an entropy with the given coefficients."""
    w = np.concatenate(
        [
            np.broadcast_to(expected.array("w_node"), (graph.n_nodes,)),
            np.broadcast_to(expected.array("w_factor"), (graph.n_factors,)),
        ]
    )
    found = infer(Weighted(graph, w), eta, None)
    if "min_value" in expected:
        yield found.value(("domke", "min_value"), found.objective)
    if "b" in expected:
        yield found.point(("domke", "b"), (graph.size,))


class Weighted(FactorGraph):
    """A labelled graph whose counting numbers are given one by one."""

    def __init__(self, graph: FactorGraph, numbers: Array) -> None:
        self.__dict__.update(graph.__dict__)
        self.__dict__.pop("key", None)
        self.numbers = numbers

    def identity(self) -> Any:
        return *super().identity(), self.numbers.tobytes()

    def counting(self, rho: Any = None) -> Array:
        return self.numbers


def exact_quantities(graph: FactorGraph, eta: Array, expected: Fields) -> Iterator[Got]:
    """What listing all labellings gives."""
    found = exact(graph, eta)
    joint = joint_scores(graph, eta)
    best = np.unravel_index(int(joint.argmax()), joint.shape)
    values = {
        "logZ": found.log_z,
        "marginals": found.tau,
        "node_marginals_p1": None,
        "edge_marginals": None,
        "entropy": found.log_z - float(eta @ found.tau),
        "map_value": float(joint.max()),
        "map_state": [int(state) for state in best],
        "second_best_value": float(np.sort(joint, axis=None)[-2:][0]),
    }
    if "node_marginals_p1" in expected:
        values["node_marginals_p1"] = p1(graph, found.tau)
        values["edge_marginals"] = edge_tables(graph, found.tau)
    for name, value in values.items():
        if name in expected and value is not None:
            yield Got((name,), value)


def reported(
    found: Solved, place: tuple[str | int, ...], expected: Fields, points: dict[str, Array]
) -> Iterator[Got]:
    """log Z and whatever of the point is asked for."""
    for name in ("logZ", "logZ_local"):
        if name in expected:
            yield found.value((*place, name), -found.objective)
    for name, value in points.items():
        if name in expected:
            yield Got((*place, name), value, found.tau_within, found.note)


def grid_inference(inputs: Fields, expected: Fields) -> Iterator[Got]:
    edges, theta, J = inputs.whole("edges", 2), inputs.array("theta1", 1), inputs.array("J", 1)
    n = len(theta)
    graph = pairwise(n, edges)
    eta = np.concatenate(
        [np.stack([np.zeros(n), theta], axis=1).ravel(), np.outer(J, [1.0, 0.0, 0.0, 1.0]).ravel()]
    )
    yield from _exact_grid(inputs, graph, eta, expected)
    ust = edge_appearance(n, edges)
    if "rho_uniform_spanning_tree" in expected:
        yield Got(("rho_uniform_spanning_tree",), ust)
    if "n_spanning_trees" in expected:
        yield Got(("n_spanning_trees",), count_spanning_trees(n, edges))
    for name, rho in (("bethe", 1.0), ("trw_ust", ust), ("trw_half", 0.5)):
        names = [key for key in expected if key.startswith(f"{name}_")]
        if name == "trw_ust" and "mutual_info_at_trw_ust" in expected:
            names.append("mutual_info_at_trw_ust")
        if names:
            yield from _surrogate(name, infer(graph, eta, rho), graph, expected)
    if "trw_optrho_logZ" in expected or "trw_opt_rho" in expected:
        yield from _optimised(graph, eta, edges, expected)
    if "lp_local_value" in expected:
        yield Got(("lp_local_value",), lp(graph, eta)[0])


def _exact_grid(inputs: Fields, graph: FactorGraph, eta: Array, expected: Fields) -> Iterator[Got]:
    """By rows where listing all labellings would be too many (then without second best)."""
    if float(np.prod(graph.cards.astype(float))) <= ENUMERABLE:
        yield from exact_quantities(graph, eta, expected)
        return
    found = _by_rows(inputs, graph, eta)
    values = {
        "logZ": found.log_z,
        "node_marginals_p1": p1(graph, found.tau),
        "edge_marginals": edge_tables(graph, found.tau),
        "entropy": found.log_z - float(eta @ found.tau),
    }
    for name, value in values.items():
        if name in expected:
            yield Got((name,), value)


def _by_rows(inputs: Fields, graph: FactorGraph, eta: Array) -> Beliefs:
    rows, columns = (int(side) for side in inputs.whole("shape", 1))
    if grid(rows, columns).key != graph.key:
        raise ValueError("the edges are not those of the grid, horizontals first")
    return exact(graph, eta)


def _surrogate(name: str, found: Solved, graph: FactorGraph, expected: Fields) -> Iterator[Got]:
    if f"{name}_logZ" in expected:
        yield found.value((f"{name}_logZ",), -found.objective)
    within = found.tau_within
    information = mutual_information(graph, found.tau)
    points = {
        f"{name}_p1": p1(graph, found.tau),
        f"{name}_edges": edge_tables(graph, found.tau),
        f"mutual_info_at_{name}": information,
    }
    for place, value in points.items():
        if place in expected:
            yield Got((place,), value, within, found.note)


def mutual_information(graph: FactorGraph, tau: Array) -> Array:
    """I of every edge's table."""
    from scipy.special import xlogy

    tables = edge_tables(graph, tau)
    first, second = tables.sum(axis=2), tables.sum(axis=1)
    joint = xlogy(tables, tables).sum(axis=(1, 2))
    return np.asarray(joint - xlogy(first, first).sum(axis=1) - xlogy(second, second).sum(axis=1))


def information_slopes(graph: FactorGraph, tau: Array) -> Array:
    """∇I of every edge, one row each."""
    slopes = np.zeros((graph.n_factors, graph.size))
    log = np.log(np.maximum(tau, 1e-300)) + 1.0
    for e in range(graph.n_factors):
        entries = slice(graph.table_start[e], graph.table_start[e + 1])
        slopes[e, entries] = log[entries]
        for i in graph.scope[graph.scope_start[e] : graph.scope_start[e + 1]]:
            states = slice(graph.node_start[i], graph.node_start[i + 1])
            slopes[e, states] -= log[states]
    return slopes


def _optimised(graph: FactorGraph, eta: Array, edges: Any, expected: Fields) -> Iterator[Got]:
    """The tightest TRW bound; every inner problem starts from the last one's end."""
    last: list[Array] = []
    middle = graph.interior()
    assert middle is not None

    def solve(rho: Array) -> tuple[float, Array, Array]:
        dual = inference_dual(graph, eta, np.maximum(rho, LEAST_RHO))
        # a tenth of the uniform tables: Newton stalls when started at the boundary
        start = 0.9 * last.pop() + 0.1 * middle if last else middle
        tau = polished(dual, start).tau
        last.append(tau)
        curvature = response(dual, tau, information_slopes(graph, tau))
        return -dual.value(tau), mutual_information(graph, tau), curvature

    best = tightest_appearance(graph.n_nodes, edges, solve, tol=1e-10)
    found = infer(graph, eta, np.maximum(best.rho, LEAST_RHO))
    note = f"within gap {best.gap + found.gap:.1e}"
    if "trw_optrho_logZ" in expected:
        yield Got(("trw_optrho_logZ",), -found.objective, best.gap + found.gap, note)
    if "trw_opt_rho" in expected:
        yield Got(("trw_opt_rho",), best.rho, 0.0, note)


def lp(graph: FactorGraph, eta: Array) -> tuple[float, Array]:
    """max ⟨η, τ⟩ over the local polytope, and a maximising vertex."""
    batch = Batch.of(graph, bias=eta)
    vertex, _ = oracle_for(batch, "linear_program").many(batch, eta)
    return float(eta @ vertex), vertex


def frustrated_cycle(inputs: Fields, expected: Fields) -> Iterator[Got]:
    edges, table = inputs.whole("edges", 2), inputs.array("edge_table", 2)
    graph = pairwise(nodes_of(edges), edges)
    eta = np.concatenate([np.zeros(2 * graph.n_nodes), np.tile(table.ravel(), len(edges))])
    yield from exact_quantities(graph, eta, expected)
    value, vertex = lp(graph, eta)
    if "lp_local_value" in expected:
        yield Got(("lp_local_value",), value)
    if "lp_solution_nodes_all_half" in expected:
        half = bool((vertex[: 2 * graph.n_nodes] == 0.5).all())
        yield Got(("lp_solution_nodes_all_half",), half)
    for name, rho in (("bethe_logZ", 1.0), ("trw_2_3_logZ", 2 / 3)):
        if name in expected:
            found = infer(graph, eta, rho)
            yield found.value((name,), -found.objective)


def edge_appearance_case(inputs: Fields, expected: Fields) -> Iterator[Got]:
    n, edges = int(inputs.whole("n", 0)), inputs.lists("edges")
    if "rho" in expected:
        yield Got(("rho",), edge_appearance(n, edges))
    if "n_components" in expected:
        yield Got(("n_components",), int(components(n, edges).max(initial=-1)) + 1)


def ising_grid(inputs: Fields, expected: Fields) -> Iterator[Got]:
    rows, columns = (int(side) for side in inputs.whole("shape", 1))
    J, field = inputs.number("J"), inputs.number("field")
    graph = grid(rows, columns)
    eta = np.concatenate(
        [
            np.tile([-field, field], graph.n_nodes),
            np.tile([J, -J, -J, J], graph.n_factors),
        ]
    )
    found = exact(graph, eta)
    if "logZ" in expected:
        yield Got(("logZ",), found.log_z)
    for name in expected:
        if name.startswith("corr_edge_"):
            yield Got((name,), _correlation(graph, columns, found.tau, name))
    if any(name.startswith("trw_half") for name in expected):
        half = infer(graph, eta, 0.5)
        if "trw_half_logZ" in expected:
            yield half.value(("trw_half_logZ",), -half.objective)
        for name in expected:
            if name.startswith("trw_half_corr_"):
                corr = _correlation(graph, columns, half.tau, name)
                yield Got((name,), corr, 4 * half.tau_within, half.note)


def _correlation(graph: FactorGraph, columns: int, tau: Array, name: str) -> float:
    """E[x_s x_t] of the edge that a name like corr_edge_00_01 ends in, as (row, column) digits."""
    ends = [int(part[0]) * columns + int(part[1]) for part in name.split("_")[-2:]]
    scopes = graph.scope.reshape(-1, 2)
    at = np.flatnonzero((np.sort(scopes, axis=1) == np.sort(ends)).all(axis=1))
    if len(at) == 0:
        raise ValueError(f"{name} names no edge of the grid")
    table = edge_tables(graph, tau)[at[0]]
    return float(table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0])
