"""Features of pixels: gradients around them, colours at several scales, the nearest centre."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2, vq
from scipy.ndimage import gaussian_filter

Array = NDArray[np.float64]


def gradient_histograms(image: Array, scales: Sequence[float] = (1, 2, 4), bins: int = 8) -> Array:
    """(rows, columns, scales · bins): how much gradient points where, around every pixel.

    Gradients of the image smoothed by half of a scale, shared between the two nearest of ``bins``
    directions, and summed under a Gaussian of that scale; channels are added up.
    """
    pixels, out = image.reshape(*image.shape[:2], -1), []
    for scale in scales:
        smooth = gaussian_filter(pixels, (scale / 2, scale / 2, 0), mode="nearest")
        down, right = np.gradient(smooth, axis=(0, 1))
        strength, turn = np.hypot(down, right), np.arctan2(down, right) / (2 * np.pi) * bins % bins
        for k in range(bins):
            near = np.abs((turn - k + bins / 2) % bins - bins / 2)
            share = (strength * np.maximum(1.0 - near, 0.0)).sum(axis=2)
            out.append(gaussian_filter(share, scale, mode="nearest"))
    return np.stack(out, axis=2)


def blurs(image: Array, scales: Sequence[float] = (0, 1, 2, 4)) -> Array:
    """(rows, columns, scales · channels): every channel, or colour, smoothed at several scales."""
    pixels = image.reshape(*image.shape[:2], -1)
    each = [gaussian_filter(pixels, (scale, scale, 0), mode="nearest") for scale in scales]
    return np.concatenate(each, axis=2)


def centres(rows: Array, count: int, seed: int = 0) -> Array:
    """(count, p): k-means of feature rows, after its ++ start."""
    found: Array = kmeans2(rows, count, minit="++", rng=np.random.default_rng(seed))[0]
    return found


def indicators(rows: Array, centres: Array) -> sp.csr_array:
    """(rows × centres) with a 1 at the nearest centre of each row."""
    nearest = vq(rows, centres)[0]
    shape = (len(nearest), len(centres))
    return sp.csr_array((np.ones(len(nearest)), nearest, np.arange(len(nearest) + 1)), shape=shape)
