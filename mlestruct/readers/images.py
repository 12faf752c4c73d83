"""What is around pixels, and noise, for models of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.lazy import getter
from mlestruct.structures.base import Array, as_count, as_number, as_numbers, refuse_made

__getattr__ = getter(__name__, {})


def windows(image: ArrayLike, radius: int, outside: float = 0.0) -> Array:
    """(rows, columns, (2r+1)² · channels): what every pixel sees around it, row by row."""
    pixels = _channels(image)
    radius, outside = as_count(radius, "radius"), as_number(outside, "outside")
    refuse_made(pixels.size * (2 * radius + 1) ** 2, f"radius {radius}")
    padded = np.pad(pixels, ((radius, radius), (radius, radius), (0, 0)), constant_values=outside)
    seen = np.lib.stride_tricks.sliding_window_view(
        padded, (2 * radius + 1, 2 * radius + 1), axis=(0, 1)
    )
    return np.moveaxis(seen, 2, 4).reshape(*pixels.shape[:2], -1).copy()


def coin_noise(image: ArrayLike, share: float, seed: Any) -> Array:
    """Every pixel of a 0/1 image replaced by a fair coin with chance ``share``."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is in 0..1, not {share}")
    rng, pixels = np.random.default_rng(seed), as_numbers(image, "pixels")
    hit = rng.random(pixels.shape) < share
    return np.where(hit, rng.integers(0, 2, pixels.shape), pixels)


def _channels(image: ArrayLike) -> Array:
    pixels = as_numbers(image, "pixels")
    if pixels.ndim not in (2, 3) or pixels.size == 0:
        raise ValueError(
            f"an image is (rows, columns) or (rows, columns, channels), not {pixels.shape}"
        )
    wrong = np.argwhere(~np.isfinite(pixels))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise ValueError(f"pixel {place} is {pixels[place]}")
    return pixels[:, :, None] if pixels.ndim == 2 else pixels
