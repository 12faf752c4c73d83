"""Lines over a common axis, in as many panels as are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from papers._run import Setting

STYLES = ("o-", "s--", "^:", "x-.")  # nothing is told by colour alone
COLOURS = ("#0072B2", "#E69F00", "#555555", "#009E73")
Series = Mapping[str, tuple[Any, Any]]
"""Label → (x, y)."""


def lines(
    setting: Setting,
    name: str,
    panels: Mapping[str, Series],
    x: str,
    y: str,
    *,
    log: bool = False,
    diagonal: bool = False,
) -> None:
    """Save ``name``, if figures are asked for: a panel per title, x and y its axes' labels."""
    if setting.plot is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(panels) + 0.6, 3.0), layout="constrained")
    for ax, (title, series) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for number, (label, given) in enumerate(series.items()):
            ax.plot(*given, STYLES[number % 4], color=COLOURS[number % 4], ms=4, lw=1, label=label)
        if diagonal:
            ax.axline((0, 0), slope=1, color="#999999", lw=0.8)
        ax.set(title=title, xlabel=x, ylabel=y, xscale="log" if log else "linear")
        ax.legend(frameon=False, fontsize=8)
    setting.save(figure, f"mle_struct_{name}")
