"""HTML by nesting: what is not markup is text, and escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import NoneType
from typing import Any

import numpy as np

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, invisible signs, and those that turn the direction of what follows; not \\t and \\n."""


def visible(text: str) -> str:
    r"""The text with an escape where it has a sign that would be obeyed instead of seen.

    >>> visible("exe.\u202efdp") == r"exe.\u202efdp"
    True
    """
    return HIDDEN.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)


class Html(str):
    """Markup; every other string is text."""

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Html:
    """``element("a", "x < y", href="#z")``: text and attribute values are escaped.

    Children may be nested lists. In an attribute's name ``_`` is a hyphen; one at the end drops.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{inner(children)}</{name}>")


def inner(children: Iterable[object]) -> str:
    """Children one after another, text escaped."""
    parts = []
    for child in children:
        if isinstance(child, (list, tuple)):
            parts.append(inner(child))
        else:
            parts.append(child if isinstance(child, Html) else escape(visible(str(child))))
    return "".join(parts)


def table(columns: Mapping[str, Sequence[Any]], caption: str = "") -> Html:
    """Columns by name; numbers are rounded to four digits and stand to the right."""
    kind = [{"class_": "number"} if _numeric(values) else {} for values in columns.values()]
    head = [element("th", n, scope="col", **k) for n, k in zip(columns, kind, strict=True)]
    rows = [
        element("tr", [element("td", shown(v), **k) for k, v in zip(kind, row, strict=True)])
        for row in zip(*columns.values(), strict=True)
    ]
    title = [element("caption", caption)] if caption else []
    body = [element("thead", element("tr", head)), element("tbody", rows)]
    return element("div", element("table", title, body), class_="wide")


def shown(value: Any) -> str:
    """A measured number in four digits, whole numbers and words as they are, nothing for None."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}".replace("-", "−")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, (float, int, np.number, NoneType)) for v in values)
