"""Room-mates: weights from one observed matching of 2,400 people, judged on the next year's.

The women of two years of ``mlestruct.data.roommates``: 14 questions, each with a weight for
|difference| and one for every unordered pair of answers; λ as in the paper. Judged by the area
under the ROC curve of the next year's pairs among all possible ones, beside −1 on every difference
(``constant``) and a structured SVM. ``frank_wolfe`` is MLE-Struct by the oracle alone, ``ROUNDS``
rounds of it. Then MLE-Struct's debiased contrasts with their 95 % intervals, by question, against
the weights that drew the pairs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mlestruct as ms
from papers._run import Row, Setting
from papers.mle_struct.clock import rounds_of
from papers.mle_struct.judge import area

Array = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
SIZE, QUICK, SEED, LAM, ROUNDS = 2400, 60, 2016, 100.0, 100
PUBLISHED = {"mle_struct": 0.659, "constant": 0.585, "ssvm": 0.504}
SETTINGS: dict[str, Any] = {"cohort": "year", "ordinal": "q*", "answers": True, "alpha": LAM}
STEPS = ms.FrankWolfe(tol=1e-3, rounds=ROUNDS)
LEARNERS = {
    "ssvm": ms.ssvm(regulariser=LAM, solver=STEPS),
    "frank_wolfe": ms.mle_struct(0.5, regulariser=LAM, solver=STEPS, route="frank_wolfe"),
}


class Year(NamedTuple):
    """A year's women, and who shared with whom."""

    people: Columns
    pairs: Columns

    def problem(self, questions: list[ms.Question]) -> tuple[ms.Batch[Any], ms.Pairs]:
        """One matching of all people, as learners take it."""
        ids = self.people["id"]
        ends = np.searchsorted(ids, np.stack([self.pairs["id_a"], self.pairs["id_b"]], axis=1))
        codes = np.stack([self.people[q.name] - int(q.levels[0]) for q in questions], axis=1)
        batch = ms.Batch.of(ms.Matching(len(ids)), [ends])
        return batch, ms.Pairs.of(batch, [codes], questions)


def roommates(setting: Setting) -> Iterator[Row]:
    """Areas and times by learner, then intervals by question."""
    first, second, truth = years(QUICK if setting.quick else SIZE)
    ms.RoommateModel(**SETTINGS).fit(*years(QUICK)[0])  # kernels are compiled before any clock runs
    start = time.process_time()
    model = ms.RoommateModel(**SETTINGS).fit(*first)
    seconds = time.process_time() - start
    judged = model.evaluate(*second).auc
    yield judgement("mle_struct", judged["score"], model.certificate_, seconds, seconds) | {
        "AUC, marginals": judged["marginal"],
        "people": len(first.people["id"]),
        "weights": len(model.coef_),
    }
    questions = [ms.Question.ordinal(q, levels(first.people[q])) for q in truth.difference]
    train, test = (year.problem(questions) for year in (first, second))
    constant = [-1.0 * (k == 0) for question in questions for k in range(len(question.weights))]
    yield judgement("constant", area(test[1].potentials(np.array(constant)), test[0].target))
    for name, learner in LEARNERS.items():
        taken, state = rounds_of(learner, *train)[-1]
        found = area(test[1].potentials(state.theta), test[0].target)
        yield judgement(name, found, state.certificate, taken, seconds)
    yield from intervals(setting, model, worths(truth, first.people))


def years(size: int) -> tuple[Year, Year, Any]:
    """Two years of so many women, and the weights that paired them up."""
    people, pairs, truth = ms.data.roommates(2 * size, 2, SEED)
    women = people["gender"] == "F"
    found = []
    for number in (1, 2):
        mine = women & (people["year"] == number)
        theirs = np.isin(pairs["id_a"], people["id"][mine])
        columns = {name: column[mine] for name, column in people.items() if name != "gender"}
        found.append(Year(columns, {name: column[theirs] for name, column in pairs.items()}))
    return found[0], found[1], truth


def levels(answers: NDArray[Any]) -> range:
    return range(int(answers.min()), int(answers.max()) + 1)


def judgement(
    learner: str, auc: float, proof: Any = None, seconds: float | None = None, base: float = 1.0
) -> Row:
    return {
        "learner": learner,
        "AUC": auc,
        "published": PUBLISHED.get(learner),
        "certificate": None if proof is None else proof.relative,
        "polytope": None if proof is None else proof.polytope,
        "seconds": seconds,
        "times as long": None if seconds is None else seconds / base,
        "lam": LAM,
    }


def worths(truth: Any, people: Columns) -> dict[str, float]:
    """The generator's own contrasts: each two answers' worth, less both answers' means."""
    found = {}
    for name, weight in truth.difference.items():
        given = levels(people[name])
        at = np.array(given)
        table = weight * np.abs(at[:, None] - at)
        for (asked, a, b), more in truth.answers.items():
            if asked == name:
                table[[given.index(a), given.index(b)], [given.index(b), given.index(a)]] += more
        centre = np.eye(len(at)) - (people[name][:, None] == at).mean(axis=0)
        table = centre @ table @ centre.T
        for a, b in combinations_with_replacement(range(len(at)), 2):
            found[f"{name} {at[a]} with {at[b]}"] = float(table[a, b])
    return found


def intervals(setting: Setting, model: Any, truth: dict[str, float]) -> Iterator[Row]:
    """How many intervals hold the generator's contrast, and how far estimates are from it.

    Where pairs are few for so many weights there are none: the library refuses them, and estimates
    are of the weights as they were learned.
    """
    rows, unsure = model.known_.told.rows, model.contrasts()
    found = [(row.estimate, row.error, row.high - row.estimate) for row in rows]
    found = found or [(row @ model.coef_, np.nan, np.nan) for _, row in unsure]
    names = [row.name for row in rows] or [name for name, _ in unsure]
    true, (estimate, error, half) = np.array([truth[name] for name in names]), np.array(found).T
    column = np.array([name.partition(" ")[0] for name in names])
    inside, told = np.abs(estimate - true) <= half, np.isfinite(error)
    for name in [*dict.fromkeys(column.tolist()), "all"]:
        mine = (column == name) | (name == "all")
        yield {
            "question": name,
            "contrasts": int(mine.sum()),
            "intervals": int(told[mine].sum()),
            "intervals with the truth": int(inside[mine & told].sum()),
            "mean |estimate − truth|": float(np.abs(estimate - true)[mine].mean()),
            "mean standard error": float(error[mine & told].mean()) if told[mine].any() else None,
            "largest |truth|": float(np.abs(true[mine]).max()),
        }
    if setting.plot is not None:
        draw(setting, true, estimate, half)


def draw(setting: Setting, true: Array, estimate: Array, half: Array) -> None:
    """Estimates with intervals over the weights that drew the pairs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 4.0))
    ax = figure.subplots()
    ax.errorbar(true, estimate, yerr=half, fmt=".", lw=0.7, ms=4, color="#0072B2")
    ax.axline((0, 0), slope=1, color="#999999", lw=1)
    ax.set(xlabel="generator's contrast", ylabel="estimate, 95 % interval")
    setting.save(figure, "mle_struct_roommates")
