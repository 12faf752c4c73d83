"""Results that show themselves: words in a terminal, a table in a notebook, a frame, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from mlestruct.errors import visible

SHOWN = 20  # rows of a table that are printed


class Shown:
    """What a result offers beside ``print``.

    Interface: ``columns()`` → lists of one length by name, a row for each thing that was found;
    ``remarks()`` → lines that stand below the table; ``plot(ax=None)`` → matplotlib's axes.

    >>> from mlestruct import Certificate
    >>> Certificate(0.5, 0.0, 100.0, "hull", "exact").columns()["relative"]
    [0.005]
    """

    def __init_subclass__(cls, **more: Any) -> None:
        """Whatever names are in its words, a terminal shows them and obeys none of their signs."""
        super().__init_subclass__(**more)
        words = cls.__dict__.get("__str__")
        if words is not None:
            setattr(cls, "__str__", lambda self: visible(words(self)))  # noqa: B010

    def columns(self) -> dict[str, list[Any]]:
        """Lists of one length by name."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """What stands below the table; nothing by default."""
        return []

    def plot(self, ax: Any = None) -> Any:
        """Draw on ``ax``, or on new axes; returns the axes."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """A pandas data frame of :meth:`columns`."""
        try:
            import pandas
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                "to_frame needs pandas (pip install pandas); columns() gives the same as lists"
            ) from missing
        return pandas.DataFrame(self.columns())

    def _printed(self) -> tuple[list[Any], list[tuple[Any, ...]], list[str]]:
        """The names of the columns, the first rows, and what stands below them."""
        columns = self.columns()
        rows = list(zip(*columns.values(), strict=True))
        left = len(rows) - SHOWN
        more = [f"… and {left} more rows: to_frame() has all"] if left > 0 else []
        return [*columns], rows[:SHOWN], [*more, *self.remarks()]

    def __str__(self) -> str:
        names, rows, below = self._printed()
        return visible("\n".join([aligned(names, rows), *below]))

    def _repr_html_(self) -> str:
        """For notebooks: the first rows, and the remarks."""
        names, rows, below = self._printed()
        head, body = _row("th", names), "".join(_row("td", row) for row in rows)
        lines = "".join(f"<p>{_text(line)}</p>" for line in below)
        return f"<div><table><thead>{head}</thead><tbody>{body}</tbody></table>{lines}</div>"


def aligned(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in plain text, two spaces between its columns; measured numbers in four digits."""
    lines = [
        [f"{v:.4g}" if isinstance(v, float) else "" if v is None else str(v) for v in row]
        for row in (head, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join(f"  {'  '.join(cells)}".rstrip() for cells in padded)


def _row(cell: str, values: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_text(value)}</{cell}>' for value in values)}</tr>"


def _text(value: Any) -> str:
    """A measured number in four digits, nothing for None, escaped words as they are."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}".replace("-", "−")
    return "" if value is None else escape(visible(str(value)))
