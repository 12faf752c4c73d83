import itertools
import json
import math
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from mlestruct_oracles.qpbo import QPBO, GraphCut

from mlestruct import Batch, FactorGraph, Infeasible

BACKENDS = ["pymaxflow", "compiled"]
TRIANGLE = [[0, 1], [1, 2], [0, 2]]


class Relaxed(NamedTuple):
    """Vertices' tables, and bounds."""

    node: Any
    edge: Any
    upper: Any


def solved(oracle, edges, unary, pair):
    models, n = unary.shape[:2]
    batch = Batch.of(FactorGraph([2] * n, np.reshape(edges, (-1, 2)).tolist()), count=models)
    vertex, upper = oracle.many(batch, flat(unary, pair).ravel())
    node, edge = np.split(vertex.reshape(models, -1), [2 * n], axis=1)
    return Relaxed(node.reshape(unary.shape), edge.reshape(pair.shape), upper)


def qpbo(edges, unary, pair, backend="compiled"):
    return solved(QPBO(backend), edges, unary, pair)


def graph_cut(edges, unary, pair, backend="compiled"):
    return solved(GraphCut(backend), edges, unary, pair)


# --- references ----------------------------------------------------------------------------------


def best_half_integral(edges, unary, pair):
    """For each model, the best score over {0, ½, 1}ⁿ, every edge table completed at its best."""
    node = np.insert(unary, 1, unary.mean(axis=2), axis=2)
    rows = np.insert(pair, 1, pair.mean(axis=2), axis=2)
    table = np.insert(rows, 1, rows.mean(axis=3), axis=3)
    diagonal, other = pair[..., [0, 1], [0, 1]], pair[..., [0, 1], [1, 0]]
    table[..., 1, 1] = np.maximum(diagonal.mean(axis=2), other.mean(axis=2))
    points = np.array(list(itertools.product(range(3), repeat=unary.shape[1])))
    score = node[:, np.arange(points.shape[1]), points].sum(axis=2)
    for e, (i, j) in enumerate(edges):
        score += table[:, e, points[:, i], points[:, j]]
    return score.max(axis=1)


def best_labelling(edges, unary, pair):
    """For each model, the best score over {0, 1}ⁿ."""
    best = np.full(len(unary), -np.inf)
    for y in itertools.product((0, 1), repeat=unary.shape[1]):
        score = unary[:, np.arange(len(y)), y].sum(axis=1)
        for e, (i, j) in enumerate(edges):
            score = score + pair[:, e, y[i], y[j]]
        best = np.maximum(best, score)
    return best


def constraints(edges, n):
    """A and b of the local polytope {A τ = b, τ ≥ 0}, τ = node tables then edge tables."""
    rows, right = [], []
    for i in range(n):
        row = np.zeros(2 * n + 4 * len(edges))
        row[2 * i : 2 * i + 2] = 1
        rows.append(row)
        right.append(1.0)
    for e, ends in enumerate(edges):
        for axis, node in enumerate(ends):
            for state in range(2):
                row = np.zeros(2 * n + 4 * len(edges))
                table = np.zeros((2, 2))
                table[(state, slice(None)) if axis == 0 else (slice(None), state)] = 1
                row[2 * n + 4 * e : 2 * n + 4 * e + 4] = table.ravel()
                row[2 * node + state] = -1
                rows.append(row)
                right.append(0.0)
    return np.array(rows), np.array(right)


def flat(unary, pair):
    models = len(unary)
    return np.concatenate([unary.reshape(models, -1), pair.reshape(models, -1)], axis=1)


def value(answer, unary, pair):
    vertex, score = flat(answer.node, answer.edge), flat(unary, pair)
    used = np.where(vertex > 0, score, 0.0) * vertex
    return np.array([math.fsum(row) for row in used])


def assert_vertices(edges, answer, check_rank=False):
    """Half-integral points of the local polytope; with check_rank, vertices by linear algebra."""
    n = answer.node.shape[1]
    points = flat(answer.node, answer.edge)
    assert np.isin(points, (0.0, 0.5, 1.0)).all()
    matrix, right = constraints(edges, n)
    np.testing.assert_array_equal(points @ matrix.T, np.tile(right, (len(points), 1)))
    for point in points if check_rank else ():
        support = matrix[:, point > 0]
        assert np.linalg.matrix_rank(support) == support.shape[1]


# --- random models -------------------------------------------------------------------------------


def random_edges(rng, n, density):
    pairs = np.array(list(itertools.combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < density]
    return np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])


def make_attractive(pair):
    """Exchanges columns where that makes p00 + p11 ≥ p01 + p10."""
    attracts = pair[..., 0, 0] + pair[..., 1, 1] >= pair[..., 0, 1] + pair[..., 1, 0]
    return np.where(attracts[..., None, None], pair, pair[..., ::-1])


def flipped(edges, unary, pair, flip):
    """The same models with the states of nodes under flip (M, n) renamed."""
    unary = np.where(flip[..., None], unary[..., ::-1], unary)
    first, second = flip[:, edges[:, 0]], flip[:, edges[:, 1]]
    pair = np.where(first[..., None, None], pair[..., ::-1, :], pair)
    return unary, np.where(second[..., None, None], pair[..., ::-1], pair)


def random_models(rng, models, edges, n, sign, field, whole):
    """Scores of one kind: sign of the couplings, strength of the fields, whole numbers or real."""
    unary = field * rng.normal(size=(models, n, 2))
    pair = rng.normal(size=(models, len(edges), 2, 2))
    if whole:
        unary, pair = np.rint(2 * unary), np.rint(2 * pair)
    pair[rng.random(pair.shape[:2]) < 0.1] = 0.0
    if sign != "mixed":
        pair = make_attractive(pair)
    if sign == "balanced":
        unary, pair = flipped(edges, unary, pair, rng.random((models, n)) < 0.5)
    if sign == "frustrated":
        unary, pair = 0.1 * unary, pair[..., ::-1]
    return unary, pair


KINDS = list(
    itertools.product(
        ("attractive", "balanced", "mixed", "frustrated"), (0.0, 0.05, 1.0, 5.0), (True, False)
    )
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("sign", "field", "whole"), KINDS)
def test_equals_brute_force(sign, field, whole, backend, rng):
    """The score is the best of {0, ½, 1}ⁿ and upper bounds it, on 30,720 models of n ≤ 6."""
    for n in (1, 2, 3, 4, 5, 5, 6, 6):
        edges = random_edges(rng, n, 0.7)
        unary, pair = random_models(rng, 40, edges, n, sign, field, whole)
        answer = qpbo(edges, unary, pair, backend)
        best = best_half_integral(edges, unary, pair)
        assert_vertices(edges, answer)
        if whole and sign != "frustrated":
            np.testing.assert_array_equal(value(answer, unary, pair), best)
            np.testing.assert_array_equal(answer.upper, best)
        np.testing.assert_allclose(value(answer, unary, pair), best, rtol=0, atol=1e-12)
        assert (answer.upper >= value(answer, unary, pair)).all()
        assert (answer.upper >= best - 1e-14 * (1 + np.abs(best))).all()
        assert (answer.upper <= best + 1e-11 * (1 + np.abs(best))).all()
        if sign in ("attractive", "balanced"):
            assert (answer.node != 0.5).all()


@pytest.mark.parametrize("whole", [True, False])
def test_back_ends_agree(whole, rng):
    """All back ends give the same vertex, ties included: the cut with the smallest sink side."""
    for n in (4, 9, 16):
        edges = random_edges(rng, n, 0.4)
        unary, pair = random_models(rng, 200, edges, n, "mixed", 0.5, whole)
        one, *others = (qpbo(edges, unary, pair, backend) for backend in BACKENDS)
        for other in others:
            np.testing.assert_array_equal(one.node, other.node)
            np.testing.assert_array_equal(one.edge, other.edge)
            np.testing.assert_allclose(one.upper, other.upper, rtol=1e-10)


def test_near_ties(rng):
    """Whole-number ties broken by 1e-13 are broken the right way: scaling loses nothing."""
    edges = random_edges(rng, 6, 0.7)
    unary, pair = random_models(rng, 300, edges, 6, "mixed", 0.5, whole=True)
    unary += 1e-13 * rng.normal(size=unary.shape)
    answer = qpbo(edges, unary, pair)
    best = best_half_integral(edges, unary, pair)
    np.testing.assert_allclose(value(answer, unary, pair), best, rtol=0, atol=3e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_zero_tables_are_labelled(backend):
    """Without scores every point ties; isolated nodes and components still get state 0."""
    answer = qpbo([[0, 1], [3, 2]], np.zeros((2, 6, 2)), np.zeros((2, 2, 2, 2)), backend)
    assert (answer.node == [1.0, 0.0]).all()
    assert (answer.upper == 0).all()


def test_half_components_are_vertices(rng):
    """Where the cut leaves a half component without frustration, it moves to a vertex."""
    for n in (6, 10, 14):
        edges = random_edges(rng, n, 0.3)
        unary, pair = random_models(rng, 60, edges, n, "mixed", 0.3, whole=True)
        assert_vertices(edges, qpbo(edges, unary, pair), check_rank=True)


@pytest.mark.parametrize("shape", [(2, 1), (1, 3)])
def test_empty(shape):
    models, n = shape
    answer = qpbo([], np.ones((models, n, 2)), np.ones((models, 0, 2, 2)))
    assert answer.node.shape == (models, n, 2)
    assert answer.edge.shape == (models, 0, 2, 2)
    np.testing.assert_array_equal(answer.upper, np.full(models, float(n)))


@pytest.mark.parametrize("exponent", [-1000, -20, 20, 900])
def test_any_size(exponent, rng):
    size = 2.0**exponent
    edges = random_edges(rng, 6, 0.7)
    unary, pair = random_models(rng, 50, edges, 6, "mixed", 1.0, whole=True)
    plain, scaled = qpbo(edges, unary, pair), qpbo(edges, size * unary, size * pair)
    np.testing.assert_array_equal(plain.node, scaled.node)


# --- forbidden entries ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.25])
def test_forbidden_entries(backend, whole, share, rng):
    """−inf is avoided exactly, or Infeasible names the first model where nothing avoids it."""
    for n in (2, 3, 4, 5, 6):
        edges = random_edges(rng, n, 0.7)
        unary, pair = random_models(rng, 60, edges, n, "mixed", 1.0, whole)
        unary[rng.random(unary.shape) < share / 2] = -np.inf
        pair[rng.random(pair.shape) < share] = -np.inf
        best = best_half_integral(edges, unary, pair)
        possible = best > -np.inf
        answer = qpbo(edges, unary[possible], pair[possible], backend)
        np.testing.assert_allclose(
            value(answer, unary[possible], pair[possible]), best[possible], rtol=0, atol=1e-12
        )
        assert (answer.upper >= best[possible] - 1e-14 * (1 + np.abs(best[possible]))).all()
        assert (answer.upper <= best[possible] + 1e-10).all()
        assert_vertices(edges, answer)
        for k in np.flatnonzero(~possible):
            with pytest.raises(Infeasible, match="example 0"):
                qpbo(edges, unary[[k]], pair[[k]], backend)


def test_infeasible_names_the_place():
    edges, unary, pair = TRIANGLE, np.zeros((2, 3, 2)), np.zeros((2, 3, 2, 2))
    unary[1, 2] = -np.inf
    with pytest.raises(Infeasible, match=r"example 1.*node 2"):
        qpbo(edges, unary, pair)
    unary[:], pair[1, 2] = 0, -np.inf
    with pytest.raises(Infeasible, match=r"example 1.*edge 2 \(0–2\)"):
        qpbo(edges, unary, pair)
    pair[:], pair[1, 0, 0, 1], unary[1, 0, 1], unary[1, 1, 0] = 0, -np.inf, -np.inf, -np.inf
    with pytest.raises(Infeasible, match="example 1"):
        qpbo(edges, unary, pair)


def test_labels_may_be_impossible_where_halves_are_not():
    """A triangle of 'differ' constraints has no labelling, but ½ everywhere is in the polytope."""
    pair = np.tile(np.array([[-np.inf, 0.0], [0.0, -np.inf]]), (1, 3, 1, 1))
    answer = qpbo(TRIANGLE, np.zeros((1, 3, 2)), pair)
    assert (answer.node == 0.5).all()
    assert answer.upper[0] == 0.0


def test_clamps_cost_no_precision(rng):
    edges, n = grid(20, 20), 400
    unary, pair = random_models(rng, 3, edges, n, "mixed", 1.0, whole=False)
    unary[:, ::2, 1] = -np.inf
    answer = qpbo(edges, unary, pair)
    assert (answer.node[:, ::2] == [1.0, 0.0]).all()
    width = answer.upper - value(answer, unary, pair)
    assert ((width >= 0) & (width < 1e-12 * 400)).all()


def grid(rows, columns):
    index = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    return np.concatenate([right, down])


# --- graph cut -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("field", [0.0, 0.05, 1.0, 5.0])
def test_graph_cut_is_exact(field, backend, rng):
    for n in (1, 3, 5, 7):
        edges = random_edges(rng, n, 0.6)
        unary, pair = random_models(rng, 100, edges, n, "attractive", field, whole=False)
        answer = graph_cut(edges, unary, pair, backend)
        best = best_labelling(edges, unary, pair)
        assert (answer.node != 0.5).all()
        np.testing.assert_allclose(value(answer, unary, pair), best, rtol=0, atol=1e-12)
        np.testing.assert_allclose(answer.upper, best, rtol=0, atol=1e-11)


def test_graph_cut_with_forbidden_configurations(rng):
    """Implications (−inf off the diagonal) are attractive and hold exactly."""
    edges = random_edges(rng, 6, 0.6)
    unary, pair = random_models(rng, 100, edges, 6, "attractive", 1.0, whole=True)
    pair[rng.random(pair.shape[:2]) < 0.3, 0, 1] = -np.inf
    unary[:, 0, 0] = -np.inf
    answer = graph_cut(edges, unary, pair)
    np.testing.assert_array_equal(answer.upper, best_labelling(edges, unary, pair))


def test_graph_cut_names_the_edge_that_repels():
    """ValueError carries example, edge, ends and the four scores."""
    pair = np.zeros((2, 3, 2, 2))
    pair[1, 2] = [[1.0, 2.0], [3.0, 3.5]]
    with pytest.raises(ValueError, match=r"example 1, edge 2 \(0–2\).*\[\[1.0, 2.0\], \[3.0, 3.5"):
        graph_cut(TRIANGLE, np.zeros((2, 3, 2)), pair)


def test_graph_cut_forgives_rounding():
    """0.3 against 0.1 + 0.2 is a tie, whichever side rounding favours, and upper covers it."""
    for table in ([[0.3, 0.1], [0.2, 0.0]], [[0.1, 0.3], [0.0, 0.2]]):
        pair = np.array(table)[None, None]
        answer = graph_cut([[0, 1]], np.zeros((1, 2, 2)), pair)
        assert answer.upper[0] == pytest.approx(0.3, abs=1e-15)


# --- scores that are none ------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("solve", [qpbo, graph_cut])
def test_bad_scores_raise_with_their_place(solve, bad):
    """NaN, +inf and overflowing scores are named, none is solved."""
    unary, pair = np.zeros((2, 3, 2)), np.zeros((2, 3, 2, 2))
    unary[1, 2, 0] = bad
    with pytest.raises(ValueError, match="example 1: the score of coordinate 4"):
        solve(TRIANGLE, unary, pair)
    unary[:], pair[0, 1, 1, 0] = 0, bad
    with pytest.raises(ValueError, match="example 0: the score of coordinate 12"):
        solve(TRIANGLE, unary, pair)


# --- back ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [json, None])
def test_an_absent_pymaxflow_says_how_to_install_it(monkeypatch, found):
    """Or another package of the same module name in its place."""
    monkeypatch.setitem(sys.modules, "maxflow", found)
    with pytest.raises(ImportError, match=r"pip install 'mlestruct\[pymaxflow\]'"):
        qpbo(TRIANGLE, np.zeros((1, 3, 2)), np.zeros((1, 3, 2, 2)), "pymaxflow")


def test_unknown_back_ends_raise():
    with pytest.raises(ValueError, match=r"'qpbo'.*compiled.*pymaxflow"):
        qpbo(TRIANGLE, np.zeros((1, 3, 2)), np.zeros((1, 3, 2, 2)), "qpbo")
