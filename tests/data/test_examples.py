"""Generated examples follow their stated models, at sizes of real use."""

import numpy as np
import pytest

from mlestruct import data


def test_landmarks_are_shuffled_views_of_each_other():
    train, valid, test = data.landmarks(sizes=(3, 1, 2), n=30, d=60, seed=4)
    assert [len(part) for part in (train, valid, test)] == [3, 1, 2]
    for features, partner in zip(train.X, train.y, strict=True):
        assert features.shape == (30, 30, 60)
        assert sorted(partner) == list(range(30))
        right = features[np.arange(30), partner].sum(axis=1)
        assert right.mean() > features.sum(axis=2).mean()


def test_sequences_stick_and_show_their_labels():
    train, _, _ = data.sequences(sizes=(400, 0, 0), states=4, d=12)
    stays = np.concatenate([y[1:] == y[:-1] for y in train.y])
    assert stays.mean() == pytest.approx(0.7 + 0.3 / 4, abs=5 * 0.5 / np.sqrt(len(stays)))
    assert {len(x) for x in train.X} == set(range(5, 21))
    X, y = np.concatenate(train.X), np.concatenate(train.y)
    centre = np.stack([X[y == k].mean(axis=0) for k in range(4)])
    nearest = ((X[:, None] - centre) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.5 < (nearest == y).mean() < 0.95  # neighbours have something to add


def test_grids_are_pictures_with_flipped_pixels_of_any_size():
    train, _, _ = data.grids(sizes=(30, 0, 0), side=28, flips=0.25)
    X, y = np.array(train.X), np.array(train.y).reshape(-1, 28, 28)
    assert set(np.unique(X)) == {0.0, 1.0}
    assert (y != X).mean() == pytest.approx(0.25, abs=5 * 0.43 / np.sqrt(X.size))
    assert 0.05 < y.mean() < 0.7
    same = (y[:, 1:] == y[:, :-1]).mean()
    assert same > 0.9  # smooth: what a grid model can use


def test_routes_are_paths_that_prefer_cheap_streets():
    paths, (train, _, _) = data.routes(sizes=(200, 0, 0), side=6)
    taken, all_streets = [], []
    for features, route in zip(train.X, train.y, strict=True):
        assert paths.contains(paths.encode(route))
        taken.append(features[route].mean(axis=0))
        all_streets.append(features.mean(axis=0))
    saved = np.mean(all_streets, axis=0) - np.mean(taken, axis=0)
    assert (saved > 0).all()
    assert (np.diff(saved) < 0).all()  # the weights fall from −1 to −.2


@pytest.mark.parametrize("make", [data.landmarks, data.sequences, data.grids])
def test_a_seed_is_a_data_set(make):
    first, again, other = (make(sizes=(2, 0, 0), seed=seed)[0] for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(first.X, again.X, strict=True))
    assert not np.array_equal(first.X[0], other.X[0])
