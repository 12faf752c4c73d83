"""Messages where they prove their labelling, HiGHS elsewhere: the linear program's own values."""

import numpy as np
import pytest
from mlestruct_oracles.linear_program import LinearProgram, Relaxation

from mlestruct.oracle import load
from mlestruct.structures import grid
from mlestruct.structures.batch import Batch


class Watched(LinearProgram):
    """Remembers how many examples it was asked about."""

    def many(self, batch, scores):
        asked.append(len(batch))
        return super().many(batch, scores)


asked: list[int] = []


@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_values_are_the_linear_programs(rng, strength):
    """Tight or fractional; only examples that messages leave open are linear programs."""
    asked.clear()
    small, large = grid(2, 3, 3), grid(3, 3, 3)
    batch = Batch.of([small, large] * 10)
    scores = rng.standard_normal(batch.size)
    for m in range(len(batch)):
        nodes = batch.structure(m).node_start[-1]
        scores[batch.coordinates(m)][nodes:] *= strength  # a view of all scores
    vertices, upper = Relaxation(program=Watched()).many(batch, scores)
    expected, bound = load("linear_program").many(batch, scores)
    np.testing.assert_allclose(batch.totals(vertices * scores), batch.totals(expected * scores))
    np.testing.assert_allclose(upper, bound, rtol=1e-7)
    assert (upper >= batch.totals(expected * scores) - 1e-9).all()
    for structure, members in batch.groups():
        assert structure.contains(batch.rows(vertices, members), 1e-9).all()
    assert sum(asked) < len(batch)
    if strength > 1:
        assert ((vertices > 0) & (vertices < 1)).any()
        assert sum(asked) > 0


def test_it_is_the_default_where_nothing_is_forbidden():
    """Clamped graphs stay linear programs: messages may miss what is allowed."""
    graph = grid(3, 3, 3)
    assert graph.default_oracle == "relaxation"
    fixed = np.full(graph.size, -1)
    fixed[0] = 0
    clamped = type(graph)(graph.cards, [tuple(e) for e in graph.scope.reshape(-1, 2)], fixed=fixed)
    assert clamped.default_oracle == "linear_program"
