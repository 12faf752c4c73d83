"""The sections of a room-mates report: each says in words what its numbers mean.

A section without content is left out by the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from mlestruct.estimators import Calibration
from mlestruct.estimators.roommates import Evaluation, PairContrast, Plan, RoommateSummary
from mlestruct.estimators.roommates.questionnaire import Answers
from mlestruct.html import Html, by_field, element, folded, paragraphs, shown, table
from mlestruct.report.charts import calibration_plot, factors, shares
from mlestruct.report.headline import effect
from mlestruct.report.survey import Surveyed
from mlestruct.report.words import TEXTS, number, percent, words

CHARTED = 30  # effects in the picture; all are in the table
GUESSING = 50.0  # right picks in 100 without knowing anything
LIMITS = ("wishes", "cause", "probability", "future", "groups")


def data(
    groups: Mapping[str, int], columns: Sequence[Surveyed], notes: Sequence[str]
) -> list[Html]:
    """Who was paired up, and the answers that were compared."""
    listed: dict[str, list[Any]] = {
        words("group"): list(groups),
        words("members"): list(groups.values()),
    }
    return [
        table(listed, words("groups")),
        folded(words("columns"), by_field(Surveyed._fields, columns)),
        element("ul", [element("li", note) for note in notes]) if notes else Html(),
    ]


def effects(summary: RoommateSummary, asked: Sequence[Answers]) -> list[Html]:
    """Every answer's influence: the surest in a picture, all in words and in a table."""
    found = summary.surest if summary.sure else []
    if not found:
        return paragraphs(words("nothing sure"))
    top = found[:CHARTED]
    picture = factors(
        [c.name.replace(" |difference|", "") for c in top],
        [c.estimate for c in top],
        [c.low for c in top],
        [c.high for c in top],
    )
    caption = words("effects chart", shown=len(top), all=len(found))
    told = [element("li", effect(c, asked)) for c in found if c.low > 0 or c.high < 0]
    parts = [
        element("figure", picture, element("figcaption", caption)),
        *([element("ul", told[:CHARTED])] if told else []),
        *paragraphs(words("effects meaning")),
        folded(words("all effects"), _numbers(found)),
    ]
    if summary.unidentified:
        parts += paragraphs(words("untold", names=", ".join(summary.unidentified)))
    return parts


def _numbers(found: Sequence[PairContrast]) -> Html:
    rows = [(c.name, exp(c.estimate), c.estimate, c.error, c.low, c.high) for c in found]
    return by_field(("", "×", "log", "±", "2.5 %", "97.5 %"), rows)


def evaluation(found: Evaluation | None, calibrated: Calibration | None) -> list[Html]:
    """How often the right pair is picked, beside simpler rules; whether probabilities hold."""
    if found is None:
        return []
    picks = {words(name): 100 * area for name, area in found.auc.items() if name in TEXTS}
    top: dict[str, list[Any]] = {
        words("top among"): list(found.top),
        words("top model"): [percent(share) for share in found.top.values()],
        words("top random"): [percent(found.top_random[k]) for k in found.top],
    }
    return [
        *paragraphs(
            words(
                "learned from" if found.learned else "held out",
                pairs=found.pairs,
                learned=found.learned,
            )
        ),
        element("figure", shares(picks, GUESSING), element("figcaption", words("ranked chart"))),
        table(top, words("top caption")),
        *calibration(calibrated),
    ]


def calibration(found: Calibration | None) -> list[Html]:
    """Whether probabilities came true as often as they say."""
    if found is None:
        return []
    low, high = found.interval
    columns = {
        words("pairs column"): found.count.tolist(),
        words("predicted"): [percent(p) for p in found.predicted],
        words("came true"): [percent(p) for p in found.observed],
        words("from"): [percent(p) for p in low],
        words("to"): [percent(p) for p in high],
    }
    axes = words("predicted"), words("came true")
    picture = calibration_plot(found.predicted, found.observed, low, high, axes)
    return [
        element("figure", picture, element("figcaption", words("calibration"))),
        folded(words("numbers"), table(columns)),
    ]


def proof(summary: RoommateSummary, plan: Plan, found: Evaluation | None) -> list[Html]:
    """What is proven, what is not, and the technical words folded away."""
    certificate = summary.certificate
    best = (
        words("fit proven", relative=number(certificate.relative, 1))
        if certificate.withheld is None
        else words("fit unproven", why=certificate.withheld)
    )
    technical = [element("p", str(certificate))]
    if found is not None:
        low, high = found.log_likelihood
        numbers = {
            "estimate": shown(found.log_likelihood_estimate),
            "low": shown(low),
            "high": shown(high),
            "random": shown(found.log_likelihood_random),
        }
        technical += paragraphs(words("likelihood", pairs=found.pairs, **numbers), *found.notes)
    return [
        *paragraphs(best, words("plan best", gap=number(max(plan.gap, 0.0), 1))),
        *paragraphs(words("scope")),
        folded(words("technical"), technical),
    ]


def limits() -> list[Html]:
    """What the numbers cannot tell."""
    return [element("ul", [element("li", words(f"limit {name}")) for name in LIMITS])]
