"""Draws the pictures of the guide into docs/pictures: python docs/pictures.py [NAME…].

All numbers come from the shipped generators, fitted here or by the page's own blocks; nothing is
drawn by hand. Names are those of the functions below; all without one.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import mlestruct as ms
from mlestruct import data, graphs, plot

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

from tests.test_docs import blocks  # noqa: E402


def page(name: str, count: int) -> dict[str, Any]:
    """What the first blocks of a page of the manual define."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    code = [body for mark, language, body, _ in blocks(text) if language == "python" and not mark]
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for body in code[:count]:
            exec(compile(body, name, "exec"), found)
    return found


def keep(name: str, width: float = 5.0, height: float = 4.0):
    """New axes, saved under the name once drawn."""
    figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
    yield ax
    figure.savefig(HERE / f"{name}.png", dpi=110)
    plt.close(figure)


def gaps() -> None:
    """The same fit by both routes, against calls and against seconds."""
    train = data.landmarks(sizes=(10, 0, 0), n=12, d=20)[0]
    fits = {}
    for route in ("frank_wolfe", "direct"):
        model = ms.MatchingModel(solver=route, tol=1e-4, max_rounds=300)
        model.fit(train.X[:1], train.y[:1])  # compiles, so that seconds are those of the fit
        fits[route] = model.fit(train.X, train.y)
    for against in ("calls", "seconds"):
        for ax in keep(f"gap_{against}"):
            for route, model in fits.items():
                plot.gap(model.history_, against, ax=ax, label=route)
            ax.set_xscale("log" if against == "calls" else "linear")


def matchings() -> None:
    """One pair of views unseen in training: probabilities, truth, the most expected right."""
    train, _, test = data.landmarks(sizes=(30, 0, 100), n=12, d=20)
    model = ms.MatchingModel(tol=1e-4).fit(train.X, train.y)
    tau = model.predict_marginals(test.X[:1])[0]
    for ax in keep("matrix"):
        plot.matrix(tau, outcome=test.y[0], ax=ax)
        ax.set_title("circled: the truth")
    structure = ms.BipartiteMatching(12)
    names = [f"{side}{k}" for side in "ab" for k in range(12)]
    decided = model.predict(test.X[:1], decision="expected")[0]
    for ax in keep("matching", 5.0, 5.0):
        plot.matching(graphs.to_networkx(structure, tau, decided, names, least=0.02), ax=ax)
    for ax in keep("weights", 5.0, 5.0):
        plot.weights(model.summary(model.intervals(train.X, train.y)), ax=ax)
    for ax in keep("calibration", 4.5, 4.5):
        plot.calibration(model.calibration(test.X, test.y), ax=ax)


def labels() -> None:
    """A sequence and a picture unseen in training."""
    train, _, test = data.sequences()
    model = ms.SequenceModel(tol=1e-6).fit(train.X, train.y)
    for ax in keep("sequence", 6.5, 3.0):
        plot.sequence(model.predict_marginals(test.X[:1])[0], outcome=test.y[0], ax=ax)
        ax.set_title("circled: the truth")
    train, _, test = data.grids()
    pictures = ms.GridModel(alpha=0.1).fit(train.X, train.y)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
    shown = pictures.predict_marginals(test.X[:1])[0]
    clean = test.y[0].reshape(shown.shape[:2])
    for ax, title, table in (
        (axes[0], "seen", np.stack([1 - test.X[0], test.X[0]], axis=2)),
        (axes[1], "probability", shown),
        (axes[2], "truth", np.stack([1 - clean, clean], axis=2)),
    ):
        plot.picture(table, ax=ax)
        ax.set_title(title)
    figure.savefig(HERE / "grid.png", dpi=110)
    plt.close(figure)


def effects() -> None:
    """What the shipped example's answers weigh, with intervals: the guide to room-mates."""
    found = page("roommates", 1)
    for ax in keep("effects", 5.5, 4.2):
        found["model"].summary().plot(ax)
        ax.set_title("invented students, 200 pairs")


def pairs_needed() -> None:
    """How often the right pair is picked, by the pairs learned from: eight drawn years."""
    counts = (5, 10, 25, 50, 100, 200)
    right = np.empty((8, len(counts)))
    for seed, row in enumerate(right):
        people, pairs, _ = data.roommates(n=400, years=2, seed=seed)
        years = [{n: c[people["year"] == y] for n, c in people.items()} for y in (1, 2)]
        first = pairs["year"] == 1
        known = list(zip(pairs["id_a"][first], pairs["id_b"][first], strict=True))
        for k, count in enumerate(counts):
            model = ms.RoommateModel(cohort="year", same="gender", ordinal="q*", alpha=10.0)
            model.fit(years[0], known[:count])
            row[k] = 100 * model.evaluate(years[1], pairs).auc["marginal"]
    for ax in keep("pairs_needed", 5.5, 3.4):
        ax.fill_between(counts, right.min(axis=0), right.max(axis=0), alpha=0.25, lw=0)
        ax.plot(counts, right.mean(axis=0), marker="o")
        ax.axhline(50, color="grey", lw=1)
        ax.text(counts[0], 50.5, "guessing", color="grey")
        ax.set_xscale("log")
        ax.set_xticks(counts, list(map(str, counts)))
        ax.minorticks_off()
        ax.set_xlabel("pairs learned from")
        ax.set_ylabel("right, of 100")


def regions() -> None:
    """A new picture for the model of the page on graphs: seen, labelled by region, the truth."""
    found, rng = page("graphs", 3), np.random.default_rng(3)
    colours, tops = found["COLOURS"], np.array([8, 17])
    scene = (np.arange(24)[:, None] > tops).sum(axis=1)[:, None] + np.zeros((1, 32), dtype=int)
    seen = colours[scene] + 0.2 * rng.standard_normal((24, 32, 3))
    places, centres = np.indices((24, 32)).reshape(2, -1).T, rng.uniform((0, 0), (24, 32), (60, 2))
    cell = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    graph = ms.Graph.from_regions(np.unique(cell, return_inverse=True)[1].reshape(24, 32), seen)
    guess = graph.paint(found["segments"].predict([graph])[0]).astype(int)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
    shown = (seen.clip(0, 1), colours[guess], colours[scene])
    for ax, title, pixels in zip(axes, ("seen", "labelled", "truth"), shown, strict=True):
        ax.imshow(pixels)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig(HERE / "regions.png", dpi=110)
    plt.close(figure)


def packed() -> None:
    """Learned scores of parcels beside those that they were packed by: a solver of one's own."""
    found = page("own_solver", 1)
    vans = found["vans"][40:]
    learned = np.concatenate(found["model"].potentials(vans))
    true = -np.concatenate([van["cost"] for van in vans])
    went = np.concatenate(found["packed"][40:]).astype(bool)
    for ax in keep("packed", 4.8, 4.0):
        for chosen, marker, label in ((went, "o", "packed"), (~went, "x", "left behind")):
            ax.scatter(true[chosen], learned[chosen], marker=marker, s=18, label=label)
        ax.set_xlabel("worth to the packers, which nobody told")
        ax.set_ylabel("learned score")
        ax.legend()


DRAWN = (gaps, matchings, labels, effects, pairs_needed, regions, packed)

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for draw in DRAWN:
        if len(sys.argv) == 1 or draw.__name__ in sys.argv[1:]:
            draw()
