"""Landmarks of two video frames matched: errors, −log p of the truth, and proofs, by gap.

One model per gap. λ is the one whose fit gives the validation pairs' true edges the smallest mean
−log p (structured SVM and no learning have no probabilities: smallest error). Rows and columns are
permuted at random, so that a solver's ties cannot fall on the truth. A true edge is charged for a
probability of at least ``CLIP``. Fits of ρ > ½ near a vertex, which are not certified to
``CERTIFIED``, are not chosen.

``house`` has the features that are published with the house. ``hotel`` makes them of the landmarks
of the hotel (``cmu_hotel/cmum.mat``), which are published without; made so, the house's are the
published ones to the last count (a test holds it).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.optimize import minimize

from mlestruct import Batch, BipartiteMatching, Dense, FrankWolfe, Regulariser, marginals
from mlestruct.inference import best
from mlestruct.learners import mle_struct, ssvm
from papers._run import Row, Setting
from papers.mle_struct.figure import lines
from papers.mle_struct.judge import binned

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

GAPS = range(0, 100, 10)
PUBLISHED: dict[tuple[int, str], list[float]] = {  # by frames of the sequence and learner
    (111, "mle_struct"): [0, 0.0040, 0.0022, 0.0049, 0, 0.017, 0.041, 0.051, 0.080, 0.12],
    (111, "ssvm"): [0, 0, 0.0022, 0, 0, 0.022, 0.051, 0.067, 0.14, 0.11],
    (101, "mle_struct"): [0, 0, 0.005, 0.020, 0.023, 0.061, 0.13, 0.17, 0.24, 0.33],  # the hotel
}
SCAN = (0.6, 0.7, 0.8, 0.9)  # other ρ that are tried at gap 50
PUBLISHED_SCAN = dict(zip(SCAN, (0.013, 0.017, 0.017, 0.020), strict=True))  # the house
SHARES = 10.0 ** np.arange(-1, -7.5, -0.5)  # λ per training pair, strongest first
FIRM, WEAK, FAR = 4, 6, 70  # how many for Bethe: weaker are near vertices, slow before this gap
KINDS: list[tuple[str, float | None]] = [("mle_struct", 0.5), ("ssvm", None), ("none", None)]
KINDS += [("sinkhorn", None), ("mle_struct", 1.0)]
CLIP, CERTIFIED, SWEEPS = 1e-6, 1e-3, 200
THIRDS = "train", "validate", "test"
RINGS, SECTORS, HAIR = 2.0 ** np.arange(-3, 2), 12, 1e-7
SHOWN = 50, 90  # gaps whose confidence is drawn


@dataclass(frozen=True)
class Pairs:
    """Frame pairs as batch and features; ``truth`` is every row's column."""

    batch: Batch[Any]
    features: Dense
    truth: list[Ints]
    frames: int

    def error(self, theta: Array) -> float:
        """Share of landmarks matched wrongly."""
        found, _, _ = best(self.batch, self.features.potentials(theta))
        return float(np.mean([f != t for f, t in zip(found, self.truth, strict=True)]))

    def charges(self, theta: Array, rho: float) -> Array:
        """−log p of every true edge, p clipped."""
        assert self.batch.target is not None
        tau = marginals(self.batch, self.features.potentials(theta), rho=rho).tau
        return -np.log(np.maximum(tau[self.batch.target > 0], CLIP))

    def confidence(self, theta: Array, rho: float) -> tuple[Array, Array]:
        """Every row's largest marginal, and whether its column is right."""
        tau = marginals(self.batch, self.features.potentials(theta), rho=rho).tau
        rows, truth = tau.reshape(-1, len(self.truth[0])), np.concatenate(self.truth)
        return rows.max(axis=1), rows.argmax(axis=1) == truth


def house_frames(folder: Path) -> Array:
    """Frames × landmarks × 60, as published."""
    return np.asarray(np.load(folder / "house.npz")["features"], dtype=float)


def hotel_frames(folder: Path) -> Array:
    """The same of the hotel, from its landmarks."""
    known = loadmat(folder / "cmum.mat", struct_as_record=False, squeeze_me=True)
    marked = known["CMUM"].hotel.XTs
    return np.array([contexts(points.T.astype(float)) for points in marked])


def contexts(points: Array) -> Array:
    """Every landmark's shape context: how many others lie in each of 5 rings × 12 sectors.

    Rings end at 1/8, 1/4, … 2 of the mean distance of all pairs, each with itself included. Where
    two are exactly level or plumb the published counts are those of a hair's breadth beside.
    """
    x, y = (points[:, None] - points[None]).transpose(2, 0, 1)
    apart = np.hypot(x, y)
    ring = (apart[..., None] >= apart.mean() * RINGS).sum(axis=-1)
    turn = np.mod(np.arctan2(y - HAIR, x + HAIR), 2 * np.pi)
    near = (ring < len(RINGS)) & ~np.eye(len(points), dtype=bool)
    sector = (turn[near] * SECTORS / (2 * np.pi)).astype(int)
    counts = np.zeros((len(points), len(RINGS), SECTORS))
    np.add.at(counts, (near.nonzero()[0], ring[near], sector), 1)
    return counts.reshape(len(points), -1)


def pairs_of(known: Array, gap: int, split: str) -> Pairs:
    """Frames so far apart, of a split by the first one, shuffled by a generator seeded with both.

    Every third frame is a test frame, the one after it trains, the next validates.
    """
    firsts = range(THIRDS.index(split), len(known) - gap, 3)
    rng = np.random.default_rng([gap, len(split)])
    X, truth, n = [], [], known.shape[1]
    for a in firsts:
        rows, place = rng.permutation(n), rng.permutation(n)
        second = np.empty_like(known[0])
        second[place] = known[a + gap]
        X.append(-((known[a][rows, None] - second[None]) ** 2) / n)
        truth.append(place[rows])
    batch = Batch.of([BipartiteMatching(n, n)] * len(X), truth)
    features = Dense.of(batch, np.concatenate([x.reshape(n * n, -1) for x in X]))
    return Pairs(batch, features, truth, len(known))


def published(frames: int, learner: str, rho: float | None, gap: int) -> float | None:
    """The paper's test error of this sequence, where the paper has one."""
    if rho in PUBLISHED_SCAN:
        return PUBLISHED_SCAN[rho] if frames == 111 else None
    known = PUBLISHED.get((frames, learner))
    return None if known is None else known[gap // 10]


def shares(learner: str, rho: float | None, gap: int, quick: bool) -> Array:
    """The λ per training pair that are tried; briefly, only two of them except at ρ = ½."""
    if rho == 1.0:
        return SHARES[: 2 if quick else WEAK if gap >= FAR else FIRM]
    found = SHARES[::2] if learner == "sinkhorn" else SHARES
    return found[:2] if quick and rho != 0.5 else found


def fits(
    train: Pairs, learner: str, rho: float, lams: Array
) -> Iterator[tuple[float, Array, float | None]]:
    """(λ, weights, relative gap) from the strongest λ on."""
    if learner == "none":
        yield np.inf, np.ones(train.features.d), None
    elif learner == "sinkhorn":
        theta = np.zeros(train.features.d)
        for lam in lams:
            theta = sinkhorn(train, float(lam), theta)
            yield float(lam), theta, None
    else:
        if learner == "mle_struct":
            made = mle_struct(rho, solver=FrankWolfe(tol=1e-4, rounds=100))
        else:
            made = ssvm(solver=FrankWolfe(tol=9e-4, rounds=1000))
        ridges = [Regulariser.of(train.features.d, float(lam)) for lam in lams]
        models = made.path(train.batch, train.features, ridges)
        for lam, model in zip(lams, models, strict=True):
            if model.certificate.relative <= CERTIFIED:  # optima near vertices are not
                yield float(lam), model.theta, model.certificate.relative


def sinkhorn(train: Pairs, lam: float, start: Array, sweeps: int = SWEEPS) -> Array:
    """A dozen lines instead of a library: Sinkhorn's likelihood, a ridge, SciPy's L-BFGS."""
    n, count = train.truth[0].size, len(train.batch)
    assert train.batch.target is not None
    observed = train.features.moments(train.batch.target)

    def value(theta: Array) -> tuple[float, Array]:
        score = train.features.potentials(theta).reshape(count, n, n)
        top = score.max(axis=2, keepdims=True)
        kernel, v = np.exp(score - top) + 1e-300, np.ones((count, 1, n))
        for _ in range(sweeps):
            u = 1 / (kernel * v).sum(axis=2, keepdims=True)
            v = 1 / (kernel * u).sum(axis=1, keepdims=True)
        tau = kernel * u * v
        log_z = top.sum() - np.log(u).sum() - np.log(v).sum()
        slope = train.features.moments(tau.ravel()) - observed + lam * theta
        return float(log_z - theta @ observed + lam / 2 * theta @ theta), slope

    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return np.asarray(found.x)


def hotel(setting: Setting) -> Iterator[Row]:
    """Every learner at all gaps of the hotel's frames."""
    yield from sequence(setting, "hotel", hotel_frames(setting.data("cmu_hotel")), ())


def house(setting: Setting) -> Iterator[Row]:
    """Every learner at all gaps; at gap 50 a scan of ρ too."""
    known = house_frames(setting.data("cmu_house"))
    yield from sequence(setting, "house", known, () if setting.quick else SCAN)


def sequence(setting: Setting, name: str, known: Array, scan: Sequence[float]) -> Iterator[Row]:
    """A row for every learner and gap, and for other ρ at gap 50; figures of errors and trust."""
    gaps = (50,) if setting.quick else GAPS
    plan = [(gap, *kind) for kind in KINDS for gap in gaps]
    plan += [(50, "mle_struct", rho) for rho in scan]
    rows: list[Row] = []
    trusts: dict[str, Any] = {}
    for gap, learner, rho in plan:
        run = partial(one, known, gap, learner, rho, setting.quick)
        part = setting.once(f"{name}, gap {gap}, {learner}, rho {rho}", run)
        if part is None:
            continue
        row = dict(part)
        trust = row.pop("trust")
        rows.append(row)
        yield row
        if trust:
            trusts[f"gap {gap}"] = {"ρ = ½": trust}
    lines(
        setting, f"{name}_errors", {"test pairs": by_gap(rows)}, "gap", "share of landmarks wrong"
    )
    axes = "largest probability of a row", "share that is right"
    if trusts:
        lines(setting, f"{name}_confidence", trusts, *axes, diagonal=True)


def by_gap(rows: list[Row]) -> dict[str, tuple[list[int], list[float]]]:
    """Errors of ρ = ½, as published, of Bethe and of the SVM."""
    kinds = {"ρ = ½": ("mle_struct", 0.5), "Bethe": ("mle_struct", 1.0), "SVM": ("ssvm", None)}
    found = {
        name: [row for row in rows if (row["learner"], row["rho"]) == kind]
        for name, kind in kinds.items()
    }
    curves = {
        name: ([row["gap"] for row in some], [row["test_error"] for row in some])
        for name, some in found.items()
    }
    gaps = curves["ρ = ½"][0]
    return {**curves, "paper's": (gaps, [row["published"] for row in found["ρ = ½"]])}


def one(known: Array, gap: int, learner: str, rho: float | None, quick: bool) -> Row:
    """The fit chosen on the validation pairs, judged on the test pairs.

    ``trust`` is what :func:`binned` makes of ρ = ½'s marginals at the gaps that are drawn.
    """
    train, valid, test = (pairs_of(known, gap, split) for split in THIRDS)
    lams = shares(learner, rho, gap, quick) * len(train.batch)
    likely = learner in ("mle_struct", "sinkhorn")
    entropy = 0.5 if rho is None else rho
    clock, tried = time.process_time(), []
    for lam, theta, gap_of_fit in fits(train, learner, entropy, lams):
        merit = valid.charges(theta, entropy).mean() if likely else valid.error(theta)
        tried.append((float(merit), -lam, theta, gap_of_fit))
    seconds = time.process_time() - clock
    merit, minus, theta, relative = min(tried, key=lambda t: t[:2])
    shown = (learner, rho) == ("mle_struct", 0.5) and gap in SHOWN
    return {
        "learner": learner,
        "rho": rho,
        "gap": gap,
        "test_error": test.error(theta),
        "published": published(train.frames, learner, rho, gap),
        "nll": float(test.charges(theta, entropy).mean()) if likely else None,
        "lam": None if np.isinf(minus) else -minus,
        "certificate": relative,
        "seconds": seconds,
        "trust": binned(*test.confidence(theta, entropy)) if shown else [],
    }
