"""Batches: equal structures once, mixed sizes side by side, every error with its example."""

import numpy as np
import pytest

from mlestruct.structures import BipartiteMatching, FactorGraph, Paths, chain
from mlestruct.structures.batch import Batch, Partial
from mlestruct.testing import vertices

MIXED = [chain(3, 2), chain(2, 3), chain(3, 2), chain(4, 2)]
LABELS = [[0, 1, 1], [2, 0], [1, 1, 0], [0, 0, 1, 1]]


def test_equal_structures_are_stored_once():
    batch = Batch.of([chain(3, 2), chain(3, 2), chain(3, 2).forbid([(0, 0)])])
    assert len(batch.structures) == 2
    assert batch.which.tolist() == [0, 0, 1]


def test_examples_of_mixed_sizes_lie_side_by_side():
    batch = Batch.of(MIXED, LABELS)
    assert np.diff(batch.offsets).tolist() == [s.size for s in MIXED]
    for m, (structure, labels) in enumerate(zip(MIXED, LABELS, strict=True)):
        part = batch.coordinates(m)
        assert batch.target[part].tolist() == structure.encode(labels).tolist()
        assert (batch.owner[part] == m).all()
        assert batch.structure(m) == structure
    flat = np.random.default_rng(0).random(batch.size)
    expected = [flat[batch.coordinates(m)].sum() for m in range(4)]
    np.testing.assert_allclose(batch.totals(flat), expected)
    covered = np.zeros(batch.size)
    for structure, members in batch.groups():
        rows = batch.rows(flat, members)
        for row, m in zip(rows, members, strict=True):
            assert batch.structure(m) == structure
            np.testing.assert_array_equal(row, flat[batch.coordinates(m)])
        covered[batch.index(members)] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("chosen", [[2, 0], [1, 1, 3], [False, True, False, True], [-1], [3]])
def test_a_selection_is_the_batch_of_the_selected(chosen):
    """Numbers in any order and number, negative ones, and masks mean what they mean in NumPy."""
    bias = np.arange(float(sum(s.size for s in MIXED)))
    batch = Batch.of(MIXED, LABELS, weight=[1, 2, 3, 4], bias=bias)
    part = batch.select(chosen)
    numbers = np.arange(4)[chosen]
    expected = Batch.of([MIXED[m] for m in numbers], [LABELS[m] for m in numbers])
    assert [part.structure(i) for i in range(len(part))] == [MIXED[m] for m in numbers]
    np.testing.assert_array_equal(part.target, expected.target)
    np.testing.assert_array_equal(part.weight, numbers + 1.0)
    rows = [bias[batch.coordinates(m)] for m in numbers]
    np.testing.assert_array_equal(part.bias, np.concatenate(rows))


MISUSE = [
    (lambda: Batch.of(Paths([(0, 1), (1, 2)], 0, 2), [[5]]), "list of arcs in 0..1"),
    (lambda: Batch.of(chain(2, 2), [[0, 1]], weight=[1, 2]), "2 example weights for 1"),
    (lambda: Batch.of(chain(2, 2), count=1, bias=np.zeros(3)), "3 entries for 8 coordinates"),
    (
        lambda: Batch.of(chain(2, 2), count=1, bias=[0, 0, np.inf, 0, 0, 0, 0, 0]),
        "bias of coordinate 2 is inf",
    ),
    (lambda: Batch.of([chain(2, 2), FactorGraph([], [])]), "example 1 has a structure without"),
]


@pytest.mark.parametrize(("build", "message"), MISUSE, ids=range(len(MISUSE)))
def test_misuse_names_the_example_and_the_value(build, message):
    with pytest.raises(ValueError, match=message):
        build()


SEEN = {
    "chain": (chain(4, 3), lambda rng: rng.integers(0, 3, 4)),
    "matching": (BipartiteMatching(4), lambda rng: rng.permutation(4)),
    "ring": (FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)]), lambda rng: rng.integers(0, 2, 3)),
}


@pytest.mark.parametrize("kind", SEEN)
def test_the_outcomes_that_agree_with_what_was_seen_are_those_of_the_target(kind, rng):
    structure, draw = SEEN[kind]
    whole = [draw(rng) for _ in range(8)]
    outcomes, known = [], []
    for m, outcome in enumerate(whole):
        kept = rng.random(len(outcome)) < 0.5
        known.append(np.where(kept | (m % 3 == 0), outcome, -1))
        outcomes.append(outcome if m % 3 == 0 else Partial(known[-1]))
    batch = Batch.of(structure, outcomes)
    every = vertices(structure)
    decoded = [np.asarray(structure.decode(vertex)) for vertex in every]
    for m, seen in enumerate(known):
        agree = [bool(((seen < 0) | (seen == other)).all()) for other in decoded]
        target = batch.target[batch.coordinates(m)]
        told = ~np.isnan(target)
        assert [bool((vertex[told] == target[told]).all()) for vertex in every] == agree
        assert told.all() or m % 3
    assert batch.partly == any((seen < 0).any() for seen in known)


def test_a_partial_outcome_that_no_outcome_has_names_its_example():
    with pytest.raises(ValueError, match="example 1: "):
        Batch.of(BipartiteMatching(3), [[0, 1, 2], Partial([5, -1, -1])])
    with pytest.raises(ValueError, match="example 0: the outcome"):
        Batch.of(BipartiteMatching(2, forbidden=[(0, 0)]), [[0, 1], Partial([-1, 0])])
