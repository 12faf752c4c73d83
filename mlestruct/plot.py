"""Pictures of fits and predictions; each draws on ``ax`` (or new axes) and returns the axes.

Colours are those of Okabe and Ito and the map cividis, which colour-blind people can tell apart;
nothing is told by colour alone. Needs the extra ``mlestruct[plot]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlestruct.structures.base import Array, as_count, as_integers, as_numbers

BLUE, ORANGE, GREY, MAP = "#0072B2", "#E69F00", "#999999", "cividis"
WIDEST = 6.0  # points of a sure pair's line
History = Sequence[tuple[int, float, float, float]]


def gap(
    history: History,
    against: Literal["calls", "seconds"] = "calls",
    *,
    ax: Any = None,
    label: str | None = None,
) -> Any:
    """Gap of every round of a fit (its ``history_``); the dot is the last one, which is certified.

    Calls are of the oracle, or evaluations of as many examples on the direct route.
    """
    if against not in ("calls", "seconds"):
        raise ValueError(f"against is calls or seconds, not {against!r}")
    rows = np.array(history, dtype=float).reshape(-1, 4)
    rows = rows[np.isfinite(rows[:, 3]) & (rows[:, 3] > 0)]
    if len(rows) == 0:
        raise ValueError("no round of this history has a positive, finite gap")
    x, y = rows[:, 0 if against == "calls" else 1], rows[:, 3]
    ax = _axes(ax)
    style = ("-", "--", "-.", ":")[sum(line.get_linestyle() != "None" for line in ax.lines) % 4]
    (line,) = ax.plot(x, y, style, label=label)
    ax.plot(x[-1:], y[-1:], "o", color=line.get_color())
    ax.set(yscale="log", xlabel=against, ylabel="gap")
    if label is not None:
        ax.legend()
    return ax


def matrix(tau: ArrayLike, *, outcome: ArrayLike | None = None, ax: Any = None) -> Any:
    """Probability of every (row, column) pair; the pairs of an outcome are circled."""
    table = _table(tau, "(rows, columns)")
    if outcome is not None:
        columns = as_integers(outcome, "the outcome's columns")
        if columns.shape != table.shape[:1] or (columns >= table.shape[1]).any():
            raise ValueError(f"outcome {columns.tolist()} names no column for each row")
    ax = _heat(table, _axes(ax))
    ax.set(xlabel="column", ylabel="row")
    if outcome is not None:
        _circles(ax, columns[columns >= 0], np.flatnonzero(columns >= 0), len(columns))
    return ax


def sequence(
    tau: ArrayLike,
    classes: Sequence[Any] | None = None,
    *,
    outcome: Sequence[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Probability of every label (from below) along a sequence; an outcome's labels are circled."""
    table = _table(tau, "(length, labels)")
    names = list(range(table.shape[1])) if classes is None else list(classes)
    labels = None if outcome is None else np.asarray(outcome).tolist()
    if len(names) != table.shape[1]:
        raise ValueError(f"{len(names)} classes for {table.shape[1]} labels")
    if labels is not None and (len(labels) != len(table) or not set(labels) <= set(names)):
        raise ValueError(f"outcome {labels} is no label for each of {len(table)} positions")
    ax = _heat(table.T, _axes(ax), origin="lower")
    ax.set(xlabel="position", ylabel="label")
    ax.set_yticks(range(len(names)), [str(name) for name in names])
    if labels is not None:
        places = [names.index(label) for label in labels]
        _circles(ax, np.arange(len(places)), np.array(places), len(table))
    return ax


def picture(tau: ArrayLike, state: int = 1, *, ax: Any = None) -> Any:
    """Probability of one label at every pixel of a grid, from (rows, columns, labels)."""
    table, state = _table(tau, "(rows, columns, labels)"), as_count(state, "state")
    if state >= table.shape[2]:
        raise ValueError(f"state is {state}, and there are {table.shape[2]} labels")
    ax = _heat(table[:, :, state], _axes(ax))
    ax.set(xlabel="column", ylabel="row")
    return ax


def matching(graph: Any, *, ax: Any = None) -> Any:
    """Lines as wide as a pair is probable; pairs of the matching in front, in their own colour.

    ``graph`` is what :func:`mlestruct.readers.graphs.to_networkx` makes. Two columns if it has
    sides, else a circle; improbable pairs vanish by their width.
    """
    import networkx as nx

    ax, nodes, sides = _axes(ax), list(graph), nx.get_node_attributes(graph, "bipartite")
    place = {node: (y, x) for node, (x, y) in nx.circular_layout(graph).items()}
    if sided := len(sides) == len(nodes):
        for side in (0, 1):
            members = [node for node in nodes if sides[node] == side]
            heights = np.linspace(1, -1, len(members)).tolist()
            place |= {v: (2.0 * side - 1.0, y) for v, y in zip(members, heights, strict=True)}
    for chosen, colour in ((False, GREY), (True, ORANGE)):
        pairs = [pair for pair in graph.edges if graph.edges[pair].get("matched", False) == chosen]
        if pairs:
            width = [WIDEST * graph.edges[pair]["probability"] for pair in pairs]
            how: Any = {"edge_color": colour, "label": "matched" if chosen else "other pairs"}
            lines = nx.draw_networkx_edges(graph, place, pairs, width, ax=ax, **how)
            lines.set_zorder(1 + chosen)
    xy = np.array([place[node] for node in nodes])
    ax.plot(xy[:, 0], xy[:, 1], "o", color=BLUE, markersize=5, zorder=3)
    for node, (x, y) in zip(nodes, xy.tolist(), strict=True):
        beside = 1.13 * x, y if sided else 1.13 * y
        ax.annotate(str(node), (x, y), beside, ha="center", va="center")
    ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
    ax.set_axis_off()
    ax.legend(loc="upper right", bbox_to_anchor=(1.15, 1.08), frameon=False)
    return ax


def weights(summary: Any, *, top: int = 20, ax: Any = None) -> Any:
    """The largest estimates, with their intervals where both ends are known.

    ``summary`` is a model's ``summary()``, or the model.
    """
    summary = summary.summary() if hasattr(summary, "summary") else summary
    top = as_count(top, "top", 1)
    order = np.argsort(-np.abs(summary.weights), kind="stable")[:top][::-1]
    values, place = summary.weights[order], np.arange(len(order))
    ax = _axes(ax)
    ax.axvline(0.0, color=GREY, linewidth=1)
    ax.plot(values, place, "o", color=BLUE, label="estimate")
    if (intervals := summary.intervals) is not None:
        known = np.isfinite(intervals[order]).all(axis=1)
        label = f"{100 * summary.level:g} % interval"
        ax.hlines(place[known], *intervals[order][known].T, color=BLUE, linewidth=2, label=label)
        ax.legend()
    ax.set_yticks(place, [summary.names[j] for j in order])
    ax.set(xlabel="weight")
    return ax


def dots(
    names: Sequence[str],
    values: Sequence[float],
    spans: Sequence[tuple[float, float]] | None = None,
    *,
    mark: float | None = None,
    label: str = "",
    ax: Any = None,
) -> Any:
    """A dot per name, first on top, with an interval where there is one, and a line at ``mark``."""
    for what, given in (("values", values), ("spans", spans)):
        if given is not None and len(given) != len(names):
            raise ValueError(f"{len(given)} {what} for {len(names)} names")
    ax, place = _axes(ax), np.arange(len(names))[::-1]
    if mark is not None:
        ax.axvline(mark, color=GREY, linewidth=1)
    if spans is not None:
        known = np.isfinite(np.asarray(spans, dtype=float).reshape(-1, 2)).all(axis=1)
        ends = np.asarray(spans, dtype=float).reshape(-1, 2)[known]
        ax.hlines(place[known], *ends.T, color=BLUE, linewidth=2)
    ax.plot(values, place, "o", color=BLUE)
    ax.set_yticks(place, names)
    ax.set(xlabel=label)
    return ax


def calibration(report: Any, *, ax: Any = None) -> Any:
    """Share that came true against predicted probability, with the number of parts in each bin.

    ``report`` is an estimator's ``calibration(X, y)``.
    """
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1, label="perfect")
    ax.vlines(report.predicted, *report.interval, color=BLUE, linewidth=2, label="95 % interval")
    ax.plot(report.predicted, report.observed, "o-", color=BLUE, linewidth=1)
    for p, share, count in zip(report.predicted, report.observed, report.count, strict=True):
        ax.annotate(f"{count:,}", (p, share), (6, -10), textcoords="offset points", fontsize=7)
    ends, title = (-0.03, 1.03), f"calibration error {report.error:.3f}"
    ax.set(xlim=ends, ylim=ends, aspect="equal", title=title)
    ax.set(xlabel="predicted probability", ylabel="share that came true")
    ax.legend(loc="upper left")
    return ax


def _table(tau: ArrayLike, shape: str) -> Array:
    """Probabilities in an array of this many axes."""
    table = as_numbers(tau, "probabilities")
    if table.ndim != shape.count(",") + 1 or table.size == 0:
        raise ValueError(f"probabilities are {shape}, not {table.shape}")
    return table


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _heat(table: Array, ax: Any, origin: Literal["upper", "lower"] = "upper") -> Any:
    from matplotlib.ticker import MaxNLocator

    image = ax.imshow(table, vmin=0.0, vmax=1.0, cmap=MAP, origin=origin, aspect="equal")
    ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.04, 1)), label="probability")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _circles(ax: Any, x: NDArray[Any], y: NDArray[Any], count: int) -> None:
    """Rings that show on dark and bright cells alike."""
    size = min(12.0, 150.0 / max(count, 1))
    for width, colour in ((3.0, "white"), (1.5, "black")):
        ax.plot(x, y, "o", mfc="none", mec=colour, mew=width, ms=size)
