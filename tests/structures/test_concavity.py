"""Concave by theorem, by sharing, or by a linear program: all say what Heskes' condition says."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from mlestruct.structures import FactorGraph


def random_graph(rng, pairwise=True):
    """Some variables, and some of all factors of two of them, or of two and three."""
    n = int(rng.integers(2, 7))
    scopes = [c for order in (2, 3)[: 2 - pairwise] for c in combinations(range(n), order)]
    kept = rng.permutation(len(scopes))[: int(rng.integers(1, 2 * n))]
    return FactorGraph([2] * n, [scopes[k] for k in kept])


def random_counting(graph, rng):
    """By ρ near the edge of what can be paid for, or counting numbers that no ρ gives."""
    rho = rng.random(graph.n_factors) * rng.choice([0.8, 1.3, 2.0])
    if rng.random() < 0.3 and graph.is_pairwise:
        rho = graph._default_rho * rng.choice([1.0, rng.random()])
    counting = graph.counting(rho)
    if rng.random() < 0.3:
        counting[: graph.n_nodes] += rng.normal(scale=0.2, size=graph.n_nodes)
    return counting


def heskes(graph, counting):
    """How much more than they need all needy variables can be paid at once: below 0, not enough."""
    over = graph.views().over
    columns, n = np.arange(len(over)), len(counting)
    demand = np.maximum(-counting, 0.0)
    pays, gets = np.zeros((n, len(over) + 1)), np.zeros((n, len(over) + 1))
    pays[over[:, 0], columns] = 1.0
    gets[over[:, 1], columns] = -1.0
    gets[demand > 0, -1] = 1.0
    goal = np.r_[np.zeros(len(over)), -1.0]
    bounds = [(0, None)] * len(over) + [(None, 10.0)]
    least = np.r_[np.maximum(counting, 0.0), -demand]
    return -linprog(goal, np.vstack([pays, gets]), least, bounds=bounds).fun


@pytest.mark.parametrize("pairwise", [True, False])
def test_concave_is_what_can_be_paid_for(pairwise, rng):
    yes = no = 0
    for _ in range(200):
        graph = random_graph(rng, pairwise)
        counting = random_counting(graph, rng)
        spare = heskes(graph, counting)
        if abs(spare) < 1e-9:  # of spanning trees, to rounding
            continue
        assert graph.convex(counting) == (spare > 0)
        yes, no = yes + (spare > 0), no + (spare < 0)
    assert min(yes, no) > 15
