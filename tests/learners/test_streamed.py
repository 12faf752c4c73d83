"""Streamed examples: the fit of all at once, from files read a shard at a time."""

from __future__ import annotations

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.checkpoint import Checkpoint
from mlestruct.data import Stored
from mlestruct.engine.processes import Processes
from mlestruct.learners.streamed import fit_streamed, streamed

WIDTH = 4


def chains(shape):
    return ms.chain(shape[0], 3)


def matchings(shape):
    return ms.BipartiteMatching(*shape)


def loops(shape):
    return ms.grid(*shape)


KINDS = {
    "chains": (chains, ms.Tied.of, lambda rng: (int(rng.integers(1, 6)),), 3),
    "matchings": (matchings, ms.Dense.of, lambda rng: (4, 4), None),
    "grids": (loops, ms.Tied.of, lambda rng: (3, 3), 2),
}


@pytest.fixture(params=KINDS)
def examples(request, rng):
    """(how to read them, examples): features and an outcome each."""
    structure, features, shape_of, states = KINDS[request.param]
    found = []
    for _ in range(23):
        shape = shape_of(rng)
        outcome = rng.permutation(4) if states is None else rng.integers(0, states, shape)
        found.append((rng.standard_normal((*shape, WIDTH)), outcome.ravel()))
    return structure, features, found


def learner(**settings):
    return ms.mle_struct(solver=ms.FrankWolfe(tol=1e-8, **settings))


def test_the_fit_is_that_of_all_examples_at_once(examples, tmp_path):
    structure, features, found = examples
    stored = Stored.write(tmp_path / "shards", iter(found), structure, features, per_file=10)
    assert len(stored.sources()) == 3
    model = fit_streamed(learner(), stored.sources())
    structures = [structure(x.shape[:-1]) for x, _ in found]
    batch = ms.Batch.of(structures, [y for _, y in found])
    rows = np.concatenate([x.reshape(-1, WIDTH) for x, _ in found])
    whole = learner().fit(batch, features(batch, rows))
    np.testing.assert_allclose(model.theta, whole.theta, atol=1e-5)
    assert model.certificate.relative <= 1e-7
    assert model.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-7)
    assert model.certificate.polytope == whole.certificate.polytope


def test_where_shards_are_read_changes_no_bit(examples, tmp_path):
    """In processes, and going on from a checkpoint too."""
    structure, features, found = examples
    stored = Stored.write(tmp_path / "shards", iter(found), structure, features, per_file=6)
    expected = fit_streamed(learner(), stored.sources())
    engine = Processes(workers=2)
    assert fit_streamed(learner(engine=engine), stored.sources()).theta.tobytes() == (
        expected.theta.tobytes()
    )
    engine.close()
    path = tmp_path / "fit"
    kept = learner(checkpoint=Checkpoint(path, every=1))
    for state in streamed(kept, stored.sources()):
        if state.round == 3:
            break
    model = fit_streamed(kept, stored.sources())
    assert model.theta.tobytes() == expected.theta.tobytes()
    assert [row[2:] for row in model.history] == [row[2:] for row in expected.history]
    other = Stored.write(tmp_path / "others", iter(found[::-1]), structure, features, per_file=6)
    with pytest.raises(ValueError, match="shards"):
        fit_streamed(kept, other.sources())


def test_what_cannot_be_streamed_is_refused(tmp_path, rng):
    found = [(rng.standard_normal((4, 4, 2)), rng.permutation(4)) for _ in range(3)]
    stored = Stored.write(tmp_path / "shards", found, matchings)
    with pytest.raises(ValueError, match="direct route"):
        fit_streamed(ms.mle_struct(route="frank_wolfe"), stored.sources())
    with pytest.raises(ValueError, match="no sources"):
        fit_streamed(ms.mle_struct(), [])
    with pytest.raises(ValueError, match="no routine computes marginals"):
        fit_streamed(ms.ssvm(), stored.sources())
    with pytest.raises(ValueError, match="written with another structure"):
        fit_streamed(learner(), Stored(stored.folder, lambda shape: ms.chain(4, 2)).sources())
    file = next((tmp_path / "shards").glob("*.rows.npy"))
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(ValueError, match="no file of stored examples"):
        fit_streamed(learner(), stored.sources())
    with pytest.raises(ValueError, match="holds no examples"):
        Stored(tmp_path / "nowhere", matchings).sources()
    with pytest.raises(FileExistsError):
        Stored.write(tmp_path / "shards", found, matchings)
