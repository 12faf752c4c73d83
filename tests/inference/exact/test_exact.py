"""Exact inference against plain enumeration, every route."""

import itertools
import math

import numpy as np
import pytest

from mlestruct.inference.exact import exact, outcomes
from mlestruct.structures import BipartiteMatching, Custom, FactorGraph, Matching, grid
from mlestruct.structures.batch import Batch

COMPLETE_60 = FactorGraph([2] * 60, list(itertools.combinations(range(60), 2)))


@pytest.mark.parametrize("kind", ["perfect", "one_sided", "partial"])
def test_counts(kind):
    structure = BipartiteMatching(3, 3 if kind == "perfect" else 4, kind)
    log_z = exact(structure, np.zeros(structure.size)).log_z
    assert len(outcomes(structure)) == round(math.exp(log_z))


@pytest.mark.parametrize(
    "structure",
    [
        BipartiteMatching(4),
        BipartiteMatching(3, 5, "one_sided", forbidden=[(0, 0)]),
        BipartiteMatching(4, 3, "partial", required=[(1, 1)]),
        Matching(6),
        Matching(5, kind="partial"),
    ],
    ids=lambda s: f"{type(s).__name__}{s.size}",
)
def test_rows_of_a_batch_are_summed_as_if_alone(structure, rng):
    """Also where products vanish for some rows, and where some coordinates are closed."""
    scores = 10.0 ** np.array([[0.0], [3.0], [-2.0], [5.0]]) * rng.normal(size=(4, structure.size))
    found = exact(Batch.of(structure, count=4), scores.ravel())
    for m, score in enumerate(scores):
        alone = exact(structure, score)
        assert found.log_z[m] == alone.log_z
        np.testing.assert_array_equal(found.tau.reshape(4, -1)[m], alone.tau)


@pytest.mark.parametrize("kind", ["perfect", "one_sided", "partial"])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_rivals_for_one_place_leave_every_digit(kind, scale, rng):
    """All want the same column: by rows' best scores every product vanishes."""
    for rows, columns in ((4, 4), (2, 6), (5, 5)):
        if kind == "perfect" and rows < columns:
            continue
        structure = BipartiteMatching(rows, columns, kind)
        score = scale * rng.normal(size=(rows, columns))
        score[:, 0] += 1e3 * scale
        listed = outcomes(structure).astype(np.longdouble)
        energy = listed @ score.ravel().astype(np.longdouble)
        weight = np.exp(energy - energy.max())
        found = exact(structure, score.ravel())
        assert found.log_z == pytest.approx(float(energy.max() + np.log(weight.sum())), rel=1e-14)
        tau = (weight / weight.sum()) @ listed
        np.testing.assert_allclose(found.tau, tau.astype(float), rtol=0, atol=1e-12 * scale)


def test_what_is_too_large_is_refused_with_its_size():
    clamped = grid(24, 24).clamp({0: 1})
    with pytest.raises(ValueError, match=r"width 2\d: .* GiB and .* s an example; the limit"):
        exact(clamped, np.zeros(clamped.size))
    with pytest.raises(ValueError, match=r"width at least \d\d: at least"):
        exact(COMPLETE_60, np.zeros(COMPLETE_60.size))
    with pytest.raises(ValueError, match=r"30 columns would need 17\.6 GiB"):
        exact(BipartiteMatching(30), np.zeros(900))
    with pytest.raises(ValueError, match=r"sets of 40 nodes would need"):
        exact(Matching(40), np.zeros(780))
    with pytest.raises(ValueError, match="too many to list"):
        outcomes(Matching(20))
    with pytest.raises(ValueError, match="Custom cannot be listed"):
        exact(Custom(3), np.zeros(3))


def test_the_score_has_to_fit():
    with pytest.raises(ValueError, match="4 scores for 9"):
        exact(BipartiteMatching(3), np.zeros(4))


@pytest.mark.parametrize("number", range(1, 16))
def test_reference_grids(shared_data, number):
    """log Z and marginals of the published 5 × 5 grids, to the files' rounding."""
    path = shared_data / "uai" / "grids_5x5" / f"gridWi5Tr{number}.npz"
    if not path.exists():
        pytest.skip("MLESTRUCT_DATA holds no uai models")
    compare_with_file(path)


def test_reference_boltzmann_machine(shared_data):
    path = shared_data / "uai" / "rbm" / "rbm_20.npz"
    if not path.exists():
        pytest.skip("MLESTRUCT_DATA holds no uai models")
    compare_with_file(path)


def compare_with_file(path):
    model = np.load(path)
    graph = FactorGraph([2] * len(model["unary"]), model["edges"])
    score = np.log(np.concatenate([model["unary"].ravel(), model["pairwise"].ravel()]))
    found = exact(graph, score)
    truth = np.concatenate([model["exact_node"].ravel(), model["exact_edge"].ravel()])
    assert found.log_z == pytest.approx(float(model["exact_log_z"]), abs=6e-4)
    np.testing.assert_allclose(found.tau, truth, atol=2e-6)
