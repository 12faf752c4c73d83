"""The next answer as a user asks for it, in a process that has compiled: processor seconds.

Tags of sentences from feature dicts, many and one at a time, beside CRFsuite with as many
iterations of training on the same data (MLESTRUCT_DATA's wnut17, or generated words without it);
the entropy of a large grid; probabilities of a large table and of sparse records, proven; each
with what reading and preparing cost.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._clock import least
from benchmarks.sequences import template
from mlestruct.entropy import Entropy
from mlestruct.readers import read_columns

Row = dict[str, Any]
MANY, ALONE, REPEATS = 1000, 200, 3
ROUNDS = 20  # of training: what a model predicts does not change how long it takes


def run(quick: bool) -> Iterator[Row]:
    """Quick: fewer sentences to learn from, a smaller grid."""
    yield from sentences(300 if quick else 3394)
    yield from entropies(100 if quick else 300)
    yield table(200 if quick else 800)
    yield records(5000 if quick else 100_000)


def bio(X: list[Any], tags: list[Any]) -> Row:
    """As many rounds of a fit whose transitions are partly forbidden, and of one without."""

    def fitted(rules: str | None) -> Callable[[], Any]:
        return lambda: ms.SequenceModel(max_rounds=ROUNDS, constraints=rules).fit(X, tags)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        ours, free = least(fitted("bio"), REPEATS), least(fitted(None), REPEATS)
    return {
        "benchmark": "next_answer",
        "workload": f"fit of {len(X)} sentences with BIO rules",
        "quantity": "CPU s",
        "ours": ours,
        "peer": free,
        "peer_name": "without rules",
        "ratio": ours / free,
        "target": "ratio <= 1.3",
        "met": ours / free <= 1.3,
    }


def sentences(count: int) -> Iterator[Row]:
    words, tags = tagged(count)
    X = [template(sentence) for sentence in words]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ms.ConvergenceWarning)  # a model is wanted, not its optimum
        model = ms.SequenceModel(max_rounds=ROUNDS).fit(X, tags)
    asked = [X[m % len(X)] for m in range(MANY)]
    yield bio(X, tags)
    label = crfsuite(X, tags)
    for name, split, most in (
        (f"{MANY} sentences from dicts", [asked], 1.5),
        ("one sentence from dicts", [[x] for x in asked[:ALONE]], 4.0),
    ):
        ours = each(model.predict, split)
        row: Row = {"benchmark": "next_answer", "workload": name, "quantity": "CPU ms"}
        row["ours"] = ours
        if label is not None:
            peer = each(label, split)
            row |= {"peer": peer, "peer_name": "python-crfsuite", "ratio": ours / peer}
            row |= {"target": f"ratio <= {most:g}", "met": ours / peer <= most}
        yield row


def each(answer: Callable[[list[Any]], Any], questions: list[list[Any]]) -> float:
    """Milliseconds per question, asked one after the other."""
    return 1e3 * least(lambda: [answer(question) for question in questions]) / len(questions)


def tagged(count: int) -> tuple[list[list[str]], list[list[str]]]:
    """Words and tags of sentences."""
    path = Path(os.environ.get("MLESTRUCT_DATA", "")) / "wnut17" / "train.conll"
    if path.is_file():
        rows = read_columns(path, separator="\t")[:count]
        return [[w for w, _ in row] for row in rows], [[t for _, t in row] for row in rows]
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 30, count)
    words = [[f"word{k}" for k in rng.zipf(1.3, n) % 9999] for n in lengths]
    return words, [[f"tag{len(w) % 3}" for w in sentence] for sentence in words]


def crfsuite(X: list[Any], tags: list[list[str]]) -> Callable[[list[Any]], Any] | None:
    """Its tagger for many sentences, None where it is not installed."""
    try:
        import pycrfsuite
    except ModuleNotFoundError:
        return None
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 0.5, "max_iterations": ROUNDS})
    for x, y in zip(X, tags, strict=True):
        trainer.append(pycrfsuite.ItemSequence(x), y)
    file = os.path.join(tempfile.mkdtemp(), "model")
    trainer.train(file)
    tagger = pycrfsuite.Tagger()
    tagger.open(file)
    return lambda sentences: [tagger.tag(pycrfsuite.ItemSequence(x)) for x in sentences]


def entropies(side: int) -> Iterator[Row]:
    """Whether the entropy is concave, and what it bounds, of a grid not seen before."""
    for name, rho in (("spanning trees", None), ("Bethe", "bethe")):
        ours = min(made(side, rho) for _ in range(REPEATS))
        yield {
            "benchmark": "next_answer",
            "workload": f"entropy of a {side} x {side} grid, {name}",
            "quantity": "CPU s",
            "ours": ours,
            "target": "<= 0.3",
            "met": ours <= 0.3,
        }


def made(side: int, rho: Any) -> float:
    batch = ms.Batch.of(ms.grid(side, side, 2))
    start = time.thread_time()
    Entropy.of(batch, rho, allow_nonconvex=True)
    return time.thread_time() - start


def table(n: int) -> Row:
    """Probabilities of an n × n table by a model of smaller ones."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 30, 30, 2)), [rng.permutation(30) for _ in range(3)]
    model, large = ms.MatchingModel().fit(x, np.array(y)), rng.standard_normal((1, n, n, 2))
    ours = least(lambda: model.predict_marginals(large), REPEATS)
    name = f"probabilities of a {n} x {n} table"
    return {"benchmark": "next_answer", "workload": name, "quantity": "CPU s", "ours": ours}


def records(n: int) -> Row:
    """Two files of n records, ten candidates each: proven probabilities of partial matchings."""
    rng = np.random.default_rng(0)
    one = np.repeat(np.arange(n), 10)
    other = n + (one + rng.integers(-50, 50, len(one))) % n
    pairs = np.unique(np.stack([one, other], axis=1), axis=0)
    scores = rng.normal(-1.0, 2.0, len(pairs))

    def answer() -> None:
        batch = ms.Batch.of(ms.Matching(2 * n, pairs, "partial"), count=1)
        found = ms.marginals(batch, scores).certificate
        assert found.relative <= 1e-6

    ours = least(answer, 1)
    name = f"{n} + {n} records, 10 candidates each"
    target: Row = {"target": "<= 30", "met": ours <= 30.0}
    return {
        "benchmark": "next_answer", "workload": name, "quantity": "CPU s, proven to 1e-6",
        "ours": ours,
    } | target  # fmt: skip
