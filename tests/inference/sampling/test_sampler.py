"""The front of samplers: the most faithful one a structure has, and words for what it is."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.sampling import sampler

STREETS = np.array([(0, 1), (1, 3), (0, 2), (2, 3)])


def pick(score):
    return np.eye(len(score))[score.argmax()]


@pytest.mark.parametrize(
    ("structure", "oracle", "exact", "words"),
    [
        (ms.chain(3, 2), None, True, "independent exact"),
        (ms.grid(3, 3), "trw_s", True, "independent exact"),
        (ms.grid(40, 40, 4), None, False, "Gibbs chain"),
        (ms.Paths(STREETS, 0, 3), None, True, "independent exact"),
        (ms.BipartiteMatching(3), None, False, "Markov chain"),
        (ms.Matching(4), None, False, "Markov chain"),
        (ms.Custom(3), pick, False, "perturb-and-MAP"),
    ],
)
def test_the_most_faithful_sampler_is_chosen(structure, oracle, exact, words):
    """Exact where sums are cheap, chains where they mix, perturbations where only MAP is known."""
    found = sampler(structure, np.zeros(structure.size), 2, np.random.default_rng(0), oracle)
    assert found.exact is exact
    assert words in found.how
    assert len(found) == 2
    assert structure.contains(found.vertices).all()


def test_one_seed_gives_one_answer():
    draws = [
        sampler(ms.BipartiteMatching(5), np.arange(25.0) / 9, 3, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(draws[0].vertices, draws[1].vertices)
    assert (draws[0].vertices != draws[2].vertices).any()
