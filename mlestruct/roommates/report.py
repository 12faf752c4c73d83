"""The report on room-mates: a page, its cards with reasons, and CSV files beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import refuse_removed
from mlestruct.estimators import Calibration
from mlestruct.files import fresh
from mlestruct.html import Html, element, folded, inner, paragraphs
from mlestruct.roommates import sections
from mlestruct.roommates.evaluation import Evaluation
from mlestruct.roommates.frames import Column, Table
from mlestruct.roommates.learning import Truth
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.pairing import likely, nearest
from mlestruct.roommates.plan import Contribution, Explanation, Pair, Plan
from mlestruct.roommates.sections import matters, picks, survey, whose
from mlestruct.roommates.separated import write_csv
from mlestruct.roommates.words import number, percent, words

STYLE = Path(__file__).with_name("style.css").read_text("utf-8")


def page(title: str, parts: Mapping[str, Sequence[object]], opening: Sequence[object]) -> str:
    """The whole document: title, opening, links to the parts that have content, these parts.

    ``parts`` are by the keys of their headings.
    """
    full = {key: content for key, content in parts.items() if inner(content)}
    links = [element("a", words(key), href=f"#{key}") for key in full]
    body = [
        element("section", element("h2", words(key)), content, id=key)
        for key, content in full.items()
    ]
    head = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    return "<!DOCTYPE html>\n" + element(
        "html",
        element("head", head, element("title", title), element("style", Html(STYLE))),
        element(
            "body",
            element("header", element("h1", title), opening),
            element("nav", links, aria_label=title),
            element("main", body),
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
        found = self.evaluation
        how_good = words("untested") if found is None else picks(found)
        return [whose(self.plan), how_good, matters(self.model.summary(), self.model.questions_)]

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
        return page(words("title"), content, opening)

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
    for k, pairing in enumerate(plan.pairings):
        place = pairing.place
        mine = [(place[a], place[b]) for a, b in known if group[a] == k]
        hit = np.zeros(pairing.structure.size)
        hit[pairing.structure.graph.index(mine)] = 1.0
        people_only = (pairing.structure.ends < len(pairing.ids)).all(axis=1)
        probability.append(pairing.tau[people_only])
        came_true.append(hit[people_only])
        unit.append(np.full(len(probability[-1]), k))
    every = np.concatenate(probability), np.concatenate(came_true)
    return Calibration.of_rare(*every, unit=np.concatenate(unit))


REASONS = 2  # answers named for and against a pair
SLIGHT = 0.05  # |log odds| that are not worth a word
NEAR = 2  # other partners named for a person

Name = Callable[[Any], str]


def cards(plan: Plan, reasons: Sequence[Explanation], name: Name) -> list[Html]:
    """Group by group, a card for each home."""
    why = {frozenset((e.a, e.b)): e for e in reasons}
    others = _others(plan, name)
    found: dict[str, list[Html]] = {}
    for home in plan.shared:
        own = [why[frozenset((pair.a, pair.b))] for pair in home]
        card = _shared(home, own, others, name)
        found.setdefault(home[0].group, []).append(card)
    for single in plan.singles:
        title = f"{name(single.person)} · {words('alone')}"
        where = [] if single.room is None else [element("p", words("room", room=single.room))]
        card = element("li", element("h4", title), where, class_="card")
        found.setdefault(single.group, []).append(card)
    parts = []
    for group, listed in found.items():
        parts += [element("h3", group), element("ul", listed, class_="cards")]
    return parts


def _shared(
    home: Sequence[Pair], reasons: Sequence[Explanation], others: Mapping[Any, str], name: Name
) -> Html:
    """A card: who shares, how probable it is, what speaks for it, who else was near."""
    who = " + ".join(f"{name(pair.a)} + {name(pair.b)}" for pair in home)
    room = "" if home[0].room is None else f"{words('room', room=home[0].room)}: "
    body: list[object] = []
    for pair, explained in zip(home, reasons, strict=True):
        share = words("probable", share=percent(pair.probability))
        title = share if len(home) == 1 else f"{name(pair.a)} + {name(pair.b)}: {share}"
        body += [element("p", title), _reasons(explained)]
        near = [f"{name(who)}: {others[who] or '–'}" for who in (pair.a, pair.b)]
        body.append(folded(words("also near"), paragraphs(*near)))
    head = element("h4", f"{room}{who}")
    return element("li", head, body, class_="card")


def _reasons(found: Explanation) -> Html:
    told = [
        element("li", f"{words(side)}: {reason(part)}")
        for side, sign in (("for", 1.0), ("against", -1.0))
        for part in _largest(found.contributions, sign)
    ]
    if abs(found.withheld) > SLIGHT:
        told.append(element("li", words("protected sum", factor=number(exp(found.withheld)))))
    return element("ul", told) if told else element("p", words("no reason"))


def _largest(parts: Sequence[Contribution], sign: float) -> list[Contribution]:
    chosen = [part for part in parts if sign * part.contribution > SLIGHT]
    return sorted(chosen, key=lambda part: -abs(part.contribution))[:REASONS]


def reason(part: Contribution) -> str:
    """One answer's share of a pair's odds, in words.

    >>> reason(Contribution("tidy", 2, 2, 0.69))
    'both answer 2 to tidy: 2 times the odds'
    """
    factor, column = number(exp(part.contribution)), part.column
    if part.answer_a is None and part.answer_b is None:
        answers = column
    elif part.answer_a == part.answer_b:
        answers = words("both say", a=part.answer_a, column=column)
    else:
        a, b = (words("no answer") if x is None else x for x in (part.answer_a, part.answer_b))
        answers = words("they say", a=a, b=b, column=column)
    return words("for it", answers=answers, factor=factor)


def _others(plan: Plan, name: Name) -> dict[Any, str]:
    """Everybody's most probable partners but for the plan's, in words."""
    found = {}
    for pairing in plan.pairings:
        who, how = nearest(pairing, NEAR + 1)
        for me, person in enumerate(pairing.ids):
            partner = pairing.solution.partner[me]
            near = [k for k in range(who.shape[1]) if how[me, k] > 0 and who[me, k] != partner]
            found[person] = ", ".join(
                f"{name(pairing.ids[who[me, k]])} ({percent(float(how[me, k]))})"
                for k in near[:NEAR]
            )
    return found


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # as OWASP lists them

SEPARATORS = ";|\t\r\n"
INSIDE = re.compile(
    rf"(?s)(?<=.)([{SEPARATORS}]\s*[\"']*)(?=[{re.escape(''.join(FORMULA[:4] + FORMULA[7:]))}])"
)


def export_csv(path: str | os.PathLike[str], columns: Mapping[str, ArrayLike]) -> None:
    """Text that a spreadsheet would read as a formula gets an apostrophe in front.

    That is text that begins with one of = + - @ (of full width too), a tab or the end of a line, or
    would do so behind one of its own separators where a spreadsheet splits cells there; numbers
    stay numbers. What is exported is about people, so nobody but its owner may read the file.
    """
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    columns = {guarded(name): _guarded(array) for name, array in arrays.items()}
    write_csv(path, columns, private=True)


def guarded(value: Any) -> Any:
    """The value, or its text behind an apostrophe."""
    if not isinstance(value, str):
        return value
    value = INSIDE.sub(r"\1'", value)
    return f"'{value}" if value.startswith(FORMULA) else value


def _guarded(column: Column) -> Column:
    if column.dtype.kind not in "OU":
        return column
    return np.array([guarded(value) for value in column.tolist()], dtype=object)
