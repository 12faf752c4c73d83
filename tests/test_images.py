"""Image features: each is what it says on images small enough to check by hand."""

import numpy as np
import pytest

from mlestruct import images


def test_windows_list_what_lies_around(rng):
    """Entry (dr, dc, channel) of pixel (r, c) is pixel (r + dr, c + dc), 0 outside."""
    image = rng.standard_normal((4, 5, 2))
    seen = images.windows(image, 1).reshape(4, 5, 3, 3, 2)
    for r, c, dr, dc in np.ndindex(4, 5, 3, 3):
        row, column = r + dr - 1, c + dc - 1
        inside = 0 <= row < 4 and 0 <= column < 5
        expected = image[row, column] if inside else np.zeros(2)
        np.testing.assert_array_equal(seen[r, c, dr, dc], expected)
    assert images.windows(image[:, :, 0], 0).shape == (4, 5, 1)


def test_noise_has_its_rate_and_its_seed(rng):
    image = np.zeros((200, 200))
    noisy = images.coin_noise(image, 0.5, 3)
    assert noisy.mean() == pytest.approx(0.25, abs=0.02)
    np.testing.assert_array_equal(noisy, images.coin_noise(image, 0.5, 3))
    np.testing.assert_array_equal(images.coin_noise(image, 0.0, 1), image)
