"""Results that show themselves: words in a terminal, a table in a notebook, a frame, a picture."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from mlestruct.errors import visible

SHOWN = 20  # rows of a notebook's table


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

    def _repr_html_(self) -> str:
        """For notebooks: the first rows, and the remarks."""
        columns = self.columns()
        count = len(next(iter(columns.values()), []))
        more = [f"… and {count - SHOWN} more rows: to_frame() has all"] if count > SHOWN else []
        rows = list(zip(*columns.values(), strict=True))[:SHOWN]
        head, body = _row("th", columns), "".join(_row("td", row) for row in rows)
        below = "".join(f"<p>{_text(line)}</p>" for line in (*more, *self.remarks()))
        return f"<div><table><thead>{head}</thead><tbody>{body}</tbody></table>{below}</div>"


def _row(cell: str, values: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_text(value)}</{cell}>' for value in values)}</tr>"


def _text(value: Any) -> str:
    """A measured number in four digits, nothing for None, escaped words as they are."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}".replace("-", "−")
    return "" if value is None else escape(visible(str(value)))
