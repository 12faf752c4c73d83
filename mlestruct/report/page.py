"""HTML by nesting: what is not markup is text, and escaped; one page without scripts or links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import NoneType
from typing import Any

import numpy as np

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 50rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; } nav a { color: #00527f; }
p, li { max-width: 42rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #444; font-size: .9rem; min-width: 18rem; }
summary { cursor: pointer; color: #00527f; margin: .5rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; border-bottom: 1px solid #ccc;
         vertical-align: top; }
th { border-bottom-color: #444; }
td.number, th.number { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } figure svg { display: block; width: 100%; max-width: 34rem; }
figcaption { color: #444; font-size: .9rem; }
.note { border-left: 4px solid #d55e00; padding-left: .8rem; }
@media print { nav { display: none; } body { max-width: none; font-size: 10.5pt; padding: 0; }
  h2 { break-after: avoid; } figure, tr { break-inside: avoid; } .wide { overflow: visible; }
  details::details-content { content-visibility: visible; } }
"""


class Html(str):
    """Markup; every other string is text."""

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Html:
    """``element("a", "x < y", href="#z")``: text and attribute values are escaped.

    Children may be nested lists. In an attribute's name ``_`` is a hyphen; one at the end drops.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{_inner(children)}</{name}>")


def _inner(children: Iterable[object]) -> str:
    parts = []
    for child in children:
        if isinstance(child, (list, tuple)):
            parts.append(_inner(child))
        else:
            parts.append(child if isinstance(child, Html) else escape(str(child)))
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


def by_field(fields: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> Html:
    """A table from rows."""
    return table({name: [row[k] for row in rows] for k, name in enumerate(fields)}, caption)


def paragraphs(*texts: str) -> list[Html]:
    """Each text in a paragraph; none for an empty one."""
    return [element("p", text) for text in texts if text]


def folded(title: str, *content: object) -> Html:
    """Content that opens with a click, without a script."""
    return element("details", element("summary", title), *content)


def shown(value: Any) -> str:
    """A measured number in four digits, whole numbers and words as they are, nothing for None."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}".replace("-", "−")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(v, (float, int, np.number, NoneType)) for v in values)


def page(title: str, sections: Mapping[str, Sequence[object]], lead: str = "") -> str:
    """The whole document: title, lead, links to the sections, the sections (named by a word)."""
    links = element("nav", [element("a", n, href=f"#{n.lower()}") for n in sections])
    body = [
        element("section", element("h2", name), *parts, id=name.lower())
        for name, parts in sections.items()
    ]
    head = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    style = element("style", Html(STYLE))
    return "<!DOCTYPE html>\n" + element(
        "html",
        element("head", head, element("title", title), style),
        element("body", element("h1", title), element("p", lead), links, element("main", body)),
        lang="en",
    )
