"""Binary digits under noise: every method, and iterations at test time.

``mnist10k``, 90 training and 90 test images of 28 × 28: a 2 × 2 table per pixel and one shared
table per edge; the error is the share of test pixels whose most likely belief is wrong. The first
noise draw is the stored one, the others numpy default_rng([2009, q, 0 for train and 1 for test,
draw]).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct import images
from papers._run import Row, Setting
from papers.fitting.methods import Array, Part, budget, convex, fit, truncated_beliefs

NOISES, DRAWS, QUICK = (10, 30, 50, 70), 5, 9
NEAR = {10: 0.005, 30: 0.005, 50: 0.005, 70: 0.015}
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-5, rounds=150)}
FITTED = ("ucl", "ccl", "uquad", "cquad")
METHODS = (
    "pseudo",
    "lbp",
    "convex",
    *FITTED,
    *(f"{loss}-{k}" for loss in FITTED for k in range(1, 5)),
)
THESIS = {
    "convex": (0.0092, 0.0304, 0.0716, 0.158),
    "ucl": (0.0104, 0.0319, 0.0710, 0.135),
    "ucl-4": (0.0087, 0.0285, 0.0599, 0.105),
    "uquad": (None, None, 0.0700, 0.134),
    "uquad-4": (None, None, 0.0601, 0.106),
}


def load(setting: Setting) -> Any:
    """Images by the names they are stored under; a few of them where that will do."""
    with np.load(setting.data("mnist10k") / "binary_digits.npz") as file:
        count = QUICK if setting.quick else None
        return {name: file[name][:count] for name in file.files}


def noisy(arrays: Any, part: str, noise: int, draw: int) -> Array:
    """Images of which a share of the pixels are coins."""
    if draw == 0:
        return np.asarray(arrays[f"x_{part}_{noise}"], dtype=float)
    seed = [2009, noise, int(part == "test"), draw]
    return images.coin_noise(arrays[f"y_{part}"], noise / 100, seed)


def both(arrays: Any, noise: int, draw: int = 0) -> tuple[Part, Part]:
    """Training and test images."""
    train, test = (
        tied(noisy(arrays, part, noise, draw), arrays[f"y_{part}"]) for part in ("train", "test")
    )
    return train, test


def tied(x: Array, y: Any) -> Part:
    """A 2 × 2 table for the pixels, and one for the edges."""
    batch = ms.Batch.of(ms.grid(*y.shape[1:]), [labels.ravel().astype(int) for labels in y])
    return Part(batch, ms.Tied.of(batch, np.stack([1 - x.ravel(), x.ravel()], axis=1)))


def digits(setting: Setting) -> Iterator[Row]:
    """Every method at every noise: mean and spread over draws, beside the thesis's figure."""
    arrays, draws, how = load(setting), 1 if setting.quick else DRAWS, budget(setting, FIT)
    for noise in NOISES[2:3] if setting.quick else NOISES:
        found = [one for draw in range(draws) for one in drawn(arrays, noise, draw, how)]
        yield from summed(noise, found)


def drawn(
    arrays: Any, noise: int, draw: int, how: dict[str, Any]
) -> Iterator[tuple[str, float, float]]:
    """(method, test error, CPU seconds) on one draw of the noise."""
    train, test = both(arrays, noise, draw)
    start = convex(train, how)
    for method in METHODS:
        clock = time.process_time()
        theta, believe = fit(method, train, start, how)
        yield method, test.errors(believe(test, theta)), time.process_time() - clock


def summed(noise: int, each: list[tuple[str, float, float]]) -> Iterator[Row]:
    """A row per method."""
    for method in METHODS:
        errors = [error for name, error, _ in each if name == method]
        said = THESIS.get(method, (None,) * len(NOISES))[NOISES.index(noise)]
        yield {
            "noise %": noise,
            "method": method,
            "error": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "draws": len(errors),
            "thesis": said,
            "reached": None if said is None else bool(np.mean(errors) <= said + NEAR[noise]),
            "CPU s": sum(seconds for name, _, seconds in each if name == method) / len(errors),
        }


def iterations(setting: Setting) -> Iterator[Row]:
    """Univariate likelihood trained with k iterations, tested with 1 to 10 (50 % noise)."""
    train, test = both(load(setting), 50)
    start = convex(train, FIT)
    for k in range(1, 5):
        theta, _ = fit(f"ucl-{k}", train, start, FIT)
        tested = {f"test {t}": test.errors(truncated_beliefs(t)(test, theta)) for t in range(1, 11)}
        yield {"trained": k, **tested}
