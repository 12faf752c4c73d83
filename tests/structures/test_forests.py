"""The middle of what is possible on forests, against all labellings."""

import itertools

import numpy as np
import pytest

from mlestruct.readers.transitions import ForbiddenTags
from mlestruct.structures import FactorGraph, chain
from mlestruct.structures.forests import uniform


def labellings(graph):
    """Every labelling's vertex that keeps what is fixed."""
    vertices = [graph.encode(s) for s in itertools.product(*map(range, graph.cards))]
    fixed = graph.fixed >= 0
    return [v for v in vertices if (v[fixed] == graph.fixed[fixed]).all()]


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_each_entry_has_its_share_of_the_labellings(share, rng):
    possible = 0
    for trial in range(150):
        free = FactorGraph([3, 2, 2, 3, 2, 2], [(0, 1, 2), (2, 3), (0, 4)])
        free = chain(int(rng.integers(1, 6)), 3) if trial % 2 else free
        shut = np.where(rng.random(free.size) < share, 0, free.fixed)
        graph = free.refix(shut.astype(np.int8))
        vertices, point = labellings(graph), uniform(graph)
        if not vertices:
            assert point is None
            continue
        expected = np.mean(vertices, axis=0)
        np.testing.assert_allclose(point, expected, atol=1e-12)
        np.testing.assert_array_equal(point == 0, expected == 0)
        possible += 1
    assert possible > 30


def test_well_formed_tags_need_no_question_to_the_oracle():
    labels = ["O", "B-x", "I-x", "B-y", "I-y"]
    tags = ForbiddenTags.of(labels, "bio").applied(chain(30, len(labels)))
    point = tags.interior()
    assert tags.contains(point)
    assert ((point == 0) == tags.closed()).all()
