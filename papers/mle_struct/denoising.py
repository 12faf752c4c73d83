"""Denoising 64 × 64 pictures with tables of their own for every pixel and edge: time to learn.

Four pictures (smoothed noise above 0), each seen through normal noise and through mixtures of two
normals per label, after Kumar and Hebert; ``COUNT`` noisy copies train, as many test. A pixel has
a constant and a multiple of what is seen for each label, an edge a table. Reported: CPU seconds
until a method's own objective is within 1 % and .01 % of the optimum, which L-BFGS certifies.

``frank_wolfe`` takes the copies as blocks, with max-flow for a solver. ``lbfgs`` starts its
tree-reweighted messages from the last ones. ``double_loop`` is plain gradient ascent; in every
step messages converge from cold. ``double_loop, BP`` is the same with standard belief propagation,
whose likelihood is another: its errors are against where it ends itself, which nothing certifies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import mlestruct as ms
from mlestruct.inference.sum_product import SumProduct
from papers._run import Row, Setting
from papers.mle_struct.clock import clocked, reached, rounds_of
from papers.pixels import blurs

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
SIDE, SCALE, PICTURES, COUNT = 64, 4.0, 4, 10
LAMS = 100.0, 1.0  # the paper's, and one that lets the data say more
DEVIATION = 0.3
MIXTURES = ((0.08, 0.03), (0.46, 0.03)), ((0.55, 0.02), (0.42, 0.10))  # (mean, deviation) by label
LEVELS, TIGHT, ROUNDS = (1e-2, 1e-4), 1e-7, 300


DOUBLE, STANDARD = "double_loop", "double_loop, BP"


class Copies(NamedTuple):
    """A picture's labels, and what is seen of it again and again."""

    labels: Labels
    seen: list[Array]
    batch: ms.Batch[Any]
    features: ms.Sparse

    def restored(self, theta: Array) -> Labels:
        """The likeliest labels of every copy."""
        return np.array(ms.inference.best(self.batch, self.features.potentials(theta))[0])

    def error(self, theta: Array) -> float:
        """The share of wrong pixels in these."""
        return float(np.mean(self.restored(theta) != self.labels))


def denoising(setting: Setting) -> Iterator[Row]:
    """Every λ, noise and picture; then how many times Frank-Wolfe's time the others take."""
    side, pictures = (8, 1) if setting.quick else (SIDE, PICTURES)
    shown: list[list[Array]] = []
    few = copies(side, "normal", 0, 1)
    compared(few, few, LAMS[0])  # compiles, and proves the entropy concave
    for lam in LAMS:
        rows: list[Row] = []
        for noise in NOISES:
            for number in range(pictures):
                train, test = (copies(side, noise, number, part) for part in (0, 1))
                theta, found = compared(train, test, lam)
                restored = test.restored(theta)
                place = {"noise": noise, "picture": number, "lam": lam}
                rows += [place | row for row in found]
                yield from rows[-len(found) :]
                shown.append([x.reshape(side, side) for x in (test.seen[0], restored[0])])
        yield from ratios(rows, lam)
    if setting.plot is not None:
        draw(setting, shown[: 2 * pictures : pictures])


def normal(labels: Labels, rng: np.random.Generator) -> Array:
    return np.asarray(labels + DEVIATION * rng.standard_normal(labels.shape))


def bimodal(labels: Labels, rng: np.random.Generator) -> Array:
    chosen = np.array(MIXTURES)[labels, rng.integers(2, size=len(labels))]
    return rng.normal(chosen[:, 0], chosen[:, 1])


NOISES = {"normal": normal, "bimodal": bimodal}


def copies(side: int, noise: str, number: int, part: int) -> Copies:
    """The training (0) or test (1) copies of a picture."""
    smooth = np.random.default_rng([64, number]).standard_normal((side, side))
    labels = (blurs(smooth, [SCALE * side / SIDE]).ravel() > 0).astype(np.int64)
    rng = np.random.default_rng([number, part])
    seen = [NOISES[noise](labels, rng) for _ in range(COUNT)]
    graph = ms.grid(side, side)
    batch = ms.Batch.of(graph, [labels] * COUNT)
    return Copies(labels, seen, batch, ms.Sparse.of(batch, [untied(graph, x) for x in seen]))


def untied(graph: ms.FactorGraph, seen: Array) -> Any:
    """A weight for every entry of every table, and one for every label × what is seen."""
    multiple = sp.eye_array(graph.size, 2 * seen.size) @ sp.diags_array(np.repeat(seen, 2))
    return sp.hstack([sp.eye_array(graph.size), multiple], format="csr")


def compared(train: Copies, test: Copies, lam: float) -> tuple[Array, list[Row]]:
    """The optimal weights, and each method's seconds to both levels."""
    learner = ms.mle_struct(regulariser=lam, solver=ms.FrankWolfe(tol=TIGHT, rounds=ROUNDS))
    direct = rounds_of(learner, train.batch, train.features)
    theta, proof = direct[-1][1].theta, direct[-1][1].certificate
    asked = rounds_of(replace(learner, route="frank_wolfe"), train.batch, train.features)
    messages = learner.messages(learner.dual(train.batch, train.features))
    assert messages is not None
    standard = list(clocked(ascent(propagation(train.batch), train, lam)))
    own = standard[-1][1]
    runs = {
        "frank_wolfe": ((seconds, state.certificate.objective) for seconds, state in asked),
        "lbfgs": ((seconds, state.certificate.objective) for seconds, state in direct),
        DOUBLE: ((at, loop.value) for at, loop in clocked(ascent(messages, train, lam))),
        STANDARD: ((at, loop.value) for at, loop in standard),
    }
    rows = []
    for name, run in runs.items():
        ends = own.value if name == STANDARD else proof.objective
        rows.append(
            {
                "method": name,
                **reached(near(run, ends), LEVELS),
                "optimum": ends,
                "certificate": None if name == STANDARD else proof.relative,
                "test error": test.error(own.theta if name == STANDARD else theta),
            }
        )
    return theta, rows


def propagation(batch: ms.Batch[Any]) -> SumProduct:
    """Standard belief propagation, from cold."""
    return SumProduct.of(ms.Entropy.of(batch, 1.0, allow_nonconvex=True), takeover=False)


def near(run: Iterable[tuple[float, float]], optimum: float) -> Iterator[tuple[float, float]]:
    """(seconds, relative error) until the last level."""
    for seconds, value in run:
        error = abs(value / optimum - 1.0)
        yield seconds, error
        if error <= LEVELS[-1]:
            return


class Loop(NamedTuple):
    """A round of the outer loop: the likelihood, and its weights."""

    value: float
    theta: Array


def ascent(messages: Any, train: Copies, lam: float) -> Iterator[Loop]:
    """Gradient ascent with backtracking, until a step promises nothing; ``messages`` infer."""
    batch, features = train.batch, train.features
    assert batch.target is not None
    observed = features.moments(batch.target)

    def likelihood(theta: Array) -> tuple[float, Array]:
        log_z, tau, _ = messages.many(batch, features.potentials(theta))
        value = theta @ observed - log_z.sum() - 0.5 * lam * theta @ theta
        return float(value), observed - features.moments(tau) - lam * theta

    theta, step = np.zeros(features.d), 1.0 / lam
    value, slope = likelihood(theta)
    for _ in range(ROUNDS):
        yield Loop(value, theta)
        while (promise := step * slope @ slope) > TIGHT * abs(value):
            ahead = likelihood(theta + step * slope)
            if ahead[0] >= value + 0.1 * promise:
                break
            step *= 0.5
        else:
            return
        theta, (value, slope), step = theta + step * slope, ahead, 2.0 * step


def ratios(rows: list[Row], lam: float) -> Iterator[Row]:
    """Geometric means over the sets of a method's time over Frank-Wolfe's."""
    for method in ("lbfgs", DOUBLE, STANDARD):
        found: Row = {"lam": lam, "method": method, "against": "frank_wolfe"}
        for level in LEVELS:
            mine, theirs = (
                np.array([row[f"s to {level:g}"] for row in rows if row["method"] == name], float)
                for name in (method, "frank_wolfe")
            )
            found[f"times as long to {level:g}"] = float(np.exp(np.log(mine / theirs).mean()))
        yield found


def draw(setting: Setting, shown: list[list[Array]]) -> None:
    """What is seen, and the labels found in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.5 * len(shown) * 2, 2.6))
    panels = figure.subplots(1, 2 * len(shown))
    titles = [f"{noise} noise{what}" for noise in NOISES for what in ("", ", restored")]
    pictures = [picture for pair in shown for picture in pair]
    for ax, picture, title in zip(panels, pictures, titles, strict=True):
        ax.imshow(picture, cmap="gray")
        ax.set_title(title, fontsize=9)
        ax.set_axis_off()
    setting.save(figure, "mle_struct_denoising")
