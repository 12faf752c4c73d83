"""The report on room-mates: what was learned, how good it is, the plan, and its reasons."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from mlestruct.errors import refuse_removed
from mlestruct.estimators import Calibration, RoommateModel
from mlestruct.estimators.roommates import Evaluation, Plan
from mlestruct.estimators.roommates.learning import Truth
from mlestruct.estimators.roommates.pairing import likely
from mlestruct.files import fresh
from mlestruct.html import Html, element, inner, paragraphs
from mlestruct.report import sections
from mlestruct.report.cards import cards
from mlestruct.report.export import export_csv
from mlestruct.report.headline import headline
from mlestruct.report.look import SCRIPT, STYLE
from mlestruct.report.survey import survey
from mlestruct.report.words import words
from mlestruct.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the page: the id that links to it, its heading, its content."""

    id: str
    heading: str
    content: Sequence[object]


def page(title: str, sections: Sequence[Section], opening: Sequence[object] = ()) -> str:
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
        lang="en",
    )


EACH = 10  # most probable partners of everybody in probabilities.csv


@dataclass(frozen=True)
class Report:
    """A plan for people, its reasons and, where their own pairs are known, how well it predicts.

    ``names`` is a column to show beside ids; ``protected`` itemises what explanations withhold.
    """

    model: RoommateModel
    people: Table
    plan: Plan
    evaluation: Evaluation | None = None
    calibration: Calibration | None = None
    names: str | None = None
    protected: bool = False
    files: ClassVar = ("pairs.csv", "probabilities.csv", "report.html")

    @classmethod
    def of(
        cls,
        model: RoommateModel,
        people: Table,
        pairs: Table | None = None,
        *,
        names: str | None = None,
        protected: bool = False,
        truth: Truth | None = None,
        **rules: Any,
    ) -> Self:
        """Pair people up; judge the model by ``pairs`` where they are known.

        ``rules`` are the settings of :meth:`RoommateModel.assign`. ``truth`` computes the scores
        that generated pairs were drawn by.
        """
        for name in rules:
            refuse_removed(f"Report.of({name}=)")
        plan = model.assign(people, **rules)
        evaluation = calibration = None
        if pairs is not None:
            evaluation = model.evaluate(people, pairs, truth=truth)
            calibration = _calibration(plan, model.together(plan.people, pairs))
        return cls(model, people, plan, evaluation, calibration, names, protected)

    def write(self, folder: str | os.PathLike[str], each: int | None = EACH) -> list[Path]:
        """The plan (with those who stay single), probabilities, and the page: the paths of these.

        probabilities.csv has everybody's ``each`` most probable pairs; every pair for None, which
        is a file of hundreds of megabytes for thousands of people.
        """
        place = Path(folder)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths = [place / name for name in self.files]
        export_csv(paths[0], self.plan.columns())
        ids = self.people.as_names(self.model.id)
        export_csv(paths[1], likely(ids, self.plan.pairings, None, each))
        self.page(paths[2])
        return paths

    def page(self, path: str | os.PathLike[str]) -> None:
        """Write report.html alone."""
        with fresh(Path(path), True) as file:
            file.write(self.html().encode())

    def headline(self) -> list[str]:
        """How many people, how good the plan is, and what matters most: a line each."""
        summary, asked = self.model.summary(), self.model.questions_
        return headline(self.plan, summary, asked, self.evaluation)

    def html(self) -> str:
        """The page."""
        model, plan, summary = self.model, self.plan, self.model.summary()
        columns = [column for column in survey(self.people) if column.column in model.roles_]
        groups = {pairing.group.label: len(pairing.ids) for pairing in plan.pairings}
        content = {
            "plan": self._cards(),
            "effects": sections.effects(summary, model.questions_),
            "evaluation": sections.evaluation(self.evaluation, self.calibration),
            "proof": sections.proof(summary, plan, self.evaluation),
            "data": sections.data(groups, columns, summary.notes),
            "limits": sections.limits(),
        }
        opening = [
            element("p", words("made"), " ", words("lead"), class_="soft"),
            element("div", paragraphs(*self.headline()), class_="glance"),
        ]
        parts = [Section(key, words(key), parts) for key, parts in content.items()]
        return page(words("title"), parts, opening)

    def _cards(self) -> list[Html]:
        """The plan, its reasons, and what is withheld."""
        model, plan = self.model, self.plan
        reasons = [model.explain(plan, p.a, p.b, protected=self.protected) for p in plan.pairs]
        hidden = [] if self.protected else list(model.protected_)
        withheld = words("withheld", columns=", ".join(hidden)) if hidden else ""
        told = paragraphs(words("plan meaning"), withheld)
        return [*told, *cards(plan, reasons, self._shown)]

    @cached_property
    def _shown(self) -> Callable[[Any], str]:
        """An id in words, with the name where one was asked for."""
        if self.names is None:
            return str
        beside = self.people[self.names].tolist()
        known = dict(zip(self.plan.people.ids, beside, strict=True))
        return lambda person: f"{person} ({known[person]})"


def _calibration(plan: Plan, true: Iterable[tuple[Any, Any]]) -> Calibration:
    """Every possible pair's probability against whether it came about."""
    row, group = plan.people.row, plan.people.group_of
    known = [(row[a], row[b]) for a, b in true if a in row and b in row]
    probability, came_true, unit = [], [], []
    for number, pairing in enumerate(plan.pairings):
        place = pairing.place
        mine = [(place[a], place[b]) for a, b in known if group[a] == number]
        hit = np.zeros(pairing.structure.size)
        hit[pairing.structure.graph.index(mine)] = 1.0
        people_only = (pairing.structure.ends < len(pairing.ids)).all(axis=1)
        probability.append(pairing.tau[people_only])
        came_true.append(hit[people_only])
        unit.append(np.full(len(probability[-1]), number))
    every = np.concatenate(probability), np.concatenate(came_true)
    return Calibration.of_rare(*every, unit=np.concatenate(unit))
