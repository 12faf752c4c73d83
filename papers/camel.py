"""Constrained approximate maximum entropy learning (2008): do consistency and concavity pay?

``vision`` labels generated superpixel graphs: 30 to 50 superpixels at random places, an edge for
every side of their Delaunay triangulation and a tenth as many chords, 7 classes, weak features on
the nodes (8: one hint a class, and 1), one weight per pair of different classes on the edges:
56 + 21 weights, as in the paper. Labels are a Gibbs sample of the model itself, 500 sweeps long.
All of this was fixed before the first run. ``coupling`` scales the edge weights. For want of
machine time there are 18 images (the paper: 80), every convex problem is solved to a relative gap
of 1e-3, and CAMEL stops after 10 rounds; this too was decided before the first full run.

``ner`` finds persons, locations and other names (seven BIO tags) in tweets (``wnut17``) by the
features of ``papers.contrastive``; equal capitalised words are linked. Training sentences: all with
such a link, and from the others the first as many that name something. λ = 1/10 as in the paper.

``seminars`` is the paper's Table 2 on its corpus: speaker, location, start and end in the seminar
announcements, four folds of a seeded permutation; features, links and λ as in ``ner``, and the
line's number. ``seminar_sample`` takes four disjoint quarters of the corpus instead, 60 mails of
each to learn from and 60 to label. ``conll`` is Table 1, on files of the reader's own, and
``conll_sample`` four quarters of its training documents in the same way.

``hints`` is ``vision`` at other strengths of hints and numbers of images, next to no
regularisation as in the paper, and rounds until they bring nothing: one draw of the images, three
folds. Its cells were fixed before its first run. ``plain`` takes away from learning by belief
propagation what keeps it from failing: new beginnings, the order of messages, their convergence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from mlestruct import Batch, Sparse
from mlestruct.estimators import SkipChainModel
from mlestruct.families.consistency.camel import Camel
from mlestruct.features import Features
from mlestruct.inference.sampling import gibbs
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import LEARNERS
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.metrics import entity_f1
from mlestruct.readers import read_columns
from mlestruct.structures import FactorGraph
from mlestruct.structures.entropy import Entropy
from papers._run import Row, Setting, main
from papers.contrastive import CORPORA, SEED, attributes, quarters, skips

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

CLASSES, SIGNAL, CHORDS, SWEEPS = 7, 0.7, 0.1, 500
IMAGES, SMALLEST, LARGEST, FOLDS = 18, 30, 50, 3
COUPLINGS, SEEDS = (0.25, 0.5, 1.0), 5
LAM = 0.01  # the paper has none; this much keeps every optimum finite
PAIRS = list(combinations(range(CLASSES), 2))
NER_LAM, KINDS = 0.1, ("person", "location", "other")
FIELDS, MAIL_FOLDS = ("speaker", "location", "stime", "etime"), 4
NAMES, DOCUMENT = ("PER", "LOC", "ORG", "MISC"), "-DOCSTART-"
TABLE_1 = {  # micro and macro F1
    "piecewise": (85.2, 83.7),
    "CAMEL(0)": (85.5, 83.9),
    "CAMEL": (86.1, 84.6),
    "CAMEL, empirical start": (85.9, 84.5),
    "LBP": (86.2, 84.6),
}
TABLE_2 = {
    "piecewise": (88.5, 88.5),
    "CAMEL(0)": (88.5, 88.5),
    "CAMEL": (88.6, 88.7),
    "CAMEL, empirical start": (88.7, 88.7),
    "LBP": (89.6, 89.6),
}

SOLVER = FrankWolfe(tol=1e-3)
BRIEF = FrankWolfe(tol=1e-2, rounds=10)
CCCP: dict[str, Any] = {"rounds": 10, "tol": 1e-2}
STRONG = 1.0  # from here on messages stall for minutes, and CAMEL takes its own dual

Learners = dict[str, tuple[str, dict[str, Any]]]


def ways(cccp: dict[str, Any]) -> Learners:
    """The paper's learners, CCCP to be stopped so."""
    return {
        "piecewise": ("piecewise", {}),
        "CAMEL(0)": ("camel0", {}),
        "LBP": ("lbp", {}),
        "CAMEL": ("camel", cccp),
        "CAMEL, empirical start": ("camel", cccp | {"start": "empirical"}),
        "CCCP without consistency": ("camel", cccp | {"consistent": False}),
    }


LEARN = ways(CCCP)
TO_THE_END = ways({"rounds": 100, "tol": 1e-3})
del TO_THE_END["CCCP without consistency"]  # the worst by far, and slow
BRIEFLY = ways(CCCP | {"rounds": 2})
PLAINLY = {  # ever less of what the library does for belief propagation's learning
    "piecewise": ("piecewise", {}),
    "LBP": ("lbp", {}),
    "LBP, no restarts": ("lbp", {"restarts": 0}),
    "LBP, no restarts, flooding": ("lbp", {"restarts": 0, "schedule": "flooding"}),
    "LBP, no restarts, 10 sweeps": ("lbp", {"restarts": 0, "schedule": "flooding", "sweeps": 10}),
}
FREE = 1e-4  # as good as no ridge, and every optimum is finite
HARD = 0.5  # where strong hints and no ridge let messages stall: CAMEL's own dual, as by STRONG
CELLS = [(80, 2.0, coupling) for coupling in COUPLINGS]  # images, hints: the nearest to the paper
CELLS += [(18, signal, coupling) for signal in (2.0, 1.4) for coupling in COUPLINGS]
CELLS += [(80, signal, coupling) for signal in (1.4, SIGNAL) for coupling in COUPLINGS]
CELLS += [(18, SIGNAL, coupling) for coupling in COUPLINGS]


@dataclass(frozen=True)
class Learnt:
    """Weights and their cost; ``settled`` is the first round within 1 % of CCCP's whole gain."""

    theta: Array
    rounds: int
    settled: int
    seconds: float


@dataclass(frozen=True)
class Images:
    """Labelled graphs, one sparse feature matrix each."""

    graphs: list[FactorGraph]
    features: list[Any]
    labels: list[Ints]

    def some(self, members: Ints) -> Images:
        def pick(items: list[Any]) -> list[Any]:
            return [items[m] for m in members]

        return Images(pick(self.graphs), pick(self.features), pick(self.labels))

    def problem(self) -> tuple[Batch[Any], Sparse]:
        batch = Batch.of(self.graphs, self.labels)
        return batch, Sparse.of(batch, self.features)


def superpixels(rng: np.random.Generator) -> FactorGraph:
    """Neighbours in a triangulation, and some chords."""
    points = rng.random((rng.integers(SMALLEST, LARGEST + 1), 2))
    edges = {
        (int(min(a, b)), int(max(a, b)))
        for triangle in Delaunay(points).simplices
        for a, b in combinations(triangle, 2)
    }
    wanted = int(len(edges) * (1 + CHORDS))
    while len(edges) < wanted:
        a, b = rng.choice(len(points), 2, replace=False)
        edges.add((int(min(a, b)), int(max(a, b))))
    return FactorGraph([CLASSES] * len(points), sorted(edges))


def design(graph: FactorGraph, hints: Array) -> Any:
    """Coordinates × (8·7 + 21): every hint for every class, every pair of different classes."""
    nodes = sp.kron(hints, sp.eye_array(CLASSES))
    table = np.zeros((CLASSES, CLASSES, len(PAIRS)))
    for k, (a, b) in enumerate(PAIRS):
        table[a, b, k] = table[b, a, k] = 1.0
    table = sp.csr_array(table.reshape(-1, len(PAIRS)))
    edges = sp.kron(np.ones((graph.n_factors, 1)), table)
    return sp.block_diag([nodes, edges], format="csr")


def generate(coupling: float, seed: int, count: int, signal: float = SIGNAL) -> Images:
    """Labels from the edges alone, then hints: the label by ``signal``, under unit noise."""
    rng = np.random.default_rng([2008, seed])
    weights = coupling * rng.normal(-1.0, 1.0, len(PAIRS))
    graphs = [superpixels(rng) for _ in range(count)]
    features, labels = [], []
    for graph in graphs:
        theta = np.concatenate([np.zeros(8 * CLASSES), weights])
        blank = design(graph, np.zeros((graph.n_nodes, 8)))
        drawn = gibbs(graph, blank @ theta, 1, rng, burn=SWEEPS).outcomes()[0]
        hints = signal * np.eye(CLASSES)[drawn] + rng.standard_normal((graph.n_nodes, CLASSES))
        features.append(design(graph, np.column_stack([hints, np.ones(graph.n_nodes)])))
        labels.append(np.asarray(drawn))
    return Images(graphs, features, labels)


def decide(theta: Array, batch: Batch[Any], features: Features) -> list[Ints]:
    """The states of largest loopy belief; every learner is judged so."""
    messages = SumProduct.of(Entropy.of(batch, 1.0, allow_nonconvex=True), takeover=False)
    tau = messages.many(batch, features.potentials(theta)).tau
    return [batch.structure(m).decode(tau[batch.coordinates(m)]) for m in range(len(batch))]


def accuracy(theta: Array, images: Images) -> float:
    """% of superpixels that are labelled right."""
    found = np.concatenate(decide(theta, *images.problem()))
    return 100 * float((found == np.concatenate(images.labels)).mean())


def learn(
    settings: tuple[str, dict[str, Any]],
    batch: Batch[Any],
    features: Features,
    lam: float,
    route: str = "auto",
    solver: FrankWolfe = SOLVER,
) -> Learnt:
    """By a learner's name and options; CPU seconds are all threads'. ``route`` is CAMEL's."""
    kind, options = settings
    if kind.startswith("camel"):
        options = options | {"route": route}
    clock = time.process_time()
    learner: Any = LEARNERS[kind](regulariser=lam, solver=solver, **options)
    if not isinstance(learner, Camel):
        theta = learner.fit(batch, features).theta
        return Learnt(theta, 1, 1, time.process_time() - clock)
    rounds = list(learner.each(batch, features))
    reached = np.array([one.objective for one in rounds])
    near = reached >= reached[-1] - 0.01 * (reached[-1] - reached[0])
    settled = int(near.argmax()) + 1
    return Learnt(rounds[-1].theta, len(rounds), settled, time.process_time() - clock)


def vision(setting: Setting) -> Iterator[Row]:
    """Accuracy on held-out images: mean and standard error over seeds × folds, and paired."""
    how, learners = Protocol(IMAGES, SEEDS, FOLDS, SOLVER), LEARN
    if setting.quick:
        how, learners = Protocol(2, 1, 2, BRIEF), BRIEFLY
    for coupling in COUPLINGS[:1] if setting.quick else COUPLINGS:
        yield from crossed(setting, {"coupling": coupling}, coupling, how, learners)


def hints(setting: Setting) -> Iterator[Row]:
    """The same over strengths of hints and numbers of images."""
    for count, signal, coupling in CELLS[-1:] if setting.quick else CELLS:
        how, learners = Protocol(count, 1, FOLDS, SOLVER, signal, FREE, HARD), TO_THE_END
        if setting.quick:
            how, learners = Protocol(2, 1, 2, BRIEF, signal, FREE), BRIEFLY
        first = {"images": count, "hints": signal, "coupling": coupling}
        yield from crossed(setting, first, coupling, how, learners)


def plain(setting: Setting) -> Iterator[Row]:
    """Where learning by belief propagation fails: with what is done against that taken away."""
    for signal in (2.0, SIGNAL)[: 1 if setting.quick else 2]:
        for coupling in COUPLINGS[-1:] if setting.quick else COUPLINGS:
            how, learners = Protocol(IMAGES, 1, FOLDS, SOLVER, signal, FREE), PLAINLY
            if setting.quick:
                how = Protocol(2, 1, 2, BRIEF, signal, FREE)
            first = {"images": how.count, "hints": signal, "coupling": coupling}
            yield from crossed(setting, first, coupling, how, learners)


@dataclass(frozen=True)
class Protocol:
    """How many images, draws of them and folds, what they hint, and how weights are found."""

    count: int
    seeds: int
    folds: int
    solver: FrankWolfe
    signal: float = SIGNAL
    lam: float = LAM
    strong: float = STRONG


def crossed(
    setting: Setting, first: Row, coupling: float, how: Protocol, learners: Mapping[str, Any]
) -> Iterator[Row]:
    """A row per learner over all draws and folds."""
    found: dict[str, list[Row]] = {name: [] for name in learners}
    cell = ", ".join(f"{key} {value}" for key, value in first.items())
    for seed in range(how.seeds):
        images = generate(coupling, seed, how.count, how.signal)
        fold = np.arange(how.count) % how.folds
        for f in range(how.folds):
            train, test = (images.some(np.flatnonzero(part)) for part in (fold != f, fold == f))
            for name, settings in learners.items():
                run = partial(one_split, settings, coupling, how, train, test)
                part = setting.once(f"{cell}, draw {seed}, fold {f}, {name}", run)
                found[name] += [] if part is None else [part]
    for name, runs in found.items():
        if not runs:
            continue
        percent = np.array([run["accuracy"] for run in runs])
        gain = percent - [run["accuracy"] for run in found["piecewise"][: len(runs)]]
        yield {
            **first,
            "learner": name,
            "folds": len(runs),
            "accuracy": float(percent.mean()),
            "se": _error(percent),
            "above piecewise": float(gain.mean()),
            "its se": _error(gain),
            "rounds": float(np.median([run["rounds"] for run in runs])),
            "to 99 % of the gain": float(np.median([run["settled"] for run in runs])),
            "CPU s": float(np.mean([run["CPU s"] for run in runs])),
        }


def one_split(
    settings: tuple[str, dict[str, Any]],
    coupling: float,
    how: Protocol,
    train: Images,
    test: Images,
) -> Row:
    """A learner's % of right superpixels, and what learning cost."""
    route = "auto" if coupling < how.strong else "coupled"
    learnt = learn(settings, *train.problem(), how.lam, route, how.solver)
    cost = {"rounds": learnt.rounds, "settled": learnt.settled, "CPU s": learnt.seconds}
    return {"accuracy": accuracy(learnt.theta, test), **cost}


def _error(sample: Array) -> float | None:
    return None if len(sample) < 2 else float(sample.std(ddof=1) / np.sqrt(len(sample)))


def ner(setting: Setting) -> Iterator[Row]:
    """Entity F1 on the test sentences, over all kinds (micro) and the mean of each (macro)."""
    seen = chosen(*sentences(setting, "train"), 8 if setting.quick else None)
    unseen, truth = sentences(setting, "test")
    if setting.quick:
        unseen, truth = chosen(unseen, truth, 20)
    tied = [m for m, x in enumerate(unseen) if skips(x)]
    fold = Fold(*seen, unseen)
    for name in LEARN:
        learnt, found = fold.by(name)
        linked = entity_f1([truth[m] for m in tied], [found[m] for m in tied])
        yield {
            "learner": name,
            **entities(truth, found, KINDS),
            "micro F1, linked sentences": 100 * linked.f1,
            "rounds": learnt.rounds,
            "to 99 % of the gain": learnt.settled,
            "CPU s": learnt.seconds,
        }


def seminars(setting: Setting) -> Iterator[Row]:
    """Table 2: every fold held out once."""
    X, y = mails(setting)
    drawn = np.random.default_rng(SEED).permutation(len(X))
    parts = np.array_split(drawn, MAIL_FOLDS)
    folds = [(np.setdiff1d(drawn, part), part) for part in parts]
    yield from folded(setting, "seminars", X, y, folds, FIELDS, TABLE_2)


def seminar_sample(setting: Setting) -> Iterator[Row]:
    """The same by quarters of the corpus: for machines on which the folds take too long."""
    X, y = mails(setting)
    yield from folded(setting, "seminar_sample", X, y, quarters(len(X)), FIELDS, TABLE_2)


def conll(setting: Setting) -> Iterator[Row]:
    """Table 1: ``eng.train`` and ``eng.testb`` of CoNLL-2003, equal words of a document linked.

    The corpus is licensed to those who ask for it, and no part of the project: ``--data`` says
    where its folder ``conll2003`` lies.
    """
    folder = setting.data("conll2003")
    (X, y), (unseen, truth) = (
        documents(folder / name, 6 if setting.quick else None)
        for name in ("eng.train", "eng.testb")
    )
    part = np.arange(len(X)), np.arange(len(X), len(X) + len(unseen))
    yield from folded(setting, "conll", [*X, *unseen], [*y, *truth], [part], NAMES, TABLE_1)


def conll_sample(setting: Setting) -> Iterator[Row]:
    """The same by quarters of ``eng.train``."""
    X, y = documents(setting.data("conll2003") / "eng.train", 12 if setting.quick else None)
    yield from folded(setting, "conll_sample", X, y, quarters(len(X)), NAMES, TABLE_1)


def documents(path: Path, most: int | None = None) -> tuple[list[Any], list[list[str]]]:
    """Attributes and tags of every word, a text for every document and not for every sentence."""
    texts: list[tuple[list[Any], list[str]]] = []
    for sentence in read_columns(path, (0, 1, -1), skip=()):
        marked = sentence[0][0] == DOCUMENT
        if marked:
            texts.append(([], []))
        if not texts:
            raise ValueError(
                f"{path} does not begin with {DOCUMENT}: words are linked within documents, so "
                "their marks must not have been removed"
            )
        rows = sentence[marked:]
        found = attributes([word for word, _, _ in rows])
        texts[-1][0].extend(x | {"speech": row[1]} for x, row in zip(found, rows, strict=True))
        texts[-1][1].extend(tag for _, _, tag in rows)
    texts = [text for text in texts if text[0]][:most]
    return [x for x, _ in texts], [tags for _, tags in texts]


def folded(
    setting: Setting,
    corpus: str,
    X: list[Any],
    y: list[list[str]],
    parts: Sequence[tuple[Ints, Ints]],
    fields: Sequence[str],
    published: Mapping[str, tuple[float, float]],
) -> Iterator[Row]:
    """A row per learner: means and spreads of F1 over the folds that were run, seconds of all."""
    folds = [Fold([X[m] for m in kept], [y[m] for m in kept], [X[m] for m in left])
             for kept, left in parts]  # fmt: skip
    for name in LEARN:
        rows = []
        for number, (fold, (_, left)) in enumerate(zip(folds, parts, strict=True)):
            run = partial(one_fold, fold, name, [y[m] for m in left], fields)
            part = setting.once(f"{corpus}, fold {number}, {name}", run)
            rows += [] if part is None else [part]
        if not rows:
            continue
        row: Row = {"learner": name, "folds": len(rows)}
        for k, key in enumerate(("micro F1", "macro F1")):
            values = [one[key] for one in rows]
            row[key] = float(np.mean(values))
            row[f"{key} sd"] = float(np.std(values, ddof=1)) if len(rows) > 1 else None
            row[f"paper's {key}"] = published[name][k] if name in published else None
        row["rounds"] = float(np.median([one["rounds"] for one in rows]))
        yield row | {"CPU s": sum(one["CPU s"] for one in rows)}


def one_fold(fold: Fold, name: str, truth: list[list[str]], fields: Sequence[str]) -> Row:
    """What a learner says of the texts that it has not seen, and what learning cost."""
    learnt, found = fold.by(name)
    cost = {"rounds": learnt.rounds, "CPU s": learnt.seconds}
    return entities(truth, found, fields) | cost


@dataclass(frozen=True)
class Fold:
    """Texts to learn from with their tags, and others to tag."""

    X: list[Any]
    y: list[list[str]]
    unseen: list[Any]

    @cached_property
    def problem(self) -> tuple[SkipChainModel, Batch[Any], Features, Batch[Any], Features]:
        """Both as batches with features; attributes are those of the texts learned from."""
        model = SkipChainModel(skips, weights="seen")
        model.prepare(model.taken(self.X, self.y))
        batch = Batch.of(model.structures(self.X), model.encode(self.X, self.y))
        test = Batch.of(model.structures(self.unseen))
        return model, batch, model.features(batch, self.X), test, model.features(test, self.unseen)

    def by(self, name: str) -> tuple[Learnt, list[list[str]]]:
        """A learner's weights, and the tags that it gives."""
        model, batch, features, test, judged = self.problem
        learnt = learn(LEARN[name], batch, features, NER_LAM)
        states = decide(learnt.theta, test, judged)
        return learnt, [model.classes_[one].tolist() for one in states]


def entities(truth: list[list[str]], found: list[list[str]], kinds: Sequence[str]) -> Row:
    """Over all kinds of entity, and the mean of each kind's."""
    each = [entity_f1(truth, found, kind).f1 for kind in kinds]
    return {
        "micro F1": 100 * entity_f1(truth, found).f1,
        "macro F1": 100 * float(np.mean(each)),
    }


def mails(setting: Setting) -> tuple[list[Any], list[list[str]]]:
    """Attributes and tags of every token of the announcements."""
    rows = CORPORA["seminars"].rows(setting.data("seminars"))
    if setting.quick:
        rows = [text[:60] for text in rows[:12]]
    X = [attributes(*zip(*((row[0], *row[2:]) for row in text), strict=True)) for text in rows]
    return X, [[row[1] for row in text] for text in rows]


def sentences(setting: Setting, part: str) -> tuple[list[Any], list[list[str]]]:
    """Attributes and tags of every word."""
    rows = read_columns(setting.data("wnut17") / f"{part}.conll", separator="\t")
    X = [attributes([word for word, _ in sentence]) for sentence in rows]
    return X, [[coarse(tag) for _, tag in sentence] for sentence in rows]


def coarse(tag: str) -> str:
    mark, _, kind = tag.partition("-")
    return f"{mark}-{kind if kind in KINDS else 'other'}" if kind else mark


def chosen(X: list[Any], y: list[list[str]], most: int | None) -> tuple[list[Any], list[list[str]]]:
    """Sentences with a link, and as many without one that name something; ``most`` of each."""
    linked = [m for m, x in enumerate(X) if skips(x)][:most]
    named = [m for m, x in enumerate(X) if not skips(x) and set(y[m]) != {"O"}][: len(linked)]
    return [X[m] for m in linked + named], [y[m] for m in linked + named]


EXPERIMENTS = {
    "vision": vision,
    "hints": hints,
    "plain": plain,
    "ner": ner,
    "seminars": seminars,
    "seminar_sample": seminar_sample,
    "conll": conll,
    "conll_sample": conll_sample,
}

if __name__ == "__main__":
    sys.exit(main("camel", EXPERIMENTS))
