"""Charts as inline SVG: no library, no script, nothing said by colour alone.

Widths are those of a telephone, so that text stays legible there; colours are the page's own, for
light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.html import Html, element

LONGEST = 17  # letters of a label: capitals of about 8 units fit as well
WIDTH, ROW, LABELS = 360, 22, 150  # user units; on a telephone one is about a pixel
APART = 26  # units between two numbers of an axis, at least
PERCENTS = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 70, 100)
FACTORS = tuple(m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5))
MOST = 6.0  # |log factor| that is drawn; intervals beyond run off the chart
INK, PALE, PLUS, MINUS, CARD = "--ink", "--line", "--plus", "--minus", "--card"


def factors(
    names: Sequence[str], middle: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> Html:
    """exp of each value and interval, a dot with a line per name, on an axis of ratios.

    Hollow where the line crosses 1. Intervals without an end run to the edge.
    """
    bottom = ROW * len(names) + 8
    ends = np.clip([*low, *high, *middle, 0.0], -MOST, MOST)
    x = Axis(float(ends.min()), float(ends.max()), LABELS, WIDTH - 14)
    ticks = {float(np.log(f)): f"{f:g}" for f in FACTORS if x.low <= np.log(f) <= x.high}
    marks = [*x.marked(spread(x, ticks, first=0.0), 0, bottom), line(x(0), 0, x(0), bottom, INK)]
    for k, (name, m, a, b) in enumerate(zip(names, middle, low, high, strict=True)):
        y, colour = ROW * k + 14, PLUS if a > 0 else MINUS if b < 0 else INK
        m, a, b = np.clip([m, a, b], x.low, x.high).tolist()
        marks += [
            text(LABELS - 8, y + 4, brief(name), "end"),
            line(x(a), y, x(b), y, colour, 2),
            circle(x(m), y, colour, hollow=a <= 0 <= b),
        ]
    return svg(bottom + 20, f"95 % intervals of {len(names)} effects", marks)


def shares(values: Mapping[str, float], marked: float) -> Html:
    """A bar per name from 0 to 100, its value beside it, and a line at ``marked``."""
    bottom = ROW * len(values) + 8
    x = Axis(0.0, 100.0, LABELS, WIDTH - 34)
    marks = x.marked({t: f"{t:g}" for t in (0.0, 25.0, 50.0, 75.0, 100.0)}, 0, bottom)
    for k, (name, value) in enumerate(values.items()):
        y, end = ROW * k + 6, x(value)
        marks += [
            text(LABELS - 8, y + 12, brief(name), "end"),
            element(
                "rect",
                x=x(0),
                y=y,
                width=round(end - x(0), 1),
                height=15,
                style=f"fill:var({PLUS})",
            ),
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
    for root, words in spread(x, ticks).items():
        marks += [
            line(x(0), y(root), x(top), y(root), PALE),
            text(x(root), bottom + 16, words, "middle"),
            text(x(0) - 6, y(root) + 4, words, "end"),
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
