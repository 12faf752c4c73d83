"""Implicit and procedural fitting (2009): learn for the beliefs that inference will produce.

``digits`` denoises binary digits (``mnist10k``, 90 training and 90 test images, 28 × 28): a 2 × 2
table per pixel and one shared table per edge; the error is the share of test pixels whose most
likely belief is wrong. The first noise draw is the stored one, the others numpy default_rng([2009,
q, 0 for train and 1 for test, draw]). ``entropies``, ``iterations`` and ``window`` take the same
images at 50 % noise. ``chains`` are the three sets of section 3.7; ``scenes`` five-class images
with a fifth of the pixels unlabelled. What is generated was fixed before its first run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms
from mlestruct import images
from mlestruct.features.per_table import PerTable
from mlestruct.inference.condensed import Condensed, Newton
from mlestruct.inference.sum_product import SumProduct
from mlestruct.inference.truncated import Messages, beliefs
from mlestruct.learners import LEARNERS
from mlestruct.learners.implicit import coefficients, convex_likelihood
from mlestruct.learners.pseudo_likelihood import partly_observed
from mlestruct.objectives.losses import LOSSES, errors, variables
from papers._run import Row, Setting, main

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Believe = Callable[[ms.Batch[Any], list[Array]], Array]

NOISES, DRAWS = (10, 30, 50, 70), 5
NEAR = {10: 0.005, 30: 0.005, 50: 0.005, 70: 0.015}
A = coefficients(0.01)  # of variables, 1 on pairs: the thesis's
FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-5, rounds=150)}
FITTED = ("ucl", "ccl", "uquad", "cquad")
METHODS = (
    "pseudo",
    "lbp",
    "convex",
    *FITTED,
    *(f"{loss}-{k}" for loss in FITTED for k in range(1, 5)),
)
THESIS = {
    "convex": (0.0092, 0.0304, 0.0716, 0.158),
    "ucl": (0.0104, 0.0319, 0.0710, 0.135),
    "ucl-4": (0.0087, 0.0285, 0.0599, 0.105),
    "uquad": (None, None, 0.0700, 0.134),
    "uquad-4": (None, None, 0.0601, 0.106),
}
UNET, AIM = 0.0572, 0.050


@dataclass(frozen=True)
class Part:
    """Labelled graphs with features."""

    batch: ms.Batch[Any]
    features: Any

    def errors(self, tau: Array) -> float:
        return errors(tau, variables(self.batch))

    def scores(self, theta: Array) -> Array:
        return self.features.potentials(theta[: self.features.d])


def convex_beliefs(batch: ms.Batch[Any], sets: list[Array], rho: Any = A) -> Array:
    """At the optimum of the convex free energy; a second set are its coefficients."""
    inference = Condensed()
    weight = sets[1] if len(sets) > 1 else inference.weights(batch, rho)
    return inference.minimise(batch, sets[0], weight).tau


def loopy_beliefs(batch: ms.Batch[Any], sets: list[Array]) -> Array:
    """Belief propagation, a hundred sweeps at most."""
    entropy = ms.Entropy.of(batch, 1.0, allow_nonconvex=True)
    return (
        SumProduct.of(entropy, sweeps=100, residual=1e-6, takeover=False).many(batch, sets[0]).tau
    )


def truncated_beliefs(k: int) -> Believe:
    return lambda batch, sets: beliefs(batch, sets, Messages(), k, whole=False)


def fit(
    method: str, train: Part, start: Array, how: dict[str, Any] | None = None
) -> tuple[Array, Believe]:
    """Weights by a method of the thesis, and the inference they are used with."""
    how = FIT if how is None else how
    if method == "convex":
        return start, convex_beliefs
    if method in ("pseudo", "lbp"):
        name, more = ("pseudo_likelihood", {}) if method == "pseudo" else ("lbp", LBP)
        return LEARNERS[name](**how, **more).fit(train.batch, train.features).theta, loopy_beliefs
    loss, _, k = method.partition("-")
    if k:
        learner: Any = LEARNERS["procedural"](loss=loss, iterations=int(k), **how)
        believe: Believe = truncated_beliefs(int(k))
    else:
        learner, believe = LEARNERS["implicit"](A, loss=loss, **how), convex_beliefs
    learner = replace(learner, begin=lambda batch, features: start)
    return learner.fit(train.batch, train.features).theta, believe


LBP = {"sweeps": 50, "residual": 1e-5, "restarts": 2}


def convex(train: Part) -> Array:
    return convex_likelihood(A, **FIT).fit(train.batch, train.features).theta


# Digits


def load(setting: Setting) -> Any:
    with np.load(setting.data("mnist10k") / "binary_digits.npz") as file:
        return dict(file)


def noisy(arrays: Any, part: str, noise: int, draw: int) -> Array:
    if draw == 0:
        return arrays[f"x_{part}_{noise}"].astype(float)
    seed = [2009, noise, int(part == "test"), draw]
    return images.coin_noise(arrays[f"y_{part}"], noise / 100, seed)


def digits_of(arrays: Any, part: str, noise: int, draw: int, count: int | None) -> Part:
    x, y = noisy(arrays, part, noise, draw)[:count], arrays[f"y_{part}"][:count]
    batch = ms.Batch.of(ms.grid(*y.shape[1:]), [labels.ravel().astype(int) for labels in y])
    return Part(batch, ms.Tied.of(batch, np.stack([1 - x.ravel(), x.ravel()], axis=1)))


def digits(setting: Setting) -> Iterator[Row]:
    """Every method at every noise: mean and spread over draws, beside the thesis's figure."""
    arrays, draws = load(setting), 1 if setting.quick else DRAWS
    count = 9 if setting.quick else None
    noises = NOISES[2:3] if setting.quick else NOISES
    for noise in noises:
        found: dict[str, list[float]] = {method: [] for method in METHODS}
        seconds = dict.fromkeys(METHODS, 0.0)
        for draw in range(draws):
            train, test = (
                digits_of(arrays, part, noise, draw, count) for part in ("train", "test")
            )
            start = convex(train)
            for method in METHODS:
                clock = time.process_time()
                theta, believe = fit(method, train, start)
                found[method].append(test.errors(believe(test.batch, [test.scores(theta)])))
                seconds[method] += time.process_time() - clock
        for method in METHODS:
            said = THESIS.get(method, (None,) * 4)[NOISES.index(noise)]
            mean = float(np.mean(found[method]))
            yield {
                "noise %": noise,
                "method": method,
                "error": mean,
                "spread": float(np.std(found[method])),
                "draws": draws,
                "thesis": said,
                "reached": None if said is None else bool(mean <= said + NEAR[noise]),
                "CPU s": seconds[method] / draws,
            }


def iterations(setting: Setting) -> Iterator[Row]:
    """Univariate likelihood trained with k iterations, tested with 1 to 10 (50 % noise)."""
    arrays, count = load(setting), 9 if setting.quick else None
    train, test = (digits_of(arrays, part, 50, 0, count) for part in ("train", "test"))
    start = convex(train)
    for k in range(1, 5):
        theta, _ = fit(f"ucl-{k}", train, start)
        scores = [test.scores(theta)]
        tested = {
            f"test {t}": test.errors(truncated_beliefs(t)(test.batch, scores)) for t in range(1, 11)
        }
        yield {"trained": k, **tested}


def entropies(setting: Setting) -> Iterator[Row]:
    """Implicit univariate likelihood at 50 % noise: given coefficients, and fitted ones."""
    arrays, count = load(setting), 9 if setting.quick else None
    train, test = (digits_of(arrays, part, 50, 0, count) for part in ("train", "test"))
    starts = {name: coefficients(w) for name, w in (("A", 0.01), ("B", 0.1), ("C", 1.0))}
    node, pair = np.exp(np.random.default_rng(2009).normal(size=2))
    starts["random"] = coefficients(node, pair)
    for name, rho in starts.items():
        likely = convex_likelihood(rho, **FIT).fit(train.batch, train.features).theta
        for kind in ("as given", "per table", "per configuration"):
            psi = ENTROPIES[kind]
            learner = LEARNERS["implicit"](rho, loss="ucl", entropy=psi, **FIT)
            more = 0 if psi is None else psi(train.batch).d
            begin = np.concatenate([likely, np.zeros(more)])
            learner = replace(learner, begin=lambda batch, features, at=begin: at)
            theta = learner.fit(train.batch, train.features).theta
            weight = Condensed().weights(test.batch, rho)
            if psi is not None:
                weight = weight * np.exp(psi(test.batch).potentials(theta[test.features.d :]))
            tau = convex_beliefs(test.batch, [test.scores(theta), weight])
            yield {
                "start": name,
                "coefficients": kind,
                "error": test.errors(tau),
                "thesis": THESIS["ucl"][2] if (name, kind) == ("A", "as given") else None,
                "smallest": float(weight.min()),
                "largest": float(weight.max()),
            }


def _ones(batch: ms.Batch[Any]) -> Array:
    return np.ones((sum(batch.structure(m).n_nodes for m in range(len(batch))), 1))


ENTROPIES: dict[str, Any] = {
    "as given": None,
    "per table": lambda batch: PerTable.of(batch, _ones(batch)),
    "per configuration": lambda batch: ms.Tied.of(batch, _ones(batch)),
}


# Window and multi-scale features

RADIUS, SCALES = 4, (1.0, 2.0, 4.0)
WINDOW_FIT: dict[str, Any] = {"regulariser": 3.0, "solver": ms.FrankWolfe(tol=1e-4, rounds=100)}


def described(image: Array) -> Array:
    """What is around each pixel: a 9 × 9 window, blurs and gradient histograms."""
    parts = [
        images.windows(2 * image - 1, RADIUS),
        images.blurs(2 * image - 1, SCALES),
        images.gradient_histograms(image, SCALES, bins=4),
    ]
    return np.concatenate([p.reshape(image.size, -1) for p in parts], axis=1)


def window(setting: Setting) -> Iterator[Row]:
    """50 % noise with window and multi-scale features; log-coefficients constant or linear too."""
    arrays, count = load(setting), 9 if setting.quick else None
    rows: dict[str, list[Array]] = {}
    parts: dict[str, Part] = {}
    for part in ("train", "test"):
        plain = digits_of(arrays, part, 50, 0, count)
        rows[part] = [described(x) for x in noisy(arrays, part, 50, 0)[:count]]
        ones = [np.hstack([r, np.ones((len(r), 1))]) for r in rows[part]]
        edges = [between(r, plain.batch.structure(0)) for r in rows[part]]
        parts[part] = Part(plain.batch, ms.Tied.of(plain.batch, ones, edges))
    train, test = parts["train"], parts["test"]
    start = convex_likelihood(A, **WINDOW_FIT).fit(train.batch, train.features).theta
    tau = convex_beliefs(test.batch, [test.scores(start)])
    yield {"method": "convex", "error": test.errors(tau), "U-Net": UNET}
    for loss in ("ucl-4", "uquad-4"):
        theta, believe = fit(loss, train, start, WINDOW_FIT)
        error = test.errors(believe(test.batch, [test.scores(theta)]))
        yield {"method": loss, "error": error, "U-Net": UNET}
    blurred = {
        part: [np.hstack([r[:, 81:84], np.ones((len(r), 1))]) for r in rows[part]] for part in rows
    }
    for name, extra in (("fixed", None), ("per table", _ones_of), ("linear", blurred)):
        yield fitted_entropy(name, extra, train, test, start)


def fitted_entropy(name: str, extra: Any, train: Part, test: Part, start: Array) -> Row:
    """Implicit univariate likelihood, with coefficients per variable and edge."""
    if extra is None:
        theta, believe = fit("ucl", train, start, WINDOW_FIT)
        error = test.errors(believe(test.batch, [test.scores(theta)]))
        return {"method": "ucl, coefficients fixed", "error": error, "U-Net": UNET}
    psi = {
        id(part.batch): PerTable.of(
            part.batch, _ones(part.batch) if extra is _ones_of else extra[which]
        )
        for which, part in (("train", train), ("test", test))
    }
    learner = LEARNERS["implicit"](
        A, loss="ucl", entropy=lambda batch: psi[id(batch)], **WINDOW_FIT
    )
    begin = np.concatenate([start, np.zeros(psi[id(train.batch)].d)])
    learner = replace(learner, begin=lambda batch, features: begin)
    theta = learner.fit(train.batch, train.features).theta
    more = psi[id(test.batch)].potentials(theta[test.features.d :])
    weight = Condensed().weights(test.batch, A) * np.exp(more)
    error = test.errors(convex_beliefs(test.batch, [test.scores(theta), weight]))
    return {"method": f"ucl, coefficients {name}", "error": error, "U-Net": UNET}


_ones_of = object()


def between(rows: Array, graph: Any) -> Array:
    """A constant and how much the blurs at the two ends of an edge differ."""
    ends = graph.scope.reshape(-1, 2)
    apart = np.abs(rows[ends[:, 0], 81:84] - rows[ends[:, 1], 81:84])
    return np.hstack([np.ones((len(ends), 1)), apart])


# Chains

LENGTH, NOISE_SD, FLIPS = 50, 1.0, 5
STAY, CHAIN_TRAIN, CHAIN_TEST, SIZES, SETS = 0.8, 20, 200, (1, 3, 10, 30), 100
CHAIN_LOSSES = ("likelihood", "pseudo", "ucl", "uquad", "uclass", "ccl", "cquad")
CHAIN_TESTS = ("likelihood", "ucl", "uquad", "ccl", "cquad", "error")
CHAIN_FIT: dict[str, Any] = {"regulariser": 0.1, "solver": ms.FrankWolfe(tol=1e-4, rounds=100)}


def well(rng: np.random.Generator) -> Ints:
    """A Markov chain that stays with chance .8: the model's own kind."""
    moves = np.concatenate([[rng.integers(2)], rng.random(LENGTH - 1) > STAY])
    return np.asarray(np.cumsum(moves) % 2, dtype=np.int64)


def alternating(rng: np.random.Generator) -> Ints:
    """Tens of one value, then of the other."""
    return np.asarray((np.arange(LENGTH) // 10 + rng.integers(2)) % 2, dtype=np.int64)


def flipped(rng: np.random.Generator) -> Ints:
    """One random value with five flips."""
    y = np.full(LENGTH, rng.integers(2))
    y[rng.choice(LENGTH, FLIPS, replace=False)] ^= 1
    return y


def sequences(make: Callable[[Any], Ints], count: int, rng: np.random.Generator) -> Part:
    labels = [make(rng) for _ in range(count)]
    x = np.concatenate(labels) + NOISE_SD * rng.standard_normal(count * LENGTH)
    batch = ms.Batch.of(ms.chain(LENGTH, 2), labels)
    return Part(batch, ms.Tied.of(batch, np.stack([x, np.ones(len(x))], axis=1)))


def learn_chain(loss: str, train: Part) -> Array:
    """One sweep there and back is exact on a chain, so marginal losses are fitted through it."""
    names = {"likelihood": "mle_struct", "pseudo": "pseudo_likelihood"}
    if loss in names:
        return LEARNERS[names[loss]](**CHAIN_FIT).fit(train.batch, train.features).theta
    learner = LEARNERS["procedural"](loss=loss, iterations=1, **CHAIN_FIT)
    return learner.fit(train.batch, train.features).theta


def judged(part: Part, theta: Array) -> dict[str, float]:
    """Every test loss per variable, beliefs exact."""
    scores = part.scores(theta)
    found = Newton(1.0).many(part.batch, scores)
    reached = part.batch.totals(scores * part.batch.target)
    count = len(part.batch) * LENGTH
    values = {"likelihood": float((found.log_z - reached).sum()) / count}
    for name in CHAIN_TESTS[1:-1]:
        loss = LOSSES[name]
        values[name] = loss(found.tau, loss.units(part.batch))[0] / count
    return {**values, "error": part.errors(found.tau)}


def chains(setting: Setting) -> Iterator[Row]:
    """Train loss × test loss on the three kinds of sequence, then errors by training size."""
    kinds = {"well specified": well, "semi": alternating, "misspecified": flipped}
    for number, (kind, make) in enumerate(kinds.items()):
        test = sequences(make, CHAIN_TEST, np.random.default_rng([37, number]))
        train = sequences(make, CHAIN_TRAIN, np.random.default_rng([37, number, 1]))
        for loss in CHAIN_LOSSES:
            yield {"set": kind, "trained on": loss, **judged(test, learn_chain(loss, train))}
    sets = 2 if setting.quick else SETS
    for number, (kind, make) in enumerate(kinds.items()):
        test = sequences(make, CHAIN_TEST, np.random.default_rng([37, number]))
        for size in SIZES[:2] if setting.quick else SIZES:
            total = dict.fromkeys(CHAIN_LOSSES, 0.0)
            for draw in range(sets):
                train = sequences(make, size, np.random.default_rng([37, number, 2, size, draw]))
                for loss in CHAIN_LOSSES:
                    total[loss] += judged(test, learn_chain(loss, train))["error"] / sets
            yield {"set": kind, "sequences": size, "sets": sets, **total}


# Scenes

SIDE, CLASSES, SEEDS, SCENES, HIDDEN = 24, 5, 8, 20, 0.2
COLOUR_SD = 1.2
SCENE_FIT: dict[str, Any] = {"regulariser": 1.0, "solver": ms.FrankWolfe(tol=1e-4, rounds=60)}


def scene(rng: np.random.Generator) -> tuple[Array, Ints]:
    """Eight Voronoi cells of five classes; three colour channels, classes' means plus noise."""
    middles, kinds = rng.uniform(0, SIDE, (SEEDS, 2)), rng.integers(CLASSES, size=SEEDS)
    place = np.stack(np.mgrid[:SIDE, :SIDE], axis=-1)
    nearest = ((place[:, :, None] - middles) ** 2).sum(axis=-1).argmin(axis=-1)
    y = kinds[nearest]
    hues = np.random.default_rng(5).uniform(-1, 1, (CLASSES, 3))
    return hues[y] + COLOUR_SD * rng.standard_normal((SIDE, SIDE, 3)), y


def scene_part(count: int, hidden: float, seed: int) -> Part:
    rng = np.random.default_rng([55, seed])
    drawn = [scene(rng) for _ in range(count)]
    graph = ms.grid(SIDE, SIDE, CLASSES)
    labels = [np.where(rng.random(y.size) < hidden, -1, y.ravel()) for _, y in drawn]
    batch = partly_observed(graph, labels)
    rows = [images.blurs(x, (0, 1, 2)).reshape(SIDE * SIDE, -1) for x, _ in drawn]
    nodes = [np.hstack([r, np.ones((len(r), 1))]) for r in rows]
    return Part(batch, ms.Tied.of(batch, nodes))


def scenes(setting: Setting) -> Iterator[Row]:
    """Five classes, a fifth of the training pixels without label: errors on all test pixels."""
    count = 3 if setting.quick else SCENES
    train, test = scene_part(count, HIDDEN, 0), scene_part(count, 0.0, 1)
    pixel = LEARNERS["procedural"](loss="ucl", iterations=0, surrogate=False, **SCENE_FIT)
    alone = pixel.fit(train.batch, train.features).theta
    tau = truncated_beliefs(0)(test.batch, [test.scores(alone)])
    yield {"method": "per pixel", "error": test.errors(tau)}
    pseudo = LEARNERS["pseudo_likelihood"](**SCENE_FIT).fit(train.batch, train.features).theta
    yield {
        "method": "pseudo-likelihood",
        "error": test.errors(loopy_beliefs(test.batch, [test.scores(pseudo)])),
    }
    theta, believe = fit("ucl", train, alone, SCENE_FIT)
    error = test.errors(believe(test.batch, [test.scores(theta)]))
    yield {"method": "implicit", "error": error}
    psi = ENTROPIES["per table"]
    learner = LEARNERS["implicit"](A, loss="ucl", entropy=psi, **SCENE_FIT)
    begin = np.concatenate([theta, np.zeros(psi(train.batch).d)])
    learner = replace(learner, begin=lambda batch, features: begin)
    theta = learner.fit(train.batch, train.features).theta
    weight = Condensed().weights(test.batch, A)
    weight = weight * np.exp(psi(test.batch).potentials(theta[test.features.d :]))
    error = test.errors(convex_beliefs(test.batch, [test.scores(theta), weight]))
    yield {"method": "implicit, entropy fitted", "error": error}
    for k in (1, 2):
        theta, believe = fit(f"ucl-{k}", train, alone, SCENE_FIT)
        error = test.errors(believe(test.batch, [test.scores(theta)]))
        yield {"method": f"procedural {k}", "error": error}


EXPERIMENTS = {
    "digits": digits,
    "iterations": iterations,
    "entropies": entropies,
    "window": window,
    "chains": chains,
    "scenes": scenes,
}

if __name__ == "__main__":
    sys.exit(main("fitting", EXPERIMENTS))
