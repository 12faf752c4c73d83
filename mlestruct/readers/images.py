"""Features of pixels (windows, colour, clusters) and noise, for models of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mlestruct.lazy import getter
from mlestruct.structures.base import Array, as_count, as_number, as_numbers, refuse_made

__getattr__ = getter(__name__, {})

WIDEST = 10_000  # pixels: a Gaussian's standard deviation


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


def blurs(image: ArrayLike, scales: Sequence[float] = (0, 1, 2, 4)) -> Array:
    """(rows, columns, scales · channels): every channel, or colour, smoothed at several scales."""
    from scipy.ndimage import gaussian_filter

    pixels = _channels(image)
    each = [gaussian_filter(pixels, (scale, scale, 0), mode="nearest") for scale in _scales(scales)]
    return np.concatenate(each, axis=2)


def centres(rows: ArrayLike, count: int, seed: int = 0) -> Array:
    """(count, p): k-means of feature rows, after its ++ start."""
    from scipy.cluster.vq import kmeans2

    points, count = _rows(rows, "rows"), as_count(count, "count", 1)
    different = len(np.unique(points, axis=0))
    if count > different:
        raise ValueError(f"{count} centres of {len(points)} rows, {different} of them different")
    found: Array = kmeans2(points, count, minit="++", rng=np.random.default_rng(seed))[0]
    return found


def indicators(rows: ArrayLike, centres: ArrayLike) -> sp.csr_array:
    """(rows × centres) with a 1 at the nearest centre of each row."""
    from scipy.cluster.vq import vq

    points, known = _rows(rows, "rows"), _rows(centres, "centres")
    if points.shape[1] != known.shape[1] or len(known) == 0:
        raise ValueError(f"rows of shape {points.shape} beside centres of shape {known.shape}")
    nearest = vq(points, known)[0]
    shape = (len(nearest), len(known))
    return sp.csr_array((np.ones(len(nearest)), nearest, np.arange(len(nearest) + 1)), shape=shape)


def coin_noise(image: ArrayLike, share: float, seed: Any) -> Array:
    """Every pixel of a 0/1 image replaced by a fair coin with chance ``share``."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is in 0..1, not {share}")
    rng, pixels = np.random.default_rng(seed), as_numbers(image, "pixels")
    hit = rng.random(pixels.shape) < share
    return np.where(hit, rng.integers(0, 2, pixels.shape), pixels)


def _scales(scales: Sequence[float]) -> list[float]:
    """Standard deviations of Gaussians, in pixels."""
    given = as_numbers(scales, "scales")
    if given.ndim != 1 or len(given) == 0 or not ((given >= 0) & (given <= WIDEST)).all():
        raise ValueError(f"scales are a list of numbers in 0..{WIDEST}, not {scales}")
    return [float(scale) for scale in given]


def _rows(given: ArrayLike, what: str) -> Array:
    rows = as_numbers(given, what)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(f"{what} are (rows, features) of finite numbers, not {rows.shape}")
    return rows


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
