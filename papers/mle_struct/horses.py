"""Horses: figure and ground of 264 photographs, by learners that differ in their inference.

Photographs of at most 40 pixels a side (means over ``BLOCK``² of the data's), 200 for training. A
pixel's features are its colour at four scales, gradient histograms and its place, these whitened;
which of ``COLOURS`` colours it is nearest to, and a constant; an edge's are a constant and one that
fades with contrast. λ is the paper's, per pixel. Reported: the share of wrong pixels, averaged over
the 64 test pictures, of the likeliest labels by each learner's own inference; and the CPU seconds
after which that stays within 10 % and 1 % of its last value.

``lbfgs`` and ``frank_wolfe`` are MLE-Struct; ``implicit`` fits converged beliefs, ``procedural``
those after ``SWEEPS`` sweeps; all of them count edges ½. ``pixels`` has no edges. All stop after
``ROUNDS``, Frank-Wolfe after ``PASSES`` over the pictures. The two fits of beliefs go on from where
``lbfgs`` ends, so its time and its errors are the first of theirs.

``horses_80`` is MLE-Struct alone, by both routes, on photographs as large as the data have them, 80
pixels a side. Their number and ``LARGE_PASSES`` were fixed after a hundred passes had been timed.
"""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import implicit, mle_struct, procedural
from papers._run import Row, Setting
from papers.mle_struct.clock import reached, rounds_of
from papers.pixels import blurs, centres, gradient_histograms, indicators

Array = NDArray[np.float64]
RHO, SWEEPS, COLOURS, LEVELS = 0.5, 5, 30, (0.1, 0.01)
NEAR = 1e-3  # of log-beliefs: enough to tell which label is likelier
PER_PIXEL = 3420.0 / (200 * 20_000)  # the paper's λ over its pixels: 200 × 10k to 40k
FAINT = 1e-3  # variance, of standardised features, below which whitening leaves a direction faint
BLOCK, SHOWN = 2, 4  # pixels of the data a side; pictures
LARGE, LARGE_PASSES = (10, 1), 400  # pictures, and their block
QUICK = 4, 4
ROUNDS, PASSES = 40, 1000
LEARNERS: dict[str, Any] = {
    "pixels": lambda **given: procedural(loss="ucl", iterations=0, begin=None, **given),
    "lbfgs": lambda **given: mle_struct(RHO, **given),
    "frank_wolfe": lambda **given: mle_struct(RHO, route="frank_wolfe", **given),
    "implicit": lambda **given: implicit(RHO, loss="ucl", **given),
    "procedural": lambda **given: procedural(RHO, loss="ucl", iterations=SWEEPS, **given),
}
MLE_STRUCT = ("lbfgs", "frank_wolfe")
AFTER = {"implicit": "lbfgs", "procedural": "lbfgs"}


class Part(NamedTuple):
    """Photographs and masks, all pixels' colours, and the model's view of them."""

    photos: list[Array]
    masks: list[NDArray[np.int64]]
    batch: ms.Batch[Any]
    features: ms.Tied

    def error(self, labels: Sequence[NDArray[np.bool_]]) -> float:
        """Wrong pixels of a picture, averaged over pictures."""
        return float(np.mean([np.mean(a != b) for a, b in zip(labels, self.masks, strict=True)]))


class Run(NamedTuple):
    """(CPU seconds, test error) along a fit; its weights, labels, rounds and relative gap."""

    curve: Sequence[tuple[float, float]] = ()
    theta: Array | None = None
    found: Sequence[NDArray[np.bool_]] = ()
    rounds: int = 0
    certificate: float = np.inf


def horses(setting: Setting) -> Iterator[Row]:
    """Every learner: its test error, and when it came near."""
    train, test = parts(setting.data("horses"), *(QUICK if setting.quick else (None, BLOCK)))
    runs = yield from learned(setting, train, test, LEARNERS, PASSES)
    if setting.plot is not None:
        draw(setting, test, {name: run.found for name, run in runs.items()})


def horses_80(setting: Setting) -> Iterator[Row]:
    """By messages and by Frank-Wolfe alone, 80 pixels a side: all test pictures, fewer others."""
    train, test = parts(setting.data("horses"), *(QUICK if setting.quick else LARGE))
    learners = {name: LEARNERS[name] for name in MLE_STRUCT}
    yield from learned(setting, train, test, learners, LARGE_PASSES)


def learned(
    setting: Setting, train: Part, test: Part, learners: Mapping[str, Any], passes: int
) -> Generator[Row, None, dict[str, Run]]:
    """A row for what learns nothing, and for each of these; what they found."""
    lam = PER_PIXEL * sum(mask.size for mask in train.masks)
    yield {"method": "all ground", "test error": test.error([m < 0 for m in test.masks])}
    small, none = (train.batch.select(range(2)), train.features.select(np.arange(2))), Run()
    runs: dict[str, Run] = {}
    for name, make in learners.items():
        make(solver=ms.FrankWolfe(rounds=1)).fit(*small)  # kernels are compiled
        rounds = 5 if setting.quick else passes if name == "frank_wolfe" else ROUNDS
        learner = make(regulariser=lam, solver=ms.FrankWolfe(tol=1e-5, rounds=rounds))
        run = runs[name] = followed(learner, train, test, runs.get(AFTER.get(name, ""), none))
        seconds, error = run.curve[-1]
        yield {
            "method": name,
            "test error": error,
            **reached([(at, abs(e / error - 1.0)) for at, e in run.curve], LEVELS),
            "seconds": seconds,
            "rounds": run.rounds,
            "certificate": run.certificate,
            "lam": lam,
        }
    return runs


def followed(learner: Any, train: Part, test: Part, before: Run) -> Run:
    """Test errors now and then during a fit that starts from the weights of ``before``."""
    curve, start, last = list(before.curve), before.theta, 0.0
    spent = curve[-1][0] if curve else 0.0
    for seconds, state in rounds_of(learner, train.batch, train.features, start):
        if state.done or state.round >= last:
            found = segmented(learner, state.theta, test)
            curve.append((spent + seconds, test.error(found)))
            last = 1.3 * state.round + 1
    return Run(curve, state.theta, found, state.round, state.certificate.relative)


def parts(folder: Path, count: int | None, block: int) -> tuple[Part, Part]:
    """Training and test pictures; colours and scales are the training pictures'."""
    with (folder / "list.csv").open() as file:
        listed = [(row["name"], row["split"]) for row in csv.DictReader(file)]
    seen = {
        part: [reads(folder / part, name, block) for name, of in listed if of == part][:count]
        for part in ("train", "test")
    }
    palette = centres(np.concatenate([p.reshape(-1, 3) for p, _ in seen["train"]]), COLOURS)
    rows = {part: [described(photo) for photo, _ in pairs] for part, pairs in seen.items()}
    mean, turn = whitening(np.concatenate(rows["train"]))
    found = []
    for part, pairs in seen.items():
        photos, masks = [p for p, _ in pairs], [m for _, m in pairs]
        batch = ms.Batch.of([ms.grid(*m.shape) for m in masks], [m.ravel() for m in masks])
        nodes = [
            np.hstack([(x - mean) @ turn, nearest(photo, palette), np.ones((len(x), 1))])
            for x, photo in zip(rows[part], photos, strict=True)
        ]
        edges = [contrasts(photo) for photo in photos]
        found.append(Part(photos, masks, batch, ms.Tied.of(batch, nodes, edges)))
    return found[0], found[1]


def reads(folder: Path, name: str, block: int) -> tuple[Array, NDArray[np.int64]]:
    """A photograph and its mask, made smaller."""
    from matplotlib.image import imread

    photo, mask = (
        smaller(imread(folder / kind / f"{name}.png"), block) for kind in ("images", "masks")
    )
    return photo, (mask[:, :, 0] >= 0.5).astype(np.int64)


def smaller(image: NDArray[Any], block: int) -> Array:
    """Means over blocks of pixels; what is left at the right and below is left out."""
    rows, columns = (side // block for side in image.shape[:2])
    blocks = image[: block * rows, : block * columns].reshape(rows, block, columns, block, -1)
    return np.asarray(blocks.mean(axis=(1, 3)), dtype=float)


def described(photo: Array) -> Array:
    """(pixels × features): colours at four scales, gradients, place."""
    rows, columns = photo.shape[:2]
    y, x = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    place = np.stack([y, x, y * y, x * x, x * y], axis=2)
    found = [blurs(photo), gradient_histograms(photo), place]
    return np.concatenate(found, axis=2).reshape(rows * columns, -1)


def whitening(rows: Array) -> tuple[Array, Array]:
    """The rows' mean, and the matrix that makes their columns uncorrelated and as large as 1."""
    share, turns = np.linalg.eigh(np.corrcoef(rows.T))
    return rows.mean(axis=0), turns / np.sqrt(share + FAINT) / rows.std(axis=0)[:, None]


def nearest(photo: Array, palette: Array) -> Array:
    return np.asarray(indicators(photo.reshape(-1, 3), palette).toarray())


def contrasts(photo: Array) -> Array:
    """(edges × 2): a constant, and exp(−d²/mean) of the colours' distance; right, then down."""
    steps = [np.diff(photo, axis=1), np.diff(photo, axis=0)]
    squared = np.concatenate([(step**2).sum(axis=2).ravel() for step in steps])
    return np.stack([np.ones(len(squared)), np.exp(-squared / squared.mean())], axis=1)


def segmented(learner: Any, theta: Array, part: Part) -> list[NDArray[np.bool_]]:
    """The likelier label of every pixel."""
    scores = part.features.potentials(theta)
    believe = getattr(learner, "believe", None)
    if believe is None:
        tree = mle_struct(RHO)
        routine = tree.messages(tree.dual(part.batch, part.features))
        assert isinstance(routine, SumProduct)
        tau = replace(routine, residual=NEAR).many(part.batch, scores).tau
    else:
        tau = believe(part.batch, scores)
    places = [part.batch.coordinates(m).start for m in range(len(part.masks))]
    return [
        tau[at : at + 2 * mask.size].reshape(*mask.shape, 2)[..., 1] > 0.5
        for at, mask in zip(places, part.masks, strict=True)
    ]


def draw(setting: Setting, test: Part, shown: dict[str, Sequence[Any]]) -> None:
    """A few test photographs, their masks, and what three learners find."""
    from matplotlib.figure import Figure

    columns = {"photograph": test.photos, "truth": test.masks}
    columns |= {name: shown[name] for name in ("pixels", "lbfgs", "procedural")}
    figure = Figure(figsize=(1.7 * len(columns), 1.4 * SHOWN))
    grid = figure.subplots(SHOWN, len(columns), squeeze=False)
    chosen = np.linspace(0, len(test.masks) - 1, SHOWN).astype(int)
    for row, m in zip(grid, chosen, strict=True):
        for ax, (name, pictures) in zip(row, columns.items(), strict=True):
            ax.imshow(pictures[m], cmap="gray", interpolation="nearest")
            ax.set_axis_off()
            ax.set_title(name if m == chosen[0] else "", fontsize=9)
    setting.save(figure, "mle_struct_horses")
