"""A report's page: one document that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlestruct.html import Html, element, inner
from mlestruct.report.look import SCRIPT, STYLE


@dataclass(frozen=True)
class Section:
    """A part of the page: the id that links to it, its heading, its content."""

    id: str
    heading: str
    content: Sequence[object]


def page(
    title: str, sections: Sequence[Section], opening: Sequence[object] = (), language: str = "en"
) -> str:
    """The whole document: title, opening, links to the sections, the sections that have content."""
    full = [section for section in sections if inner(section.content)]
    links = [element("a", section.heading, href=f"#{section.id}") for section in full]
    body = [
        element("section", element("h2", section.heading), section.content, id=section.id)
        for section in full
    ]
    head = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    style = element("style", Html(STYLE))
    return "<!DOCTYPE html>\n" + element(
        "html",
        element("head", head, element("title", title), style),
        element(
            "body",
            element("header", element("h1", title), opening),
            element("nav", links, aria_label=title),
            element("main", body),
            element("script", Html(SCRIPT)),
        ),
        lang=language,
    )
