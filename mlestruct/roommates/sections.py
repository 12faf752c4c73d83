"""The sections of a report, its opening lines and its charts, which are inline SVG.

Each section says in words what its numbers mean; one without content is left out. Charts say
nothing by colour alone; they are as wide as a telephone, so that text stays legible there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.estimators import Calibration
from mlestruct.html import Html, by_field, element, folded, paragraphs, shown, table
from mlestruct.roommates.cells import written
from mlestruct.roommates.evaluation import Evaluation
from mlestruct.roommates.frames import Column, Table, missing
from mlestruct.roommates.plan import Plan
from mlestruct.roommates.questionnaire import Answers
from mlestruct.roommates.summary import PairContrast, RoommateSummary
from mlestruct.roommates.words import REPORT, number, percent, words

CHARTED = 30  # effects in the picture; all are in the table
GUESSING = 50.0  # right picks in 100 without knowing anything
KINDS = {"i": "whole numbers", "f": "numbers", "b": "yes/no", "O": "text"}
SHOWN = 5  # different values of a column
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
    picture = factors(top)
    caption = words("effects chart", shown=len(top), all=len(found))
    told = [element("li", effect(c, asked)) for c in found if c.low > 0 or c.high < 0]
    parts = [
        figure(picture, caption),
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
    seen = "learned from" if found.learned else "held out"
    picks = {words(name): 100 * area for name, area in found.auc.items() if name in REPORT}
    top: dict[str, list[Any]] = {
        words("top among"): list(found.top),
        words("top model"): [percent(share) for share in found.top.values()],
        words("top random"): [percent(found.top_random[k]) for k in found.top],
    }
    return [
        *paragraphs(words(seen, pairs=found.pairs, learned=found.learned)),
        figure(shares(picks, GUESSING), words("ranked chart")),
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
        figure(picture, words("calibration")),
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


TOP = 3  # answers named
BASELINES = ("random", "logistic", "score", "constant", "ceiling")  # probabilities, then scores


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


LONGEST = 17  # letters of a label: capitals of about 8 units fit as well
WIDTH, ROW, LABELS = 360, 22, 150  # user units; on a telephone one is about a pixel
APART = 26  # units between two numbers of an axis, at least
PERCENTS = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 70, 100)
FACTORS = tuple(m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5))
MOST = 6.0  # |log factor| that is drawn; intervals beyond run off the chart
INK, PALE, PLUS, MINUS, CARD = "--ink", "--line", "--plus", "--minus", "--card"


def factors(found: Sequence[PairContrast]) -> Html:
    """exp of each estimate and interval, a dot with a line per name, on an axis of ratios.

    Hollow where the line crosses 1. Intervals without an end run to the edge.
    """
    bottom = ROW * len(found) + 8
    spans = np.array([(c.estimate, c.low, c.high) for c in found])
    ends = np.clip([*spans.ravel(), 0.0], -MOST, MOST)
    x = Axis(float(ends.min()), float(ends.max()), LABELS, WIDTH - 14)
    ticks = {float(np.log(f)): f"{f:g}" for f in FACTORS if x.low <= np.log(f) <= x.high}
    marks = [*x.marked(spread(x, ticks, first=0.0), 0, bottom), line(x(0), 0, x(0), bottom, INK)]
    for k, (contrast, (_, a, b)) in enumerate(zip(found, spans.tolist(), strict=True)):
        y, colour = ROW * k + 14, PLUS if a > 0 else MINUS if b < 0 else INK
        m, a, b = np.clip(spans[k], x.low, x.high).tolist()
        marks += [
            text(LABELS - 8, y + 4, brief(contrast.name.replace(" |difference|", "")), "end"),
            line(x(a), y, x(b), y, colour, 2),
            circle(x(m), y, colour, hollow=a <= 0 <= b),
        ]
    return svg(bottom + 20, f"95 % intervals of {len(found)} effects", marks)


def shares(values: Mapping[str, float], marked: float) -> Html:
    """A bar per name from 0 to 100, its value beside it, and a line at ``marked``."""
    bottom = ROW * len(values) + 8
    x = Axis(0.0, 100.0, LABELS, WIDTH - 34)
    marks = x.marked({t: f"{t:g}" for t in (0.0, 25.0, 50.0, 75.0, 100.0)}, 0, bottom)
    for k, (name, value) in enumerate(values.items()):
        y, end = ROW * k + 6, x(value)
        marks += [
            text(LABELS - 8, y + 12, brief(name), "end"),
            line(x(0), y + 7.5, end, y + 7.5, PLUS, 15),
            text(end + 4, y + 12, f"{value:.0f}"),
        ]
    marks.append(line(x(marked), 0, x(marked), bottom, INK))
    label = ", ".join(f"{name} {value:.0f}" for name, value in values.items())
    return svg(bottom + 20, label, marks)


def calibration_plot(
    predicted: ArrayLike,
    observed: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    labels: Sequence[str],
) -> Html:
    """Observed frequency against predicted probability; square roots spread out small ones."""
    roots = np.sqrt(np.stack([predicted, observed, low, high], axis=1))
    top, bottom = float(roots.max()), WIDTH - 60
    x, y = Axis(0.0, top, 46, WIDTH - 14), Axis(0.0, top, bottom, 20)
    ticks = {float(np.sqrt(p / 100)): f"{p:g}" for p in PERCENTS if np.sqrt(p / 100) <= top}
    marks = [
        line(x(0), y(0), x(top), y(top), INK),
        text(x(top), bottom + 34, labels[0], "end"),
        text(4, 12, labels[1]),
    ]
    for root, told in spread(x, ticks).items():
        marks += [
            line(x(0), y(root), x(top), y(root), PALE),
            text(x(root), bottom + 16, told, "middle"),
            text(x(0) - 6, y(root) + 4, told, "end"),
        ]
    for p, o, a, b in roots.tolist():
        marks += [line(x(p), y(a), x(p), y(b), PLUS, 2), circle(x(p), y(o), PLUS)]
    return svg(bottom + 40, f"{labels[1]} / {labels[0]}: {len(roots)}", marks)


@dataclass(frozen=True)
class Axis:
    """A linear scale from [low, high] to [start, stop]."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / max(self.high - self.low, 1e-12)
        return round(self.start + share * (self.stop - self.start), 1)

    def marked(self, ticks: Mapping[float, str], top: float, bottom: float) -> list[Html]:
        """A pale line and its words per tick."""
        lines = [line(self(t), top, self(t), bottom, PALE) for t in ticks]
        return lines + [text(self(t), bottom + 15, words, "middle") for t, words in ticks.items()]


def spread(axis: Axis, ticks: Mapping[float, str], first: float | None = None) -> dict[float, str]:
    """Ticks that do not collide: ``first`` whatever else, then the others in their order."""
    kept: dict[float, str] = {}
    for value in (*([] if first is None or first not in ticks else [first]), *ticks):
        room = min((abs(axis(value) - axis(other)) for other in kept), default=np.inf)
        if room >= APART:
            kept[value] = ticks[value]
    return kept


def figure(picture: Html, caption: str) -> Html:
    return element("figure", picture, element("figcaption", caption))


def svg(height: float, label: str, marks: Sequence[Html]) -> Html:
    return element(
        "svg", marks, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=label, font_size=12
    )


def brief(name: str) -> str:
    """As much of a name as fits beside a chart."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def text(x: float, y: float, words: object, anchor: str = "start") -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, style=f"fill:var({INK})")


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> Html:
    style = f"stroke:var({colour});stroke-width:{width}"
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, style=style)


def circle(x: float, y: float, colour: str, hollow: bool = False) -> Html:
    fill = CARD if hollow else colour
    style = f"fill:var({fill});stroke:var({colour});stroke-width:1.5"
    return element("circle", cx=x, cy=y, r=4, style=style)


class Surveyed(NamedTuple):
    """One column: its type, gaps, different values, first and last of them, and a remark."""

    column: str
    type: str
    missing: int
    different: int
    values: str
    remark: str


def survey(table: Table) -> list[Surveyed]:
    """Every column in the table's order."""
    return [_surveyed(name, column) for name, column in table.columns.items()]


def _surveyed(name: str, column: Column) -> Surveyed:
    gone = missing(column)
    present = column[~gone]
    seen = np.unique(present.astype(str) if present.dtype.kind == "O" else present)
    remark = "constant: it tells nobody apart" if len(seen) == 1 else ""
    if len(seen) == 0:
        remark = "empty"
    elif column.dtype.kind == "f" and np.isinf(column).any():
        remark = "holds infinite numbers"
    elif len(seen) == len(column) > 1:
        remark = "different in every row"
    return Surveyed(name, KINDS[column.dtype.kind], int(gone.sum()), len(seen), _span(seen), remark)


def _span(seen: Column) -> str:
    """All of few values, else the first and the last."""
    told = [" ".join(str(written(v)).split()) for v in seen.tolist()]
    words = [word if len(word) <= 16 else f"{word[:15]}…" for word in told]
    return ", ".join(words) if len(words) <= SHOWN else f"{words[0]} … {words[-1]}"
