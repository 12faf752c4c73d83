"""Grids: labels of images with ties between neighbours, against enumeration and independence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mlestruct as ms
from mlestruct import data
from mlestruct.inference.exact import exact


@pytest.fixture(scope="module")
def pictures():
    return data.grids(sizes=(10, 0, 10), side=8)


@pytest.fixture(scope="module")
def fitted(pictures):
    return ms.GridModel(tol=1e-3, alpha=0.1).fit(pictures[0].X, pictures[0].y)


def test_ties_clean_noisy_pictures(pictures, fitted):
    _, _, test = pictures
    noise = np.mean([(x.ravel() != y).mean() for x, y in zip(test.X, test.y, strict=True)])
    assert 1 - fitted.score(test.X, test.y) < 0.9 * noise
    assert fitted.predict(test.X)[0].shape == (8, 8)
    marginals = fitted.predict_marginals(test.X)[0]
    assert marginals.shape == (8, 8, 2)
    np.testing.assert_allclose(marginals.sum(axis=2), 1.0, atol=1e-8)
    assert fitted.certificate_.bound.startswith("upper")


def test_scores_are_the_sum_of_tied_weights(rng):
    """potentials · outcome = node weights by pixel + edge weights by pair, added up by hand."""
    X = [rng.standard_normal((2, 3, 2)) for _ in range(3)]
    y = [np.array([["a", "b", "c"], ["c", "a", "a"]]) for _ in X]
    model = ms.GridModel(contrast=True, tol=0.1).fit(X, y)
    assert model.names()[:3] == ["feature 0: a", "feature 0: b", "feature 0: c"]
    assert model.names()[-1] == "alike: c → c"
    weight = dict(zip(model.names(), model.coef_, strict=True))
    x, labels = X[0], y[0]
    total = 0.0
    for i, j in itertools.product(range(2), range(3)):
        features = {"feature 0": x[i, j, 0], "feature 1": x[i, j, 1], "constant": 1.0}
        total += sum(v * weight[f"{name}: {labels[i, j]}"] for name, v in features.items())
        for k, l in ((i, j + 1), (i + 1, j)):
            if k < 2 and l < 3:
                pair = f"{labels[i, j]} → {labels[k, l]}"
                fade = np.exp(-((x[i, j] - x[k, l]) ** 2).sum() / model.contrast_)
                total += weight[pair] + fade * weight[f"alike: {pair}"]
    outcome = ms.grid(2, 3, 3).encode(np.searchsorted(model.classes_, labels).ravel())
    assert model.potentials(X)[0] @ outcome == pytest.approx(total)
    assert set(np.unique(model.predict(X)[0])) <= {"a", "b", "c"}


def test_samples_are_exact_where_the_width_allows(pictures, fitted):
    _, _, test = pictures
    draws = fitted.sample(test.X[:1], count=2000, random_state=1)
    assert draws.exact
    truth = exact(ms.grid(8, 8), fitted.potentials(test.X[:1])[0]).tau[:128].reshape(8, 8, 2)
    mean = np.mean([picture == 1 for picture in draws.outcomes[0]], axis=0)
    np.testing.assert_allclose(mean, truth[:, :, 1], atol=5 * 0.5 / np.sqrt(2000))


def test_one_pixel_is_logistic_regression(rng):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    x = rng.standard_normal((60, 2))
    labels = (x @ [1.0, -1.0] + rng.standard_normal(60) > 0).astype(int)
    X, y = list(x[:, None, None, :]), list(labels[:, None, None])
    model = ms.GridModel(intercept=False, alpha=1.0, tol=1e-9).fit(X, y)
    # two weights per feature with λ/2 (a² + b²), b = −a: λ is halved for their difference
    plain = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10).fit(x, labels)
    np.testing.assert_allclose(
        [tau[0, 0, 1] for tau in model.predict_marginals(X)],
        plain.predict_proba(x)[:, 1],
        atol=1e-5,
    )


@pytest.mark.parametrize("around", [4, 8])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_neighbours_are_the_pixels_that_touch(around, shape):
    from mlestruct.estimators.graph import neighbours

    places = list(itertools.product(*map(range, shape)))
    near = [
        (a, b) for a, b in itertools.combinations(range(len(places)), 2)
        if (d := np.abs(np.subtract(places[a], places[b]))).max() == 1
        and (around == 8 or d.sum() == 1)
    ]  # fmt: skip
    found = [tuple(sorted(pair)) for pair in neighbours(*shape, around == 8).tolist()]
    assert sorted(found) == near
    x = np.zeros((*shape, 1))
    y = np.arange(x.size).reshape(shape) % 2
    model = ms.GridModel(neighbours=around, tables="symmetric").fit([x, x], [y, 1 - y])
    assert model.predict([x])[0].shape == shape
    with pytest.raises(ValueError, match="neighbours is 4 or 8, not 6"):
        ms.GridModel(neighbours=6).fit([x], [y])


def test_bytes_are_shares_of_255(rng, tmp_path):
    y = [rng.integers(0, 2, (3, 4)) for _ in range(4)]
    X = [(100 * labels + rng.integers(0, 60, (3, 4))).astype(np.uint8) for labels in y]
    model = ms.GridModel(contrast=True).fit(X, y)
    floats = [x / 255 for x in X]
    twin = ms.GridModel(contrast=True).fit(floats, y)
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    colours = [np.stack([x] * 3, axis=2) for x in X]
    assert ms.GridModel().fit(colours, y).n_features_in_ == 3
    with pytest.raises(ValueError, match=r"example 1: pixels are numbers, but .* bytes \(uint8\)"):
        model.predict([X[0], floats[1]])
    with pytest.raises(ValueError, match="example 0: pixels are bytes"):
        twin.predict(X)
    with pytest.raises(ValueError, match="divide uint8 pixels by 255 yourself"):
        ms.GridModel().fit([X[0], floats[1]], y[:2])
    model.save(tmp_path / "model.npz")
    assert (ms.GridModel.load(tmp_path / "model.npz").predict(X)[0] == model.predict(X)[0]).all()
