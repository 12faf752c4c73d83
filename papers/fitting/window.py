"""Binary digits at 50 % noise with what is around each pixel, and coefficients that follow it.

``clusters`` add which of a hundred kinds of window a pixel is in the middle of; number, width and
smoothing were chosen among eight settings on the last three training images of each digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct import images
from mlestruct.features import per_table
from papers._run import Row, Setting
from papers.fitting.digits import both, load, noisy
from papers.fitting.entropies import with_tables
from papers.fitting.methods import Array, Ints, Part, budget, convex, convex_beliefs, fit, implicit
from papers.pixels import blurs, gradient_histograms, indicators
from papers.pixels import centres as centres_of

RADIUS, SCALES = 4, (1.0, 2.0, 4.0)
BLURS = slice((2 * RADIUS + 1) ** 2, (2 * RADIUS + 1) ** 2 + len(SCALES))
WINDOW_FIT: dict[str, Any] = {"regulariser": 3.0, "solver": ms.FrankWolfe(tol=1e-4, rounds=100)}
SMOOTH, CLUSTERS, SEEN = 1.5, 100, 6000
UNET = 0.0572  # trained on the same 90 images


def described(image: Array) -> Array:
    """(pixels × features): a 9 × 9 window, blurs, gradient histograms and a constant."""
    parts = [
        images.windows(2 * image - 1, RADIUS),
        blurs(2 * image - 1, SCALES),
        gradient_histograms(image, SCALES, bins=4),
        np.ones(image.shape),
    ]
    return np.concatenate([p.reshape(image.size, -1) for p in parts], axis=1)


def between(rows: Array, ends: Ints) -> Array:
    """A constant, and how much the blurs at the two ends of an edge differ."""
    apart = np.abs(rows[ends[:, 0], BLURS] - rows[ends[:, 1], BLURS])
    return np.hstack([np.ones((len(ends), 1)), apart])


def smoothed(image: Array) -> Array:
    """(pixels × 81): windows of the blurred image."""
    blurred = blurs(2 * image - 1, (SMOOTH,))
    return images.windows(blurred, RADIUS).reshape(image.size, -1)


def kinds_of_window(pictures: Array) -> Array:
    """Centres of some of the training images' windows."""
    rows = np.concatenate([smoothed(x) for x in pictures])
    some = np.random.default_rng(0).choice(len(rows), SEEN, replace=False)
    return centres_of(rows[some], CLUSTERS)


def featured(part: Part, pictures: Array, centres: Array | None) -> dict[str, Part]:
    """The same labels with these features: coefficients given, one per kind of table, or linear."""
    rows = [described(x) for x in pictures]
    ends = part.batch.structure(0).scope.reshape(-1, 2)
    blurred = [np.hstack([r[:, BLURS], np.ones((len(r), 1))]) for r in rows]
    edges = [between(r, ends) for r in rows]
    if centres is not None:
        near = [indicators(smoothed(x), centres).toarray() for x in pictures]
        rows = [np.hstack(pair) for pair in zip(rows, near, strict=True)]
    features = ms.Tied.of(part.batch, rows, edges)
    kinds = {
        "fixed": None,
        "per table": with_tables(part.batch),
        "linear": per_table(part.batch, blurred),
    }
    return {kind: Part(part.batch, features, entropy) for kind, entropy in kinds.items()}


def window(setting: Setting) -> Iterator[Row]:
    """Messages, then implicit fitting with every kind of coefficient; then both with clusters."""
    arrays, how = load(setting), budget(setting, WINDOW_FIT)
    pictures = [noisy(arrays, name, 50, 0) for name in ("train", "test")]
    for name, centres in (("windows", None), ("clusters", kinds_of_window(pictures[0]))):
        train, test = (
            featured(part, x, centres) for part, x in zip(both(arrays, 50), pictures, strict=True)
        )
        start = convex(train["fixed"], how)
        for method in ("convex", "ucl-4", "uquad-4"):
            theta, believe = fit(method, train["fixed"], start, how)
            yield row(name, method, test["fixed"].errors(believe(test["fixed"], theta)))
        for kind, part in train.items():
            theta = implicit("ucl", part, start, how)
            error = test[kind].errors(convex_beliefs(test[kind], theta))
            yield row(name, f"ucl, coefficients {kind}", error)


def row(features: str, method: str, error: float) -> Row:
    """Beside a U-Net of the same images."""
    found = {"features": features, "method": method, "error": error}
    return {**found, "U-Net": UNET, "as good": bool(error <= UNET)}
