"""Five-class images, generated, with a fifth of the training pixels unlabelled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import mlestruct as ms
from mlestruct.families.fitting.losses import LOSSES
from mlestruct.learners import LEARNERS
from mlestruct.learners.primal import only_seen
from papers._run import Row, Setting
from papers.fitting.digits import drawing
from papers.fitting.entropies import with_tables
from papers.fitting.methods import (
    Array,
    Ints,
    Part,
    budget,
    convex_beliefs,
    fit,
    implicit,
    inference,
    truncated_beliefs,
)
from papers.pixels import blurs

SIDE, CLASSES, SEEDS, SCENES, HIDDEN = 24, 5, 8, 20, 0.2
COLOUR_SD = 1.2
ALONE, FITTED = "per pixel", "uquad, entropy fitted"
THESIS = {  # smoothed errors on street scenes, which are not these
    ALONE: 0.333,
    "pseudo": 0.847,
    "uquad-1": 0.252,
    "uquad-2": 0.264,
    "uquad": 0.287,
    FITTED: 0.239,
}
INFERENCE = {name: inference(name) for name in ("pseudo", "uquad-1", "uquad-2", "uquad")}
INFERENCE = {ALONE: truncated_beliefs(0), **INFERENCE, FITTED: convex_beliefs}
FIT: dict[str, Any] = {"regulariser": 1.0, "solver": ms.FrankWolfe(tol=1e-4, rounds=60)}


def scene(rng: np.random.Generator) -> tuple[Array, Ints]:
    """Eight Voronoi cells of five classes; three colour channels, classes' means plus noise."""
    middles, kinds = rng.uniform(0, SIDE, (SEEDS, 2)), rng.integers(CLASSES, size=SEEDS)
    place = np.stack(np.mgrid[:SIDE, :SIDE], axis=-1)
    nearest = ((place[:, :, None] - middles) ** 2).sum(axis=-1).argmin(axis=-1)
    y = kinds[nearest]
    hues = np.random.default_rng(5).uniform(-1, 1, (CLASSES, 3))
    return hues[y] + COLOUR_SD * rng.standard_normal((SIDE, SIDE, 3)), y


def scenes_of(count: int, hidden: float, seed: int) -> Part:
    """Colours smoothed at three scales; −1 for a hidden label."""
    rng = np.random.default_rng([55, seed])
    drawn = [scene(rng) for _ in range(count)]
    graph = ms.grid(SIDE, SIDE, CLASSES)
    labels = [np.where(rng.random(y.size) < hidden, -1, y.ravel()) for _, y in drawn]
    batch = only_seen(ms.Batch.of(graph, list(map(ms.Partial, labels))))
    rows = [blurs(x, (0, 1, 2)).reshape(SIDE * SIDE, -1) for x, _ in drawn]
    nodes = [np.hstack([r, np.ones((len(r), 1))]) for r in rows]
    return Part(batch, ms.Tied.of(batch, nodes))


def scenes(setting: Setting) -> Iterator[Row]:
    """As the thesis's 6.5: only the univariate quadratic loss is trained, from the per-pixel fit.

    Errors, smoothed errors (uclass) and quadratic losses per test pixel; a picture of the labels.
    """
    count, how = 1 if setting.quick else SCENES, budget(setting, FIT)
    train, test = scenes_of(count, HIDDEN, 0), scenes_of(count, 0.0, 1)
    with_entropy = [replace(part, entropy=with_tables(part.batch)) for part in (train, test)]
    shown, theta = {"truth": labels_of(test, test.batch.target)}, {}

    def learn(name: str) -> Row:
        clock = time.process_time()
        if name == ALONE:
            pixel = LEARNERS["procedural"](loss="uquad", iterations=0, begin=None, **how)
            found = pixel.fit(train.batch, train.features).theta
        elif name == FITTED:
            found = implicit("uquad", with_entropy[0], theta["uquad"], how)
        else:
            found, _ = fit(name, train, theta[ALONE], how)
        return {"theta": found.tolist(), "CPU s": time.process_time() - clock}

    for name, believe in INFERENCE.items():
        part = setting.once(f"scenes, {name}", partial(learn, name))
        if part is not None:
            theta[name] = np.array(part["theta"])
            tau = believe(with_entropy[1] if name == FITTED else test, theta[name])
            shown[name] = labels_of(test, tau)
            cost = {"thesis's uclass": THESIS[name], "CPU s": part["CPU s"]}
            yield {"method": name, **losses(test, tau), **cost}
    setting.save(drawing(shown, "tab10", 9), "fitting_scenes")


def labels_of(part: Part, tau: Any) -> Array:
    """The likeliest class of every pixel of every scene."""
    batch = part.batch
    each = [batch.structure(m).decode(tau[batch.coordinates(m)]) for m in range(len(batch))]
    return np.array(each).reshape(-1, SIDE, SIDE)


def losses(test: Part, tau: Array) -> Row:
    """The error, the smoothed error and the quadratic loss per variable."""
    units = LOSSES["uquad"].units(test.batch)
    each = {loss: LOSSES[loss](tau, units)[0] / len(units.truth) for loss in ("uclass", "uquad")}
    return {"error": test.errors(tau), **each}
