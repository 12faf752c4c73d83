"""Contrastive free energies (2005): skip-chain models of names, and grids with hidden labels.

`seminars` is the paper's Table 1 on the paper's corpus: which tokens of the seminar announcements
name the speaker, by five-fold cross-validation over all mails. Words are tied to their neighbours,
and to equal words that begin with a capital. A 2-clique model has one table of weights for each
kind of tie, a 4-clique model also tables for attributes of the two words. `f1` is the same table on
a second corpus, wnut17's training sentences (which tokens are in a person's name), where 7 % of the
sentences have a tie between equal words: it says little about skip-chains. `seminar_sample` is
the table, and `seminar_curve` F1 over k, on four quarters of the announcements, 60 mails to learn
from and 60 to label in each; `curve` is the latter on tweets, `hidden` hides a third of the labels
of grids, `others` runs the rest of the paper's family.

Fixed before the first run: the features, λ = 1/10 (the paper's prior variance 10), a relative
stationarity of 1e-3 or 200 rounds of L-BFGS, ε = 1e-4. All models label a token where belief
propagation's pseudo-marginal exceeds ½. Training time is CPU time of the learner in one thread,
after a first fit that compiles. On the announcements belief propagation also learns with cold
messages, as the paper's did, by two schedules: `sequential` sends along the chain and back, the
tree order, and `residual` lets nodes wait whose neighbours hardly moved.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import binomtest

import mlestruct as ms
from mlestruct.estimators import SkipChainModel, capitalised_pairs
from mlestruct.families.contrastive.objectives import BetheSteps, Limit
from mlestruct.inference.sum_product import SumProduct
from mlestruct.learners import contrastive, exact_mle, lbp, pseudo_likelihood
from mlestruct.readers import read_columns
from mlestruct.structures.entropy import Entropy
from papers._run import Row, Setting, main
from papers.relaxations import (
    BlockSteps,
    FrankWolfeSteps,
    GibbsSteps,
    TreeSteps,
    small_batches,
)

FOLDS, SEED = 5, 0
QUARTERS, SAMPLE = 4, 60  # of all mails: so many of each to learn from, and as many to label
LAM, TOL, ROUNDS, QUICK = 0.1, 1e-3, 200, 5
LAMS = (0.01, LAM, 1.0, 10.0)
KIKUCHI_ROUNDS = 20
CURVE = (1, 2, 3, 5, 10, 15, 50, 500)
BASELINE = "ML-BP"
HIDDEN = 1 / 3
PAIRS = BlockSteps(lambda graph: graph.scope.reshape(-1, 2))  # any two neighbours at once
HEADER = 12  # lines of a mail that are told apart

Make = Callable[..., Any]


def bethe(k: int) -> Make:
    return partial(contrastive, k=k)


def by_logits(k: int) -> Make:
    """The paper's own steps: down the slopes by logits, which carry a factor q(1−q)."""
    return partial(contrastive, k=k, free_energy=BetheSteps(k, by="logits"))


def cold(schedule: str) -> Make:
    """ML-BP whose messages begin anew at every evaluation."""

    def messages(batch: Any) -> SumProduct:
        entropy = Entropy.of(batch, 1.0, allow_nonconvex=True)
        return SumProduct.of(entropy, schedule=schedule, takeover=False, residual=1e-8, sweeps=200)

    return partial(contrastive, k=None, free_energy=Limit(messages))


def from_cf5(make: Make = lbp, **settings: Any) -> Any:
    """ML-BP that begins at CF5's weights."""
    first = bethe(5)(**settings)
    return replace(make(**settings), begin=lambda *known: first.fit(*known).theta)


METHODS: dict[str, Make] = {
    "CF5-Bethe": bethe(5),
    "CF10-Bethe": bethe(10),
    "CF15-Bethe": bethe(15),
    "CF500-Bethe": bethe(500),
    "CF10-MF": partial(contrastive, k=10, free_energy="mean_field"),
    "ML-MF": partial(contrastive, k=None, free_energy="mean_field"),
    BASELINE: lbp,
    "pseudo-likelihood": pseudo_likelihood,
}
TREE, RESIDUAL = "ML-BP, cold, tree order", "ML-BP, cold, residual order"
COLD: dict[str, Make] = {TREE: cold("sequential"), RESIDUAL: cold("residual")}
CLAIM = {TREE: COLD[TREE], "CF5-Bethe": METHODS["CF5-Bethe"]}
SLOW = "ML-MF", "CF500-Bethe"  # two thirds of the time
FAST = CLAIM | COLD | {name: make for name, make in METHODS.items() if name not in SLOW}
TABLE_1 = FAST | {name: METHODS[name] for name in SLOW}
PATH = (1, 10, 50, 200)  # rounds of CF5 after which gradients are timed
GRADIENTS = ("CF5-Bethe", "CF10-Bethe", "CF15-Bethe", TREE, RESIDUAL)
STARTS: dict[str, Make] = {
    BASELINE: lbp,
    TREE: COLD[TREE],
    "ML-BP, from CF5's weights": from_cf5,
    "ML-BP, cold, from CF5's weights": partial(from_cf5, COLD[TREE]),
}
PAPER = {  # F1 of its 2-clique and 4-clique models on speakers in seminar announcements
    "CF5-Bethe": (70.1, 74.9),
    "CF10-Bethe": (68.4, 75.2),
    "CF15-Bethe": (61.8, 76.5),
    "CF500-Bethe": (63.4, 75.9),
    "CF10-MF": (57.9, 55.9),
    "ML-MF": (61.0, 65.3),
    BASELINE: (68.2, 78.7),
    TREE: (68.2, 78.7),
}


@dataclass(frozen=True)
class Corpus:
    """Files of a data set, and the end of the tags that count as positive."""

    files: tuple[str, ...]
    kind: str

    def rows(self, folder: Path) -> list[list[tuple[str, ...]]]:
        """Every sentence or mail: its rows of token, tag and, in mails, line."""
        return [row for name in self.files for row in read_columns(folder / name, separator="\t")]


CORPORA = {
    "seminars": Corpus(("train.conll", "test.conll"), "speaker"),
    "wnut17": Corpus(("train.conll",), "person"),
}


@dataclass(frozen=True)
class Fold:
    """Sentences to learn from and sentences to label, as batches with features."""

    batch: Any
    features: Any
    unseen: Any
    unseen_features: Any
    truth: Any

    def positive(self, named: Sequence[int]) -> Any:
        """Labels of all unseen tokens: these are in a name."""
        return np.isin(np.arange(len(self.truth)), named)


@dataclass(frozen=True)
class Fitted:
    """What :func:`one_fold` says of every fold that was run, by the fold's number."""

    runs: dict[int, Row]

    def total(self, key: str, other: Fitted | None = None) -> Any:
        """The sum over folds, those that another has too."""
        return sum(run[key] for f, run in self.runs.items() if other is None or f in other.runs)

    @property
    def f1(self) -> Row:
        """Its mean and spread."""
        each = [run["F1"] for run in self.runs.values()]
        spread = float(np.std(each, ddof=1)) if len(each) > 1 else None
        return {"F1 mean": float(np.mean(each)), "F1 sd": spread}

    @property
    def rested(self) -> str:
        return f"{self.total('rested')} of {len(self.runs)}"

    def against(self, other: Fitted, folds: Sequence[Fold]) -> Any:
        """McNemar's test on the folds that both have."""
        both = [f for f in self.runs if f in other.runs]
        truth = np.concatenate([folds[f].truth for f in both])
        says = [
            np.concatenate([folds[f].positive(one.runs[f]["named"]) for f in both])
            for one in (self, other)
        ]
        return mcnemar(truth, *says)


class Comparison(NamedTuple):
    """Parts that only the first or only the second has right; the chance of so uneven a split."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(truth: Any, first: Any, second: Any) -> Comparison:
    """McNemar's exact test: where two models disagree, each is right as often by chance.

    It takes parts to be independent, which neighbours in a structure are not: its p is too small.

    >>> mcnemar(np.ones(4), np.array([1, 1, 1, 0]), np.array([0, 0, 0, 1]))
    Comparison(only_first=3, only_second=1, p_value=0.625)
    """
    one, two = first == truth, second == truth
    a, b = int((one & ~two).sum()), int((two & ~one).sum())
    return Comparison(a, b, float(binomtest(a, a + b).pvalue) if a + b else 1.0)


def f1(setting: Setting) -> Iterator[Row]:
    """F1 by method and clique size; how much longer ML-BP takes; McNemar's test against it."""
    folds = {cliques: prepared(setting, "wnut17", cliques) for cliques in (2, 4)}
    yield from table(setting, "f1", folds, METHODS, BASELINE)


def seminars(setting: Setting) -> Iterator[Row]:
    """The same on the paper's corpus, against belief propagation by the paper's cold messages.

    First every fold of CF5 and of the paper's own order, then of the others, the slowest last.
    """
    folds = {cliques: prepared(setting, "seminars", cliques) for cliques in (2, 4)}
    for methods in (CLAIM, FAST, TABLE_1):
        for f in range(FOLDS):
            for name, make in methods.items():
                for cliques, parts in folds.items():
                    crossed(setting, f"seminars, {cliques} cliques, {name}", make, parts[: f + 1])
    yield from table(setting, "seminars", folds, TABLE_1, TREE)


def table(
    setting: Setting,
    corpus: str,
    folds: Mapping[int, Sequence[Fold]],
    methods: Mapping[str, Make],
    baseline: str,
) -> Iterator[Row]:
    """Every method's rows as they are found, the baseline's first."""
    for name in sorted(methods, key=lambda name: name != baseline):
        for cliques, parts in folds.items():
            first, found = (
                crossed(setting, f"{corpus}, {cliques} cliques, {one}", methods[one], parts)
                for one in (baseline, name)
            )
            if first is None or found is None:
                continue
            test = found.against(first, parts)
            yield {
                "cliques": cliques,
                "method": name,
                "folds": len(found.runs),
                **found.f1,
                "paper's F1": PAPER[name][cliques // 4] if name in PAPER else None,
                "training CPU s": found.total("seconds"),
                f"{baseline}'s time / its own": first.total("seconds", found)
                / found.total("seconds", first),
                "rounds": found.total("rounds"),
                "came to rest": found.rested,
                f"tokens only it / only {baseline} has right": f"{test[0]} / {test[1]}",
                "McNemar p": test.p_value,
            }


def quarters(count: int) -> list[tuple[Any, Any]]:
    """Which texts to learn from and which to label, where whole folds take too long.

    Four disjoint quarters of a seeded permutation, so that results are independent.
    """
    parts = np.array_split(np.random.default_rng(SEED).permutation(count), QUARTERS)
    half = min(SAMPLE, min(map(len, parts)) // 2)
    return [(part[:half], part[half : 2 * half]) for part in parts]


def sampled_folds(setting: Setting, cliques: int) -> list[Fold]:
    """Quarters of the announcements: 60 mails to learn from, 60 others to label."""
    X, y = sentences(setting, "seminars")
    return [held_out(X, y, kept, left, cliques) for kept, left in quarters(len(X))]


def seminar_sample(setting: Setting) -> Iterator[Row]:
    """Table 1 by quarters of the corpus: for machines on which the five folds take too long."""
    folds = {cliques: sampled_folds(setting, cliques) for cliques in (2, 4)}
    yield from table(setting, "seminar_sample", folds, METHODS | COLD, BASELINE)


def seminar_starts(setting: Setting) -> Iterator[Row]:
    """Does ML-BP label as it does for want of a better maximum? Its value from several starts.

    ``minus log-likelihood`` is ML-BP's own, with the ridge, of all quarters.
    """
    for cliques in (2, 4):
        folds = sampled_folds(setting, cliques)
        for name, make in STARTS.items():
            found = crossed(setting, f"seminar_starts, {cliques} cliques, {name}", make, folds)
            if found is None:
                continue
            yield {
                "cliques": cliques,
                "method": name,
                **found.f1,
                "minus log-likelihood": -found.total("value"),
                "rounds": found.total("rounds"),
                "came to rest": found.rested,
            }


def seminar_gradients(setting: Setting) -> Iterator[Row]:
    """CPU ms of one gradient at the same weights, those of CF5's fit after so many rounds.

    Of the first quarter; every learner begins cold, after one call that compiles.
    """
    for cliques in (2, 4):
        fold = sampled_folds(setting, cliques)[0]
        for rounds in PATH[:1] if setting.quick else PATH:
            search = ms.FrankWolfe(tol=0.0, rounds=rounds)
            theta = bethe(5)(regulariser=LAM, solver=search).fit(fold.batch, fold.features).theta
            scores = {"score": fold.features.potentials(theta)}
            cost = {}
            for name in GRADIENTS:
                objective = TABLE_1[name](regulariser=LAM).objective(fold.batch)
                for _ in range(2):
                    began = time.process_time()
                    objective(fold.batch, scores, None, 0.0)
                    cost[name] = 1e3 * (time.process_time() - began)
            ratio = {f"{TREE} / CF5-Bethe": cost[TREE] / cost["CF5-Bethe"]}
            yield {"cliques": cliques, "after rounds of CF5": rounds, **cost, **ratio}


def curve(setting: Setting) -> Iterator[Row]:
    """F1 and time over k, for 2-cliques, by our steps and by the paper's."""
    yield from over_k(setting, prepared(setting, "wnut17", 2), "wnut17", CURVE)


def seminar_curve(setting: Setting) -> Iterator[Row]:
    """The same on quarters of the paper's corpus, up to k = 50: 500 takes as long as all others."""
    yield from over_k(setting, sampled_folds(setting, 2), "seminars", CURVE[:-1])


def over_k(setting: Setting, folds: list[Fold], corpus: str, ks: Sequence[int]) -> Iterator[Row]:
    """A row for each k and kind of step; the figure of both."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for name, steps in (("marginals", bethe), ("logits", by_logits)):
        lines[name] = []
        for k in ks:
            found = crossed(setting, f"{corpus}, {name}, k = {k}", steps(k), folds)
            if found is None:
                continue
            lines[name].append((k, found.f1["F1 mean"]))
            row = {"steps by": name, "k": k, "folds": len(found.runs), **found.f1}
            cost = {"training CPU s": found.total("seconds"), "rounds": found.total("rounds")}
            yield row | cost
    if setting.plot is not None:
        import matplotlib.pyplot as plt

        figure, axis = plt.subplots(figsize=(5, 3))
        for name, line in lines.items():
            axis.semilogx(*zip(*line, strict=True), "o-", label=f"steps by {name}")
        axis.set(xlabel="k (steps of belief optimisation)", ylabel=f"F1 (mean of {len(folds)})")
        axis.legend()
        setting.save(figure, f"contrastive_curve_{corpus}")


def cliques(setting: Setting) -> Iterator[Row]:
    """Do 4-cliques learn tweets by heart? F1 of CF10 where it learned and elsewhere, over λ."""
    both = {count: prepared(setting, "wnut17", count) for count in (2, 4)}
    for lam in LAMS[1:2] if setting.quick else LAMS:
        for count, folds in both.items():
            parts = [
                setting.once(
                    f"cliques, {count} cliques, lambda {lam:g}, fold {f}",
                    partial(seen_and_unseen, lam, fold, solver(setting)),
                )
                for f, fold in enumerate(folds)
            ]
            found = [part for part in parts if part is not None]
            if found:
                means = {key: float(np.mean([part[key] for part in found])) for key in found[0]}
                yield {"lambda": lam, "cliques": count, "folds": len(found), **means}


def seen_and_unseen(lam: float, fold: Fold, search: ms.FrankWolfe) -> Row:
    """F1 of CF10-Bethe on the sentences it learned from, and on the others."""
    theta = bethe(10)(regulariser=lam, solver=search).fit(fold.batch, fold.features).theta
    known = fold.batch.target[ones(fold.batch)] > 0.5
    seen = marginals(fold.batch, fold.features.potentials(theta)) > 0.5
    unseen = marginals(fold.unseen, fold.unseen_features.potentials(theta)) > 0.5
    return {
        "F1, seen": 100 * f1_of(known, seen),
        "F1, unseen": 100 * f1_of(fold.truth, unseen),
    }


def f1_of(truth: Any, found: Any) -> float:
    """F1 of what was found, 1 or True where it is true."""
    true = np.asarray(truth) == 1
    return 2.0 * float((true & found).sum()) / max(int(true.sum()) + int(found.sum()), 1)


def hidden(setting: Setting) -> Iterator[Row]:
    """Grids with a third of the labels hidden in training, against the same with all labels.

    Again with the edges' table multiplied so that its coupling is that which ML-BP learns.
    """
    sizes = (6, 1, 10) if setting.quick else (60, 1, 100)
    train, _, test = ms.data.grids(sizes, side=6 if setting.quick else 10, seed=SEED)
    rng = np.random.default_rng(SEED)
    partly = [np.where(rng.random(len(y)) < HIDDEN, -1, y) for y in train.y]
    methods = {
        BASELINE: partial(contrastive, k=None),
        "CF1-Bethe": bethe(1),
        "CF5-Bethe": bethe(5),
        "CF50-Bethe": bethe(50),
        "CF10-MF": METHODS["CF10-MF"],
        "CF10-trees": partial(contrastive, free_energy=TreeSteps(10)),
        "pseudo-likelihood": pseudo_likelihood,
    }
    unseen, judged = grids_of(test.X, test.y)
    truth, likely = np.concatenate(test.y), None
    for name, make in methods.items():
        row: Row = {"method": name}
        for labels, outcomes in (("all", train.y), ("two thirds", partly)):
            batch, features = grids_of(train.X, outcomes)
            theta = make(regulariser=LAM, solver=solver(setting)).fit(batch, features).theta
            likely = coupling(theta) if likely is None else likely  # ML-BP's, all labels
            scaled = np.append(theta[:-4], theta[-4:] * likely / coupling(theta))
            for what, weights in (("", theta), (" at ML-BP's coupling", scaled)):
                wrong = (marginals(unseen, judged.potentials(weights)) > 0.5) != truth
                row[f"test error %{what}, {labels} labels"] = 100 * float(wrong.mean())
            row[f"coupling, {labels} labels"] = coupling(theta)
        yield row


def coupling(theta: Any) -> float:
    """How much two equal neighbours' table is worth above two unequal ones'."""
    return float(theta[-4:] @ (1, -1, -1, 1))


def others(setting: Setting) -> Iterator[Row]:
    """The rest of the paper's family on grids of 6 × 6 with every label: Kikuchi, samples, blocks.

    ``from exact``: root mean square difference of the test pixels' P(1) from those by the weights
    of exact maximum likelihood. All P(1) are belief propagation's.
    """
    sizes, side = ((3, 1, 10), 3) if setting.quick else ((60, 1, 100), 6)
    train, _, test = ms.data.grids(sizes, side=side, seed=SEED)
    batch, features = explicit(ms.grid(side, side), train.X, train.y)
    unseen, judged = explicit(ms.grid(side, side), test.X, test.y)
    squares = explicit(ms.plaquettes(side, side), train.X, train.y)
    likely = exact_mle(regulariser=LAM, solver=solver(setting)).fit(batch, features).theta
    best = marginals(unseen, judged.potentials(likely))
    for name, make, problem in (
        ("exact maximum likelihood", exact_mle, (batch, features)),
        (BASELINE, lbp, (batch, features)),
        ("CF10-Bethe", bethe(10), (batch, features)),
        ("CF10-Bethe, by logits", by_logits(10), (batch, features)),
        ("contrastive divergence, 1", partial(sampled, 1), (batch, features)),
        ("contrastive divergence, 10", partial(sampled, 10), (batch, features)),
        ("pseudo-likelihood", pseudo_likelihood, (batch, features)),
        ("its generalisation, pairs", partial(contrastive, free_energy=PAIRS), (batch, features)),
        ("CF10-Kikuchi", kikuchi, squares),
    ):
        began = time.process_time()
        model = make(regulariser=LAM, solver=solver(setting)).fit(*problem)
        seconds = time.process_time() - began
        tau = marginals(unseen, judged.potentials(model.theta))
        wrong = (tau > 0.5) != np.concatenate(test.y)
        away = float(np.sqrt(np.mean((tau - best) ** 2)))
        error = 100 * float(wrong.mean())
        yield {"method": name, "test error %": error, "from exact": away, "CPU s": seconds}


def sampled(k: int, **settings: Any) -> Any:
    """Contrastive divergence by k Gibbs sweeps."""
    return contrastive(free_energy=GibbsSteps(k), steps=small_batches(), **settings)


def kikuchi(solver: ms.FrankWolfe, **settings: Any) -> Any:
    """Ten Frank-Wolfe steps of Kikuchi's free energy, over mixtures of whole labellings.

    They have no gradient to come to rest by, and a round takes some fifteen evaluations.
    """
    few = replace(solver, rounds=min(solver.rounds, KIKUCHI_ROUNDS))
    steps = FrankWolfeSteps(10, rho=1, oracle=best_rows)
    return contrastive(solver=few, free_energy=steps, **settings)


def best_rows(graph: ms.RegionGraph, score: Any) -> Any:
    """The best labelling of a square binary grid: what each row's states gain with all below.

    Regions lie in one row, or in two that touch. O(rows · 4^columns); a linear program over the
    same tables takes thirty to a hundred times as long.
    """
    alone, both = entries(graph)
    best, after = score[alone[-1]].sum(axis=0)[:, 0], []
    for here, below in zip(alone[-2::-1], both[::-1], strict=True):
        ahead = score[below].sum(axis=0) + best
        after.append(ahead.argmax(axis=1))
        best = score[here].sum(axis=0)[:, 0] + ahead.max(axis=1)
    rows = [best.argmax()]
    for follows in after[::-1]:
        rows.append(follows[rows[-1]])
    return graph.encode((np.array(rows)[:, None] >> np.arange(len(rows)) & 1).ravel())


@lru_cache(maxsize=1)
def entries(graph: ms.RegionGraph) -> tuple[list[Any], list[Any]]:
    """Coordinates that a row's states (regions × states × 1), and those of two rows, choose."""
    side = isqrt(graph.n_nodes)
    bits = np.arange(2**side)[:, None] >> np.arange(side) & 1
    alone: list[list[Any]] = [[] for _ in range(side)]
    both: list[list[Any]] = [[] for _ in range(side - 1)]
    for region, first in zip(graph.regions, graph.table_start[:-1], strict=True):
        rows = [v // side for v in region]
        entry = np.zeros((2**side, 1), dtype=np.int64)
        for v, row in zip(region, rows, strict=True):
            states = bits[:, v % side]
            entry = 2 * entry + (states[:, None] if row == min(rows) else states)
        (both if max(rows) > min(rows) else alone)[min(rows)].append(first + entry)
    return [np.stack(each) for each in alone], [np.stack(each) for each in both]


def explicit(graph: Any, X: Sequence[Any], outcomes: Sequence[Any]) -> tuple[Any, Any]:
    """Weights of :func:`grids_of` on any structure that begins with the grid's nodes and edges."""
    batch = ms.Batch.of(graph, outcomes)
    edges = sp.kron(np.ones((ms.grid(*X[0].shape).n_factors, 1)), sp.eye_array(4))
    parts = []
    for x in X:
        nodes = sp.kron(np.stack([np.ones(x.size), x.ravel()], axis=1), sp.eye_array(2))
        both = sp.block_diag([nodes, edges], format="csr")
        rest = sp.csr_array((graph.size - both.shape[0], both.shape[1]))
        parts.append(sp.vstack([both, rest], format="csr"))
    return batch, ms.Sparse.of(batch, parts)


def grids_of(X: Sequence[Any], outcomes: Sequence[Any]) -> tuple[Any, Any]:
    graph = ms.grid(*X[0].shape)
    batch = ms.Batch.of(graph, list(map(ms.Partial, outcomes)))
    return batch, ms.Tied.of(batch, [np.stack([np.ones(x.size), x.ravel()], axis=1) for x in X])


def sentences(setting: Setting, name: str) -> tuple[list[Any], list[Any]]:
    """Attributes of every word, and 1 where it is in a name of the corpus's kind."""
    corpus = CORPORA[name]
    rows = corpus.rows(setting.data(name))
    if setting.quick:
        rows = [text for text in rows if any(row[1].endswith(corpus.kind) for row in text)][:30]
        rows = [text[:60] for text in rows]
    X = [attributes(*zip(*((row[0], *row[2:]) for row in text), strict=True)) for text in rows]
    y = [np.array([int(row[1].endswith(corpus.kind)) for row in text]) for text in rows]
    return X, y


def attributes(words: Sequence[str], lines: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Observational features: the word, its ends and shape, its neighbours, and its line's number.

    Lines of a mail are layout: the first dozen are told apart (the header), later ones are alike.
    """
    layout: list[dict[str, str]] = [{} for _ in words]
    if lines is not None:
        layout = [{"line": line if int(line) < HEADER else "later"} for line in lines]
    lower = ["<s>", *(word.lower() for word in words), "</s>"]
    shapes = ["<s>", *(shape(word) for word in words), "</s>"]
    return [
        {
            "constant": 1.0,
            "word": word,
            "lower": lower[i + 1],
            "before": lower[i],
            "after": lower[i + 2],
            "prefix": word[:3],
            "suffix": word[-3:],
            "shape": shapes[i + 1],
            "shapes": "|".join(shapes[i : i + 3]),
            **layout[i],
        }
        for i, word in enumerate(words)
    ]


def shape(word: str) -> str:
    """Letters as x and X, digits as 0, repeats once."""
    kinds = [
        "0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word
    ]
    return "".join(c for c, before in zip(kinds, ["", *kinds], strict=False) if c != before)


def skips(x: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    return capitalised_pairs([position["word"] for position in x])


def words_of(x: Sequence[dict[str, Any]], i: int, j: int) -> dict[str, Any]:
    """What a 4-clique sees of its two words."""
    left, right = x[i], x[j]
    return {
        "left": left["shape"],
        "right": right["shape"],
        "both": f"{left['shape']}|{right['shape']}",
        "before": left["before"],
        "after": right["after"],
    }


def prepared(setting: Setting, corpus: str, cliques: int) -> list[Fold]:
    """Each fold held out once."""
    X, y = sentences(setting, corpus)
    parts = np.array_split(np.random.default_rng(SEED).permutation(len(X)), FOLDS)
    return [held_out(X, y, np.setdiff1d(np.arange(len(X)), part), part, cliques) for part in parts]


def held_out(X: list[Any], y: list[Any], kept: Any, part: Any, cliques: int) -> Fold:
    """Sentences to learn from and others; attributes are those of the sentences learned from."""
    train, test = ([X[m] for m in kept], [y[m] for m in kept]), [X[m] for m in part]
    model = SkipChainModel(skips, words_of if cliques == 4 else None)
    model.prepare(model.taken(*train))
    batch = ms.Batch.of(model.structures(train[0]), train[1])
    unseen = ms.Batch.of(model.structures(test))
    features = model.features(batch, train[0]), model.features(unseen, test)
    truth = np.concatenate([y[m] for m in part])
    return Fold(batch, features[0], unseen, features[1], truth)


def crossed(setting: Setting, name: str, make: Make, folds: Sequence[Fold]) -> Fitted | None:
    """Learn without each fold, and label it; None if no fold is known of a run that was cut."""
    learner = make(regulariser=LAM, solver=solver(setting))
    parts = [
        setting.once(f"{name}, fold {f}", partial(one_fold, learner, fold))
        for f, fold in enumerate(folds)
    ]
    runs = {f: part for f, part in enumerate(parts) if part is not None}
    return Fitted(runs) if runs else None


def one_fold(learner: Any, fold: Fold) -> Row:
    """Learn from its sentences, the first of them alone before, to compile; label the others."""
    few = np.arange(min(5, len(fold.batch)))
    learner.fit(fold.batch.select(few), fold.features.select(few))
    began = time.process_time()
    model = learner.fit(fold.batch, fold.features)
    seconds = time.process_time() - began
    found = marginals(fold.unseen, fold.unseen_features.potentials(model.theta)) > 0.5
    return {
        "F1": 100 * f1_of(fold.truth, found),
        "seconds": seconds,
        "rounds": len(model.history),
        "rested": int(model.converged),
        "value": float(model.certificate.objective),
        "named": np.flatnonzero(found).tolist(),
    }


def solver(setting: Setting) -> ms.FrankWolfe:
    return ms.FrankWolfe(tol=TOL, rounds=QUICK if setting.quick else ROUNDS)


def marginals(batch: Any, scores: Any) -> Any:
    """P(1) of every binary variable by belief propagation."""
    entropy = Entropy.of(batch, 1.0, allow_nonconvex=True)
    tau = SumProduct.of(entropy, takeover=False).many(batch, scores).tau
    return tau[ones(batch)]


def ones(batch: Any) -> Any:
    """The coordinates that say that a binary variable is 1."""
    nodes = [np.arange(batch.structure(m).n_nodes) for m in range(len(batch))]
    return np.concatenate([batch.offsets[m] + 2 * i + 1 for m, i in enumerate(nodes)])


EXPERIMENTS = {
    "seminars": seminars,
    "seminar_sample": seminar_sample,
    "seminar_starts": seminar_starts,
    "seminar_curve": seminar_curve,
    "seminar_gradients": seminar_gradients,
    "f1": f1,
    "curve": curve,
    "cliques": cliques,
    "hidden": hidden,
    "others": others,
}

if __name__ == "__main__":
    sys.exit(main("contrastive", EXPERIMENTS))
