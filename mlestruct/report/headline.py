"""The lines that open a report: how many people, how good, what matters, in plain words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import exp

from mlestruct.estimators.roommates import Evaluation, PairContrast, Plan, RoommateSummary
from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.report.words import number, words

TOP = 3  # answers named
BASELINES = ("random", "logistic", "score", "constant", "ceiling")  # probabilities, then scores


def headline(
    plan: Plan, summary: RoommateSummary, asked: Sequence[Answers], found: Evaluation | None
) -> list[str]:
    """Who is paired up, how good that is, and which answers matter most."""
    return [
        whose(plan),
        words("untested") if found is None else picks(found),
        matters(summary, asked),
    ]


def whose(plan: Plan) -> str:
    """How many people, and how many of them have no partner."""
    alone = len(plan.singles)
    key = ("nobody alone", "one alone")[alone] if alone < 2 else "some alone"
    people = 2 * len(plan.pairs) + alone
    return words("people", people=people, pairs=len(plan.pairs), alone=words(key, count=alone))


def picks(found: Evaluation) -> str:
    """How often the right pair is picked, by the model and by simpler rules.

    The model's probabilities stand beside those of others, and its scores beside theirs.
    """
    others = [
        words(f"baseline {name}", share=f"{100 * found.auc[name]:.0f}")
        for name in BASELINES
        if name in found.auc
    ]
    return words("picks", model=f"{100 * found.auc['marginal']:.0f}", others=", ".join(others))


def matters(summary: RoommateSummary, asked: Sequence[Answers]) -> str:
    """The answers whose influence is surest, each as a factor."""
    sure = [c for c in summary.surest if c.low > 0 or c.high < 0]
    if not sure:
        return words("nothing sure")
    return words("matters most", effects="; ".join(effect(c, asked) for c in sure[:TOP]))


def effect(found: PairContrast, asked: Sequence[Answers]) -> str:
    """A contrast in words: how many times as often people share by it."""
    factor = number(exp(found.estimate))
    column, name = found.column, found.name
    own = next((answers for answers in asked if answers.column == column), None)
    if own is None:
        return words("own feature", column=name, factor=factor)
    if name == f"{column} same":
        return words("same", column=column, factor=factor)
    if name != f"{column} |difference|":
        a, _, b = name.removeprefix(f"{column} ").partition(" with ")
        return words("two answers", column=column, a=a, b=b, factor=factor)
    return words(_step(own), column=column, factor=factor)


def _step(asked: Answers) -> str:
    """What one unit of difference is: the whole question, one level, or a unit."""
    levels = asked.levels
    if len(levels) == 2 and levels[1] - levels[0] == 1:
        return "differ"
    return "per step" if all(b - a == 1 for a, b in itertools.pairwise(levels)) else "per unit"
