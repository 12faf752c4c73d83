"""Draws the pictures of the guide into docs/pictures: python docs/pictures.py.

All numbers come from the shipped generators, fitted here; nothing is drawn by hand.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import mlestruct as ms
from mlestruct import data, graphs, plot

HERE = Path(__file__).parent / "pictures"


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


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    gaps()
    matchings()
    labels()
