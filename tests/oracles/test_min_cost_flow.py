"""Flows of largest score: the best of all arc sets that balance, rounding stated in the bound."""

from itertools import product

import numpy as np
import pytest
from mlestruct_oracles.min_cost_flow import MinCostFlow
from mlestruct_oracles.shortest_path import ShortestPath

from mlestruct import Batch, Flow, FrankWolfe, Infeasible, Paths, marginals
from mlestruct.oracle import Validated

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)]


def vertices(flow):
    """Every set of arcs whose net outflow is allowed."""
    sets = np.array(list(product([0.0, 1.0], repeat=flow.size)))
    out = np.zeros((len(sets), flow.n_nodes))
    for k, (tail, head) in enumerate(flow.arcs.tolist()):
        out[:, tail] += sets[:, k]
        out[:, head] -= sets[:, k]
    pinned = flow.fixed >= 0
    agree = (sets[:, pinned] == flow.fixed[pinned]).all(axis=1)
    return sets[agree & ((out >= flow.low) & (out <= flow.high)).all(axis=1)]


def random_flow(rng):
    """Cycles, parallel arcs, births and deaths; about a third are impossible."""
    n, size = int(rng.integers(2, 7)), int(rng.integers(1, 11))
    tails = rng.integers(0, n, size)
    arcs = np.stack([tails, (tails + rng.integers(1, n, size)) % n], axis=1)
    supply = {}
    for node in rng.permutation(n)[: int(rng.integers(1, n + 1))].tolist():
        low = int(rng.integers(-1, 2))
        supply[node] = (low, low + int(rng.integers(0, 3)))
    fixed = rng.choice([-1, -1, -1, -1, -1, -1, 0, 1], size)
    return Flow(arcs, supply, n_nodes=n, fixed=fixed)


@pytest.mark.parametrize("whole", [True, False])
def test_it_finds_the_best_of_all_flows_and_says_where_there_is_none(whole):
    rng = np.random.default_rng(int(whole))
    oracle, solved, impossible = Validated(MinCostFlow()), 0, 0
    while solved < 5000:
        flow = random_flow(rng)
        listed, batch = vertices(flow), Batch.of([flow] * 50)
        scores = rng.integers(-4, 5, batch.size) if whole else rng.normal(size=batch.size)
        scores = scores.astype(float)
        assert flow.impossible() is None or len(listed) == 0
        if len(listed) == 0:
            impossible += 1
            with pytest.raises(Infeasible, match=r"node \d must send|no flow has these"):
                oracle.many(batch, scores)
            continue
        truth = (scores.reshape(50, -1) @ listed.T).max(axis=1)
        found, upper = oracle.many(batch, scores)
        np.testing.assert_allclose(batch.totals(scores * found), truth, atol=1e-11)
        assert (upper >= truth - 1e-12).all()
        assert (upper <= truth + (0 if whole else 1e-11)).all()
        solved += 50
    assert impossible > 20


def test_the_bound_covers_what_rounding_hides():
    flow = Flow(DIAMOND, {0: 1, 3: -1})
    scores = np.array([2.0**60, 2.0**60, 3e-3, 5e-3, -(2.0**60)])
    found, upper = MinCostFlow().many(Batch.of(flow), scores)
    reached = scores @ found
    assert reached <= 2.0**60 + 5e-3 <= upper[0]
    assert upper[0] <= 2.0**60 * (1 + 1e-10)


def test_one_unit_on_a_dag_is_the_shortest_path(rng):
    arcs = [(u, v) for u in range(7) for v in range(u + 1, 7)]
    scores = rng.normal(size=len(arcs) * 20)
    _, by_flow = MinCostFlow().many(Batch.of([Flow(arcs, {0: 1, 6: -1})] * 20), scores)
    _, by_path = ShortestPath().many(Batch.of([Paths(arcs, 0, 6)] * 20), scores)
    np.testing.assert_allclose(by_flow, by_path)


def test_the_entropy_bounds_log_z_from_above(rng):
    flows = [flow for flow in (random_flow(rng) for _ in range(40)) if len(vertices(flow)) > 1]
    batch = Batch.of(flows)
    scores = rng.normal(size=batch.size)
    found = marginals(batch, scores, solver=FrankWolfe(tol=1e-7, rounds=300))
    assert found.bound.kind == "upper"
    for m, flow in enumerate(flows):
        exact = np.logaddexp.reduce(vertices(flow) @ scores[batch.coordinates(m)])
        assert exact <= found.upper[m] + 1e-9
        assert found.upper[m] - found.lower[m] < 1e-4


def test_births_and_deaths_are_intervals_of_supply():
    tracks = Flow(DIAMOND, {0: (0, 2), 3: (-2, 0)})
    assert len(vertices(tracks)) == 5  # nothing, three single tracks, the two disjoint ones
    assert tracks.encode([]).sum() == 0
    assert tracks.decode(tracks.encode([0, 4, 3])).tolist() == [0, 3, 4]
    assert tracks.clamp([4]).fixed.tolist() == [-1, -1, -1, -1, 1]


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ([0, 0], "arc 0 is used 2 times"),
        ([0], "node 1 sends -1 units, not 0..0"),
        ([9], "no arc 9 in 0..4"),
        ([0.5], "arcs are integers"),
    ],
)
def test_outcomes_that_are_no_flow_are_named(outcome, says):
    with pytest.raises(ValueError, match=says):
        Flow(DIAMOND, {0: (0, 2), 3: (-2, 0)}).encode(outcome)


@pytest.mark.parametrize(
    ("arcs", "supply", "says"),
    [
        ([], {}, "arcs are pairs"),
        ([(1, 1)], {}, "arc 0 joins node 1 to itself"),
        ([(0, 1)], {0: 0.5, 1: -0.5}, "supply of node 0"),
        ([(0, 1)], {0: (2, 1)}, "supply of node 0"),
        ([(0, 1)], {-1: 1}, "names node -1"),
    ],
)
def test_what_is_no_flow_problem_is_named(arcs, supply, says):
    with pytest.raises(ValueError, match=says):
        Flow(arcs, supply)


def test_there_is_nothing_to_reweight():
    with pytest.raises(ValueError, match="a Flow has no reweighted Bethe entropy"):
        marginals(Batch.of(Flow(DIAMOND, {0: 1, 3: -1})), np.zeros(5), rho=0.5)
