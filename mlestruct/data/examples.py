"""Generated examples of real-use sizes: documented models, seedable, nothing downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.inference.sampling import sample
from mlestruct.structures.base import as_count
from mlestruct.structures.graph import grid_edges
from mlestruct.structures.networks import Paths

Split = tuple["Examples", "Examples", "Examples"]


@dataclass(frozen=True)
class Examples:
    """A list of feature arrays and the list of observed outcomes."""

    X: list[NDArray[Any]]
    y: list[Any]

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: slice) -> Examples:
        return Examples(self.X[part], self.y[part])


def _split(examples: Examples, sizes: tuple[int, int, int]) -> Split:
    a, b = sizes[0], sizes[0] + sizes[1]
    return examples[:a], examples[a:b], examples[b : b + sizes[2]]


def landmarks(
    sizes: tuple[int, int, int] = (30, 20, 40), n: int = 30, d: int = 60, seed: int = 0
) -> Split:
    """Two views of the same n landmarks, to be matched: (train, validation, test).

    Each landmark has d descriptors; the second view adds noise of standard deviation 1.5 to 5,
    different for every descriptor, and shuffles the landmarks. Features of a pair are minus the
    squared differences divided by n, so equal weights are the natural guess and weights
    1/variance would be right.
    """
    n, d = as_count(n, "n", least=1), as_count(d, "d", least=1)
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.uniform(np.log(1.5), np.log(5.0), d))
    X, y = [], []
    for _ in range(sum(sizes)):
        first, place = rng.standard_normal((n, d)), rng.permutation(n)
        second = np.empty((n, d))
        second[place] = first + noise * rng.standard_normal((n, d))
        X.append(-((first[:, None] - second[None]) ** 2) / n)
        y.append(place)
    return _split(Examples(X, y), sizes)


def sequences(
    sizes: tuple[int, int, int] = (60, 20, 40), states: int = 4, d: int = 12, seed: int = 0
) -> Split:
    """Label sequences of 5 to 20 positions from a sticky Markov chain, seen through noisy features.

    A label stays with probability .7; feature vectors are Gaussian around its own centre (norm
    about 1.2, unit noise), so neighbours help. (train, validation, test).
    """
    states, d = as_count(states, "states", least=1), as_count(d, "d", least=1)
    rng = np.random.default_rng(seed)
    centre = 1.2 * rng.standard_normal((states, d)) / np.sqrt(d)
    X, y = [], []
    for _ in range(sum(sizes)):
        length = int(rng.integers(5, 21))
        labels = [int(rng.integers(states))]
        while len(labels) < length:
            labels.append(labels[-1] if rng.random() < 0.7 else int(rng.integers(states)))
        X.append(centre[labels] + rng.standard_normal((length, d)))
        y.append(np.array(labels))
    return _split(Examples(X, y), sizes)


def routes(
    sizes: tuple[int, int, int] = (100, 30, 60), side: int = 6, d: int = 5, seed: int = 0
) -> tuple[Paths, Split]:
    """Routes through a side × side street lattice, right and down only: (structure, splits).

    Each street has d features (length, climb, …); a traveller takes the path with the best sum of
    weighted features and a Gumbel-distributed taste per path: exactly the path model, weights
    −1, −.8, −.6, … times 1.
    """
    side, d = as_count(side, "side", least=2), as_count(d, "d", least=1)
    rng, weights = np.random.default_rng(seed), -1.0 + 0.2 * np.arange(d)
    paths = Paths(np.concatenate(grid_edges(side, side)[1:]), 0, side * side - 1)
    X = [rng.random((paths.size, d)) for _ in range(sum(sizes))]
    y = [sample(paths, features @ weights, 1, rng).outcomes()[0] for features in X]
    return paths, _split(Examples(X, y), sizes)


def grids(
    sizes: tuple[int, int, int] = (20, 5, 20), side: int = 12, flips: float = 0.25, seed: int = 0
) -> Split:
    """Noisy pictures of a bar and a disc: X is (side, side) of 0/1 pixels, y the clean labels.

    Bar and disc have random places and sizes; each pixel of X is flipped with probability
    ``flips``. An outcome lists the clean pixels row by row. (train, validation, test).
    """
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:side, :side]
    X, y = [], []
    for _ in range(sum(sizes)):
        centre, radius = rng.uniform(0.2 * side, 0.8 * side, 2), rng.uniform(0.15, 0.3) * side
        disc = (row - centre[0]) ** 2 + (column - centre[1]) ** 2 <= radius**2
        start, width = rng.integers(0, side - 2), rng.integers(2, 4)
        bar = (row >= start) & (row < start + width)
        clean = disc | (bar if rng.random() < 0.5 else bar.T)
        X.append((clean ^ (rng.random((side, side)) < flips)).astype(float))
        y.append(clean.ravel().astype(np.int64))
    return _split(Examples(X, y), sizes)
