"""Charts as inline SVG: no library, no script, nothing said by colour alone.

Widths are those of a telephone, so that text stays legible there; colours are two that the
colour-blind tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.report.page import Html, element, shown

LONGEST = 17  # letters of a label: capitals of about 8 units fit as well
WIDTH, ROW, LABELS = 360, 20, 150  # user units; on a telephone one is about a pixel
PERCENTS = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 70, 100)
INK, PALE, BLUE, RED = "#1a1a1a", "#d0d0d0", "#0072b2", "#d55e00"


def intervals(
    names: Sequence[str], middle: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> Html:
    """A dot with a line per name: blue above 0, red below it, hollow where the line crosses 0."""
    bottom = ROW * len(names) + 8
    x = Axis(min(0.0, *low), max(0.0, *high), LABELS, WIDTH - 12)
    marks = [*x.grid(0, bottom), line(x(0), 0, x(0), bottom, INK)]
    for k, (name, m, a, b) in enumerate(zip(names, middle, low, high, strict=True)):
        y, colour = ROW * k + 14, BLUE if a > 0 else RED if b < 0 else INK
        marks += [
            text(LABELS - 8, y + 4, brief(name), "end"),
            line(x(a), y, x(b), y, colour, 2),
            circle(x(m), y, colour, hollow=a <= 0 <= b),
        ]
    return svg(bottom + 20, f"95 % intervals of {len(names)} contrasts", marks)


def bars(values: Mapping[str, float], low: float, high: float) -> Html:
    """A bar per name from ``low`` on, its value beside it."""
    bottom = ROW * len(values) + 8
    x = Axis(low, high, LABELS, WIDTH - 50)
    marks = x.grid(0, bottom)
    for k, (name, value) in enumerate(values.items()):
        y, end = ROW * k + 7, x(float(np.clip(value, low, high)))
        box = element("rect", x=x(low), y=y, width=round(end - x(low), 1), height=14, fill=BLUE)
        marks += [
            text(LABELS - 8, y + 11, brief(name), "end"),
            box,
            text(end + 4, y + 11, f"{value:.3f}"),
        ]
    label = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
    return svg(bottom + 20, label, marks)


def calibration_plot(
    predicted: ArrayLike, observed: ArrayLike, low: ArrayLike, high: ArrayLike
) -> Html:
    """Observed frequency against predicted probability; square roots spread out small ones."""
    roots = np.sqrt(np.stack([predicted, observed, low, high], axis=1))
    top, bottom = float(roots.max()), WIDTH - 60
    x, y = Axis(0.0, top, 46, WIDTH - 14), Axis(0.0, top, bottom, 20)
    marks = [
        line(x(0), y(0), x(top), y(top), INK),
        text(x(top), bottom + 34, "predicted probability, %", "end"),
        text(4, 12, "share that came true, %"),
    ]
    for percent in PERCENTS:
        root = float(np.sqrt(percent / 100))
        if root <= top:
            marks += [
                line(x(0), y(root), x(top), y(root), PALE),
                text(x(root), bottom + 16, percent, "middle"),
                text(x(0) - 6, y(root) + 4, percent, "end"),
            ]
    for p, o, a, b in roots.tolist():
        marks += [line(x(p), y(a), x(p), y(b), BLUE, 2), circle(x(p), y(o), BLUE)]
    return svg(bottom + 40, f"Calibration in {len(roots)} bins", marks)


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

    @property
    def ticks(self) -> list[float]:
        """Round numbers inside, about four."""
        raw = max(self.high - self.low, 1e-12) / 4
        unit = 10.0 ** np.floor(np.log10(raw))
        step = unit * min((1, 2, 5, 10), key=lambda m: abs(np.log(m * unit / raw)))
        return (step * np.arange(np.ceil(self.low / step), self.high / step + 1e-9)).tolist()

    def grid(self, top: float, bottom: float) -> list[Html]:
        """A pale line and its number per tick."""
        lines = [line(self(t), top, self(t), bottom, PALE) for t in self.ticks]
        return lines + [text(self(t), bottom + 15, shown(t), "middle") for t in self.ticks]


def svg(height: float, label: str, marks: Sequence[Html]) -> Html:
    return element(
        "svg", marks, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=label, font_size=12
    )


def brief(name: str) -> str:
    """As much of a name as fits beside a chart."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def text(x: float, y: float, words: object, anchor: str = "start") -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, fill=INK)


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> Html:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)


def circle(x: float, y: float, colour: str, hollow: bool = False) -> Html:
    fill = "#ffffff" if hollow else colour
    return element("circle", cx=x, cy=y, r=4, fill=fill, stroke=colour, stroke_width=1.5)
