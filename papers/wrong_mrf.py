"""Estimating the "wrong" Markov random field (2005): the wrong model, learned and used alike.

p(x) ∝ exp(Σ θ_st x_s x_t) on spins, θ_st ~ U[0, β]; Z_s given x_s is Gaussian, and
Y_s = αZ_s + √(1−α²)W_s is seen. A surrogate learns its parameters from infinite data (exact
moments), and predicts Z from Y. The loss is the % by which the mean squared error exceeds the Bayes
predictor's, whose parameters and inference are exact.

``surfaces`` loss over coupling β and signal α for independent sites, BP and TRW(½), both ensembles.
``crossed`` any estimate with any predictor: are errors of the two made to cancel?
``bound`` Theorem 1's bound beside the measured loss.
``graphs`` other graphs than the grid.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mlestruct.families.joint.prediction import Mixture, beliefs, predict
from mlestruct.inference.exact import exact
from mlestruct.inference.sampling import sample
from mlestruct.learners.tree_reweighted import match_moments
from mlestruct.structures import FactorGraph, grid
from mlestruct.structures.spanning_trees import edge_appearance
from papers._run import Row, Setting, main

Array = NDArray[np.float64]
ENSEMBLES = {"A": ((0.0, 0.0), (1.0, 9.0)), "B": ((-1.0, 1.0), (0.5, 0.5))}
METHODS = {"independent": 0.0, "bp": 1.0, "trw": 0.5}


def spins(graph: FactorGraph, couplings: Array) -> Array:
    """Scores of Σ θ_st x_s x_t with x = −1 in state 0 and +1 in state 1."""
    tables = np.outer(couplings, [1.0, -1.0, -1.0, 1.0]).ravel()
    return np.concatenate([np.zeros(graph.node_start[-1]), tables])


@dataclass(frozen=True)
class Trial:
    """One truth: its scores, what each surrogate learns from its moments, one labelling."""

    theta: Array
    learned: Mapping[str, Array]
    labels: Array


def trials(graph: FactorGraph, beta: float, rhos: Mapping[str, Any], count: int) -> list[Trial]:
    """Trial t has the same uniform numbers at every β."""
    found = []
    for t in range(count):
        rng = np.random.default_rng([2005, t])
        theta = spins(graph, beta * rng.random(graph.n_factors))
        mean = exact(graph, theta).tau
        learned = {name: match_moments(graph, mean, rho).theta for name, rho in rhos.items()}
        labels = sample(graph, theta, 1, rng).outcomes()[0]
        found.append(Trial(theta, learned, np.asarray(labels)))
    return found


def observe(labels: Array, mixture: Mixture, t: int) -> tuple[Array, Array]:
    """Z given the labels, and Y given Z."""
    rng = np.random.default_rng([5, t])
    spread = np.sqrt(np.asarray(mixture.sigma2))[labels]
    z = np.asarray(mixture.nu)[labels] + spread * rng.standard_normal(len(labels))
    noise = np.sqrt(1 - mixture.alpha**2) * rng.standard_normal(len(labels))
    return z, mixture.alpha * z + noise


class Losses:
    """Excess over the Bayes predictor's squared error; E‖ẑ − z‖² − E‖ẑ* − z‖² = E‖ẑ − ẑ*‖²."""

    def __init__(self) -> None:
        self.bayes: list[float] = []
        self.excess: list[float] = []

    def add(self, predicted: Array, best: Array, z: Array) -> None:
        self.bayes.append(float(((best - z) ** 2).mean()))
        self.excess.append(float(((predicted - best) ** 2).mean()))

    def percent(self) -> tuple[float, float]:
        """The loss and its standard error (delta method)."""
        bayes, excess = np.array(self.bayes), np.array(self.excess)
        ratio = excess.mean() / bayes.mean()
        spread = (excess - ratio * bayes).std() / np.sqrt(len(bayes))
        return float(100 * ratio), float(100 * spread / bayes.mean())


def losses(
    graph: FactorGraph, cell: list[Trial], mixture: Mixture, rhos: Mapping[str, Any]
) -> dict[str, tuple[float, float]]:
    """Every method with its own estimate, on the same observations."""
    found = {name: Losses() for name in rhos}
    for t, trial in enumerate(cell):
        z, y = observe(trial.labels, mixture, t)
        best = predict(graph, trial.theta, mixture, y, None).z
        for name, rho in rhos.items():
            found[name].add(predict(graph, trial.learned[name], mixture, y, rho).z, best, z)
    return {name: loss.percent() for name, loss in found.items()}


def surfaces(setting: Setting) -> Iterator[Row]:
    """The paper's figure: 8 × 8 grid, 100 trials a cell. At α = 1 Z is seen and nobody errs."""
    graph, count = grid(8, 8, 2), 4 if setting.quick else 100
    betas = np.array([0.2, 1.0]) if setting.quick else np.linspace(0, 1, 11)
    alphas = np.array([0.3, 0.9]) if setting.quick else np.linspace(0, 0.9, 10)
    table = np.empty((len(ENSEMBLES), len(METHODS), len(betas), len(alphas)))
    for i, beta in enumerate(betas):
        cell = trials(graph, beta, METHODS, count)
        for e, (ensemble, parameters) in enumerate(ENSEMBLES.items()):
            for j, alpha in enumerate(alphas):
                found = losses(graph, cell, Mixture(alpha, *parameters), METHODS)
                table[e, :, i, j] = [found[name][0] for name in METHODS]
                row: Row = {"ensemble": ensemble, "beta": float(beta), "alpha": float(alpha)}
                for name in METHODS:
                    row |= {name: found[name][0], f"{name}_se": found[name][1]}
                yield row
    if setting.plot is not None:
        draw(setting, table, betas, alphas)


def draw(setting: Setting, table: Array, betas: Array, alphas: Array) -> None:
    """Six heat maps on one scale: B above A, as in the paper."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True, squeeze=False)
    top = float(np.ceil(np.percentile(table, 99)))
    for row, ensemble in enumerate(("B", "A")):
        for column, name in enumerate(METHODS):
            axis = axes[row, column]
            values = table[list(ENSEMBLES).index(ensemble), column]
            picture = axis.pcolormesh(alphas, betas, values, vmin=0, vmax=top, shading="nearest")
            axis.set_title(f"{ensemble}, {name} (worst {values.max():.1f} %)", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("signal α")
    for axis in axes[:, 0]:
        axis.set_ylabel("coupling β")
    figure.colorbar(picture, ax=axes, label="% above the Bayes error", extend="max")
    setting.save(figure, "wrong_mrf")
    plt.close(figure)


def crossed(setting: Setting) -> Iterator[Row]:
    """Every estimate with every predictor, 8 × 8 grid."""
    graph, count = grid(8, 8, 2), 3 if setting.quick else 100
    predictors: dict[str, Any] = {"exact": None, **METHODS}
    for beta in (0.5,) if setting.quick else (0.5, 1.0):
        cell = trials(graph, beta, METHODS, count)
        for ensemble, parameters in ENSEMBLES.items():
            for alpha in (0.6,) if setting.quick else (0.3, 0.6):
                mixture = Mixture(alpha, *parameters)
                for name in ("truth", *METHODS):
                    found = {predictor: Losses() for predictor in predictors}
                    for t, trial in enumerate(cell):
                        z, y = observe(trial.labels, mixture, t)
                        best = predict(graph, trial.theta, mixture, y, None).z
                        theta = trial.theta if name == "truth" else trial.learned[name]
                        for predictor, rho in predictors.items():
                            found[predictor].add(predict(graph, theta, mixture, y, rho).z, best, z)
                    row: Row = {"ensemble": ensemble, "beta": beta, "alpha": alpha, "theta": name}
                    yield row | {f"{p} predicts": found[p].percent()[0] for p in predictors}


def bound(setting: Setting) -> Iterator[Row]:
    """Theorem 1 on 4 × 4: the loss of TRW(½), its bound, and the stability L it rests on.

    L is the largest ‖∇²A − ∇²B‖ on the segment from no observations to those of the trial, which
    is all the proof needs; it is taken over nine points of the segment.
    """
    side, count = (3, 2) if setting.quick else (4, 20)
    graph = grid(side, side, 2)
    for beta in (0.5,) if setting.quick else (0.25, 0.5, 1.0):
        cell = trials(graph, beta, {"trw": 0.5}, count)
        for ensemble, parameters in ENSEMBLES.items():
            for alpha in (0.3, 0.6):
                mixture = Mixture(alpha, *parameters)
                rows = [_theorem(graph, trial, mixture, t) for t, trial in enumerate(cell)]
                loss, limit, stability = np.array(rows).T
                yield {
                    "ensemble": ensemble,
                    "beta": beta,
                    "alpha": alpha,
                    "loss": float(loss.mean()),
                    "bound": float(limit.mean()),
                    "L": float(stability.max()),
                    "violations": int((loss > limit + 1e-9).sum()),
                }


def _theorem(graph: FactorGraph, trial: Trial, mixture: Mixture, t: int) -> tuple[float, ...]:
    """(loss per node, its bound, L) of one trial."""
    _, y = observe(trial.labels, mixture, t)
    best = predict(graph, trial.theta, mixture, y, None).z
    theta = trial.learned["trw"]
    loss = float(((predict(graph, theta, mixture, y, 0.5).z - best) ** 2).mean())
    likelihood = mixture.log_likelihood(y)
    gamma = likelihood[:, 1] - likelihood[:, 0]
    stability = 0.0
    for share in np.linspace(0, 1, 9):
        true = _sensitivity(lambda s: exact(graph, s).tau, graph, trial.theta, share * gamma)
        wrong = _sensitivity(lambda s: beliefs(graph, s, 0.5), graph, theta, share * gamma)
        stability = max(stability, float(np.linalg.norm(true - wrong, 2)))
    omega, nu = mixture.omega, np.asarray(mixture.nu)
    means = (1 - mixture.alpha * omega) * nu
    mean, slope = abs(means[1] - means[0]), abs(omega[1] - omega[0])
    size = min(1.0, stability * float(np.linalg.norm(gamma)) / np.sqrt(len(y)))
    limit = size**2 * mean**2 + size * slope**2 * np.sqrt((y**4).mean())
    limit += 2 * size * mean * slope * np.sqrt((y**2).mean())
    return loss, float(limit), stability


def _sensitivity(
    marginals: Callable[[Array], Array], graph: FactorGraph, theta: Array, gamma: Array
) -> Array:
    """How p(x_s = 1) moves with the score of x_t = 1, by central differences."""
    ones = graph.node_start[:-1] + 1
    at = theta.copy()
    at[ones] += gamma
    columns = []
    for one in ones:
        step = np.zeros_like(at)
        step[one] = 1e-4
        columns.append((marginals(at + step)[ones] - marginals(at - step)[ones]) / 2e-4)
    return np.stack(columns, axis=1)


def graphs(setting: Setting) -> Iterator[Row]:
    """A cycle, a complete graph, a random cubic one; TRW with spanning-tree weights."""
    kinds = {
        "cycle of 20": nx.cycle_graph(20),
        "complete, 10 nodes": nx.complete_graph(10),
        "random cubic, 20 nodes": nx.random_regular_graph(3, 20, seed=2005),
    }
    for kind, drawn in kinds.items():
        edges = np.array(sorted(tuple(sorted(edge)) for edge in drawn.edges))
        graph = FactorGraph([2] * len(drawn), [tuple(edge) for edge in edges.tolist()])
        rhos: dict[str, Any] = {**METHODS, "trw": edge_appearance(len(drawn), edges)}
        for beta in (0.5,) if setting.quick else (0.25, 0.5, 1.0):
            cell = trials(graph, beta, rhos, 3 if setting.quick else 100)
            for ensemble, parameters in ENSEMBLES.items():
                found = losses(graph, cell, Mixture(0.6, *parameters), rhos)
                row: Row = {"graph": kind, "ensemble": ensemble, "beta": beta, "alpha": 0.6}
                for name in rhos:
                    row |= {name: found[name][0], f"{name}_se": found[name][1]}
                yield row


EXPERIMENTS = {"surfaces": surfaces, "crossed": crossed, "bound": bound, "graphs": graphs}

if __name__ == "__main__":
    sys.exit(main("wrong_mrf", EXPERIMENTS))
