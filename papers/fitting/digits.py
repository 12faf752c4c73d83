"""Binary digits under noise: every method, and iterations at test time.

``mnist10k``, 90 training and 90 test images of 28 × 28: a 2 × 2 table per pixel and one shared
table per edge; the error is the share of test pixels whose most likely belief is wrong. The first
noise draw is the stored one, the others numpy default_rng([2009, q, 0 for train and 1 for test,
draw]).

``ink`` has the same images with the thesis's ink: white is what is above 48, so that 15.8 % of the
test pixels are, which is what its convex likelihood errs on at 70 % noise (all black); all draws
are coins of the same seeds. ``strokes`` draws some digits, the noise and what is made of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct import images
from mlestruct.families.fitting.losses import LOSSES
from papers._run import Row, Setting
from papers.fitting.methods import Array, Part, budget, convex, fit, truncated_beliefs

NOISES, DRAWS, QUICK = (10, 30, 50, 70), 5, 9
PARTS = ("train", "test")
INK, FIRST = 48, 1  # no draw of ``ink`` is stored
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-5, rounds=150)}
FITTED = ("ucl", "ccl", "uquad", "cquad")
INKED = ("convex", *LOSSES, *(f"{loss}-4" for loss in LOSSES))
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
    train, test = (tied(noisy(arrays, part, noise, draw), arrays[f"y_{part}"]) for part in PARTS)
    return train, test


def tied(x: Array, y: Any) -> Part:
    """A 2 × 2 table for the pixels, and one for the edges."""
    batch = ms.Batch.of(ms.grid(*y.shape[1:]), [labels.ravel().astype(int) for labels in y])
    return Part(batch, ms.Tied.of(batch, np.stack([1 - x.ravel(), x.ravel()], axis=1)))


def digits(setting: Setting) -> Iterator[Row]:
    """Every method at every noise: mean and spread over draws, beside the thesis's figure."""
    draws = range(1 if setting.quick else DRAWS)
    yield from table(setting, "digits", load(setting), METHODS, draws)


def ink(setting: Setting) -> Iterator[Row]:
    """Every loss by inference's optimum and by four iterations, with the thesis's ink."""
    draws = range(FIRST, FIRST + (1 if setting.quick else DRAWS))
    yield from table(setting, "ink", inked(setting), INKED, draws)


def inked(setting: Setting) -> Any:
    """The images that are stored, white above INK; no noise is stored of these."""
    with np.load(setting.data("mnist10k") / "mnist10k.npz") as file:
        x, stored = file["x"], load(setting)
    return {f"y_{part}": (x[stored[f"{part}_index"]] > INK).astype(np.uint8) for part in PARTS}


def table(
    setting: Setting, name: str, arrays: Any, methods: Sequence[str], draws: Iterable[int]
) -> Iterator[Row]:
    """A row per noise and method, over the draws that were run."""
    noises = NOISES[2:3] if setting.quick else NOISES
    found: dict[Any, list[Row]] = {(noise, method): [] for noise in noises for method in methods}
    for draw in draws:
        for noise in noises:
            draw_of = Draw(arrays, noise, draw, budget(setting, FIT))
            for method in methods:
                part = setting.once(
                    f"{name}, {noise} %, draw {draw}, {method}", partial(draw_of.by, method)
                )
                found[noise, method] += [] if part is None else [part]
    for (noise, method), parts in found.items():
        if parts:
            yield summed(noise, method, parts)


@dataclass(frozen=True)
class Draw:
    """Images under one draw of the noise, and how to fit."""

    arrays: Any
    noise: int
    number: int
    how: dict[str, Any]

    @cached_property
    def parts(self) -> tuple[Part, Part, Array]:
        """To train and to test; where fits start."""
        train, test = both(self.arrays, self.noise, self.number)
        return train, test, convex(train, self.how)

    def by(self, method: str) -> Row:
        """A method's error, and the CPU seconds of its fit and test."""
        train, test, start = self.parts
        clock = time.process_time()
        theta, believe = fit(method, train, start, self.how)
        return {"error": test.errors(believe(test, theta)), "CPU s": time.process_time() - clock}


def summed(noise: int, method: str, parts: Sequence[Row]) -> Row:
    """Over draws; ``sd from it``: how many standard deviations of a draw above the thesis's."""
    errors = [part["error"] for part in parts]
    said = THESIS.get(method, (None,) * len(NOISES))[NOISES.index(noise)]
    mean, spread = float(np.mean(errors)), float(np.std(errors, ddof=1 if errors[1:] else 0))
    return {
        "noise %": noise,
        "method": method,
        "error": mean,
        "spread": spread,
        "draws": len(errors),
        "thesis": said,
        "sd from it": None if said is None or spread == 0 else (mean - said) / spread,
        "CPU s": float(np.mean([part["CPU s"] for part in parts])),
    }


def strokes(setting: Setting) -> Iterator[Row]:
    """A picture: digits, half of their pixels coins, and three ways to clean them."""
    arrays, how = load(setting), budget(setting, FIT)
    train, test = both(arrays, 50)
    shape, start = arrays["y_test"].shape[1:], convex(train, how)
    shown = {"digit": arrays["y_test"], "50 % coins": noisy(arrays, "test", 50, 0)}
    for method in ("convex", "ucl", "ucl-4"):
        theta, believe = fit(method, train, start, how)
        tau = believe(test, theta).reshape(len(arrays["y_test"]), -1)
        shown[method] = tau[:, 1 : 2 * np.prod(shape) : 2].reshape(-1, *shape)
        yield {"method": method, "error": test.errors(believe(test, theta))}
    setting.save(drawing(shown), "fitting_digits")


def drawing(shown: dict[str, Array], cmap: str = "gray_r", most: int = 1) -> Any:
    """A row of every kind, a column for each of nine pictures."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.1 * len(shown)), layout="constrained")
    axes = figure.subplots(len(shown), 9)
    for row, (name, pictures) in zip(axes, shown.items(), strict=True):
        step = len(pictures) // 9
        for axis, picture in zip(row, pictures[:: max(step, 1)], strict=False):
            axis.imshow(picture, cmap=cmap, vmin=0, vmax=most)
        for axis in row:
            axis.set(xticks=[], yticks=[])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return figure


def iterations(setting: Setting) -> Iterator[Row]:
    """Univariate likelihood trained with k iterations, tested with 1 to 10 (50 % noise)."""
    train, test = both(load(setting), 50)
    start = convex(train, FIT)
    for k in range(1, 5):
        theta, _ = fit(f"ucl-{k}", train, start, FIT)
        tested = {f"test {t}": test.errors(truncated_beliefs(t)(test, theta)) for t in range(1, 11)}
        yield {"trained": k, **tested}
