"""The sections of a room-mates report: each says in words what its numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlestruct.estimators import Calibration
from mlestruct.estimators.roommates import Contrast, Evaluation, Explanation, Pair, Plan, Summary
from mlestruct.report.charts import bars, calibration_plot, intervals
from mlestruct.report.page import Html, by_field, element, folded, paragraphs, shown, table
from mlestruct.report.survey import Surveyed

CHARTED = 30  # contrasts in the picture; all are in the table
REASONS = 3  # answers named for and against a pair
NEAR = 2  # other partners named for a person

RANKED = {
    "marginal": "by probability",
    "score": "by score",
    "constant": "equal weights",
    "random": "at random",
}

Name = Callable[[Any], str]


def data(
    groups: Mapping[str, int], columns: Sequence[Surveyed], notes: Sequence[str]
) -> list[Html]:
    """Who was paired up, and the answers that were compared."""
    return [
        table({"group": list(groups), "people": list(groups.values())}, "People to pair up"),
        folded("The columns used", by_field(Surveyed._fields, columns)),
        element("ul", [element("li", note) for note in notes]) if notes else Html(),
    ]


def weights(summary: Summary) -> list[Html]:
    """Contrasts with intervals: the surest in a picture, all in a table."""
    found = sorted(summary.contrasts, key=lambda c: -abs(c.estimate) / max(c.error, 1e-12))
    top = found[:CHARTED]
    picture = intervals(
        [c.name for c in top],
        [c.estimate for c in top],
        [c.low for c in top],
        [c.high for c in top],
    )
    words = (
        f"The {len(top)} surest of {len(found)}. Above 0: pairs with more of it come about more "
        "often; below 0: less often. Where the line crosses 0 (hollow dot) the direction is open. "
        "Of all such intervals, not only these, 95 in 100 hold what this method would learn from "
        "unlimited data, which need not be the truth."
    )
    parts = [
        element("figure", picture, element("figcaption", words)),
        folded("All contrasts", by_field(Contrast._fields, found, "Debiased estimates")),
    ]
    if summary.unidentified:
        parts.append(folded("What these pairs do not tell", ", ".join(summary.unidentified)))
    return parts


def certificate(summary: Summary, plan: Plan) -> list[Html]:
    """What is proven, and what is not."""
    proof = summary.certificate
    fit = (
        f"The weights are the best ones for the stated objective, a surrogate of the likelihood "
        f"of the observed pairs: no others reach a value more than {proof.gap:.2g} better, which "
        f"is {proof.relative:.0e} of it."
        if proof.withheld is None
        else f"The weights are not proven to be the best: {proof.withheld}."
    )
    best = (
        f"The plan keeps every rule. Its total is {plan.objective:.4g}; no other plan's is larger "
        f"by more than {plan.gap:.1g}."
    )
    scope = (
        "Both are proven by bounds computed with the answer, up to rounding; they say nothing "
        "about whether people choose the way the model has it. Evaluation and calibration do."
    )
    return [*paragraphs(fit, best, scope), folded("The certificate's own words", str(proof))]


def evaluation(found: Evaluation | None) -> list[Html]:
    """Ranking and probability of the true pairs, beside baselines."""
    if found is None:
        return paragraphs(
            "These people's own pairs are not known here, so nothing was evaluated. "
            "`mlestruct roommates evaluate` does, for a year whose pairs are known."
        )
    areas = {RANKED[name]: area for name, area in found.auc.items()}
    top: dict[str, list[Any]] = {
        "among": list(found.top),
        "model": [percent(share) for share in found.top.values()],
        "at random": [percent(found.top_random[k]) for k in found.top],
    }
    low, high = found.log_likelihood
    likely = (
        f"The log-likelihood of all {found.pairs} pairs together is about "
        f"{shown(found.log_likelihood_estimate)}, and proven to be between {shown(low)} and "
        f"{shown(high)}; pairing at random within the groups has "
        f"{shown(found.log_likelihood_random)}. Higher is better."
    )
    words = (
        "The chance that a true pair ranks above one that did not come about (AUC). Equal weights "
        "means −1 on every difference: a guess without learning."
    )
    return [
        element("figure", bars(areas, 0.4, 1.0), element("figcaption", words)),
        table(top, "Share of people whose partner is among their most probable ones"),
        *paragraphs(likely, *found.notes),
    ]


def calibration(found: Calibration | None) -> list[Html]:
    """Whether probabilities came true as often as they say."""
    if found is None:
        return paragraphs("Calibration needs pairs that came about; none are known here.")
    words = (
        "Pairs by predicted probability, in bins that each expect as many true pairs. Dots on the "
        "line: probabilities mean what they say. Bars are 95 % intervals; both axes are square "
        "roots, to spread out small probabilities."
    )
    low, high = found.interval
    columns = {
        "pairs": found.count.tolist(),
        "predicted": [percent(p) for p in found.predicted],
        "came true": [percent(p) for p in found.observed],
        "from": [percent(p) for p in low],
        "to": [percent(p) for p in high],
    }
    picture = calibration_plot(found.predicted, found.observed, low, high)
    return [element("figure", picture, element("figcaption", words)), table(columns)]


def plan(found: Plan, name: Name) -> list[Html]:
    """Every pair, its probability, and who else was near for each of the two, group by group."""
    words = (
        "A pair's probability says how often it would come about if these people paired up many "
        "times, as far as the model knows: a pseudo-probability. One in ten is much, since "
        "everybody has many possible partners; and the plan must suit all."
    )
    alone = ", ".join(name(person) for person in found.left_over) or "nobody"
    groups: dict[str, list[Pair]] = {}
    for pair in found.pairs:
        groups.setdefault(pair.group, []).append(pair)
    tables = [table(_pairs(found, pairs, name), group) for group, pairs in groups.items()]
    return [*paragraphs(words, f"Without a partner: {alone}."), *tables]


def _pairs(found: Plan, pairs: Sequence[Pair], name: Name) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "room": [pair.room for pair in pairs],
        "first": [name(pair.a) for pair in pairs],
        "second": [name(pair.b) for pair in pairs],
        "probability": [percent(pair.probability) for pair in pairs],
        "others for the first": [_near(found, pair.a, name) for pair in pairs],
        "others for the second": [_near(found, pair.b, name) for pair in pairs],
    }
    return {key: values for key, values in columns.items() if set(values) != {None}}


def _near(found: Plan, person: Any, name: Name) -> str:
    """The most probable partners but for the plan's."""
    pairing, me = found.find(person)
    tau = pairing.at(me, np.arange(len(pairing.ids)))[1]
    partner = pairing.solution.partner[me]
    order = np.argsort(-tau, kind="stable")[: NEAR + 1]
    near = [k for k in order if tau[k] > 0 and k != partner]
    return ", ".join(f"{name(pairing.ids[k])} ({percent(tau[k])})" for k in near[:NEAR])


def explanations(found: Sequence[Explanation], name: Name, protected: Sequence[str]) -> list[Html]:
    """For every pair of the plan, the answers that speak most for and against it."""
    columns: dict[str, list[Any]] = {
        "first": [name(e.a) for e in found],
        "second": [name(e.b) for e in found],
        "score": [e.score for e in found],
        "speaks for": [_reasons(e, 1.0) for e in found],
        "against": [_reasons(e, -1.0) for e in found],
    }
    if protected:
        columns["protected, in sum"] = [e.withheld for e in found]
    words = (
        "A score of 0 is an average partner for both; contributions add up to the score. In "
        "brackets, the two answers."
    )
    hidden = f"Not itemised, because they are protected: {', '.join(protected)}." * bool(protected)
    return [*paragraphs(words, hidden), table(columns)]


def _reasons(found: Explanation, sign: float) -> str:
    chosen = [c for c in found.contributions if sign * c.contribution > 0]
    chosen.sort(key=lambda c: -abs(c.contribution))
    return ", ".join(
        f"{c.column} ({c.answer_a}, {c.answer_b}) {c.contribution:+.2f}" for c in chosen[:REASONS]
    ).replace("-", "−")


def percent(share: float) -> str:
    """A share in two digits."""
    return f"{100 * share:.2g} %"


def limits(summary: Summary) -> list[Html]:
    """What the numbers cannot tell."""
    said = [
        "Pairs that came about are not pairs that went well. The model learns who shares with "
        "whom, from all that led to it: wishes, habits, and the office's own rules.",
        "Answers that go together with what was not asked speak for both. A weight is no cause.",
        f"Probabilities are pseudo-probabilities of a surrogate ({summary.bound}); trust them as "
        "far as the calibration above goes.",
        "Next year's people may differ from those learned from; nothing here measures that.",
        "Scores compare pairs within a group only.",
    ]
    return [element("ul", [element("li", words) for words in said])]
