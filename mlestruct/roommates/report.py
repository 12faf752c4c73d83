"""The report on room-mates: a page, its cards with reasons, and CSV files beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.errors import refuse_removed, visible
from mlestruct.estimators import Calibration
from mlestruct.roommates.evaluation import Evaluation
from mlestruct.roommates.frames import Column, Table
from mlestruct.roommates.model import RoommateModel
from mlestruct.roommates.plan import Contribution, Pair, Plan, Single, likely
from mlestruct.roommates.reading import write_csv
from mlestruct.roommates.words import PAGE, number, percent, words
from mlestruct.statistics import Interval
from mlestruct.storage.files import fresh

HERE = Path(__file__).parent
STYLE = (HERE / "style.css").read_text("utf-8")
EACH = 10  # most probable partners of everybody in probabilities.csv
REASONS, SLIGHT = 4, 0.05  # answers named for or against a pair; |log odds| not worth a word
TOP = 3  # answers named on top
FAR = 20.0  # |log factor| beyond which a factor says nothing more
BASELINES = ("random", "logistic")
NO_PAGE = "report and page need the extra mlestruct[office]: pip install 'mlestruct[office]'"

Name = Callable[[Any], str]
Json = dict[str, Any]


@cache
def _template(name: str) -> Any:
    """A template in which what is not markup is text, and escaped."""
    try:
        from jinja2 import Environment, FileSystemLoader
    except ImportError as error:
        raise ValueError(NO_PAGE) from error
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    return made.get_template(name)


def rendered(template: str, **values: Any) -> str:
    """A page from its template."""
    return str(_template(template).render(values))


@dataclass(frozen=True)
class Report:
    """A plan for people, its reasons and, where their own pairs are known, how well it predicts.

    ``names`` is a column to show beside ids; ``protected`` itemises what explanations withhold;
    ``questions`` has a column's question in its own words.
    """

    model: RoommateModel
    people: Table
    plan: Plan
    evaluation: Evaluation | None = None
    names: str | None = None
    protected: bool = False
    questions: Mapping[str, str] = field(default_factory=dict)
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
        **rules: Any,
    ) -> Self:
        """Pair people up; judge the model by ``pairs`` where they are known.

        ``rules`` are the settings of :meth:`RoommateModel.assign`.
        """
        for name in rules:
            refuse_removed(f"Report.of({name}=)")
        plan = model.assign(people, **rules)
        evaluation = None if pairs is None else model.evaluate(people, pairs)
        return cls(model, people, plan, evaluation, names, protected)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The plan (with those who stay single), probabilities, and the page: the paths of these.

        The page is left out where Jinja2, of the extra ``office``, is not installed.
        probabilities.csv has everybody's most probable pairs.
        """
        place = Path(folder)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths = [place / name for name in self.files]
        export_csv(paths[0], self.plan.columns())
        ids = self.people.cells[self.model.id]
        export_csv(paths[1], likely(ids, self.plan.pairings, None, EACH))
        if find_spec("jinja2") is None:
            return paths[:2]
        self.page(paths[2])
        return paths

    def page(self, path: str | os.PathLike[str]) -> None:
        """Write report.html alone."""
        with fresh(Path(path), True) as file:
            file.write(self.html().encode())

    def headline(self) -> list[str]:
        """How many people, how good the plan is, and what matters most: a line each."""
        alone = len(self.plan.singles)
        pairs = len(self.plan.pairs)
        whose = words("people", people=2 * pairs + alone, pairs=pairs, alone=alone or "nobody")
        found = self.evaluation
        good = words("untested") if found is None else picks(found)
        good = f"{found.count()}. {good}" if found and found.learned else good
        return [whose, good, matters(self.model, self.questions)]

    def html(self) -> str:
        """The page."""
        model, plan, found = self.model, self.plan, self.evaluation
        proof, gap = model.certificate_, max(plan.gap, 0.0)
        share = f"{number(100 * proof.relative, 1)} % share"
        return rendered(
            "report.html",
            style=STYLE,
            headline=self.headline(),
            homes=self.homes(),
            hidden="" if self.protected else ", ".join(model.protected_),
            effects=[effect(model, *one, self.questions) for one in model.effects()],
            untold=", ".join(untold(model)),
            found=found,
            top=[
                (k, _rate(share, found.top_error[k]), percent(found.top_random[k]))
                for k, share in found.top.items()
            ] if found else [],
            calibration=_calibrated(found.calibration) if found else [],
            certificate=proof,
            share="millionth" if proof.relative < 1e-6 else share,
            gap=f" by more than {number(gap, 1)}" if gap > 1e-6 else "",
            technical=found.notes if found else [],
            sizes=[(pairing.group.label, len(pairing.ids)) for pairing in plan.pairings],
            notes=model.notes_,
        )  # fmt: skip

    def homes(self) -> list[Json]:
        """Each home: who shares, how probable that is, why; then who is alone."""
        alone: list[tuple[list[Pair], Pair | Single]] = [([], one) for one in self.plan.singles]
        found = []
        for pairs, one in [*((home, home[0]) for home in self.plan.shared), *alone]:
            who = [who for pair in pairs for who in pair[:2]] or [one[0]]
            title = " + ".join(map(self.shown, who))
            title = title if one.room is None else f"{PAGE['room'].format(room=one.room)}: {title}"
            title = title if pairs else f"{title} · {PAGE['alone']}"
            told = [self._pair(pair) for pair in pairs]
            home = {"who": who, "room": one.room, "group": one.group, "title": title}
            found.append(home | {"pairs": told})
        return found

    def _pair(self, pair: Pair) -> Json:
        why = self.model.explain(self.plan, pair.a, pair.b, protected=self.protected)
        sure = [part for part in why.contributions if abs(part.contribution) > SLIGHT]
        told = [reason(part, self.questions) for part in sure[:REASONS]]
        if abs(why.withheld) > SLIGHT:
            told.append(words("protected sum", factor=number(exp(why.withheld))))
        title = f"{self.shown(pair.a)} + {self.shown(pair.b)}"
        chance = percent(self.plan.chance(pair.a))
        share = f"{percent(pair.probability)} probable, {chance} by chance"
        return {"title": title, "probable": share, "reasons": told}

    @cached_property
    def shown(self) -> Name:
        """An id in words, with the name where one was asked for."""
        if self.names is None:
            return str
        beside = self.people[self.names].tolist()
        known = dict(zip(self.plan.people.ids, beside, strict=True))
        return lambda person: f"{person} ({known[person]})"


def _calibrated(found: Calibration) -> list[list[Any]]:
    """How many pairs, their predicted probability, and how many came true, with an interval."""
    rates = zip(found.predicted, found.observed, *found.interval, strict=True)
    return [[n, *map(percent, row)] for n, row in zip(found.count.tolist(), rates, strict=True)]


def _rate(share: float, error: float) -> str:
    return f"{100 * share:.0f} ± {100 * error:.0f} %"


def picks(found: Evaluation) -> str:
    """How often the right pair is picked, by the model and by simpler rules."""
    shares = {n: f"{100 * area:.0f}" for n, area in found.auc.items()}
    shares |= {n: f"{shares[n]} ± {100 * error:.0f}" for n, error in found.auc_error.items()}
    others = [words(f"baseline {n}", share=shares[n]) for n in BASELINES]
    apart = found.auc_lead["logistic"] > 2 * found.auc_lead_error["logistic"]
    told = "told apart" if apart else "not told apart"
    return words("picks", model=shares["marginal"], others=", ".join(others), told=words(told))


def untold(model: RoommateModel) -> list[str]:
    """What the pairs do not tell, though they are enough to tell something."""
    known = {row.name for row in model.known_.told.rows}
    return [one.name for one in model.contrasts() if known and one.name not in known]


def matters(model: RoommateModel, questions: Mapping[str, str]) -> str:
    """The answers whose influence is surest, each as a factor."""
    sure = [one for one in model.effects() if one[1].low > 0 or one[1].high < 0]
    if not sure:
        return words("nothing sure")
    told = (effect(model, *one, questions) for one in sure[:TOP])
    effects = (f"{who} share {times} times as often" for who, times, *_ in told)
    return words("matters most", effects="; ".join(effects))


def effect(
    model: RoommateModel, column: str, found: Interval, questions: Mapping[str, str]
) -> tuple[str, ...]:
    """A contrast in words, how many times as often people share by it, and the interval's ends.

    Whether partners agree is said in one way: a yes/no question is about having the same answer.
    """
    ends = (found.estimate, found.low, found.high)
    values, key = {"column": _asked(column, questions)}, "same"
    if found.name == f"{column} |difference|":
        levels = next(asked.levels for asked in model.questions_ if asked.column == column)
        key = "per step" if levels[-1] - levels[0] != 1 else key
        ends = ends if key == "per step" else (-found.estimate, -found.high, -found.low)
    elif found.name != f"{column} same":
        key = "two answers"
        values["a"], _, values["b"] = found.name.removeprefix(f"{column} ").partition(" with ")
    return words(key, **values), *(number(exp(x)) if abs(x) < FAR else "…" for x in ends)


def _asked(column: str, questions: Mapping[str, str]) -> str:
    """A question in its own words, where they are known."""
    return f"“{questions[column]}”" if column in questions else column


def reason(part: Contribution, questions: Mapping[str, str]) -> str:
    """By how much one question makes a pair more likely, in words.

    >>> reason(Contribution("tidy", 2, 2, 0.69), {"tidy": "How tidy are you?"})
    'both answer 2 to “How tidy are you?”: 2 times as likely'
    """
    factor, column = number(exp(part.contribution)), _asked(part.column, questions)
    if part.answer_a is None and part.answer_b is None:
        answers = column
    elif part.answer_a == part.answer_b:
        answers = words("both say", a=part.answer_a, column=column)
    else:
        a, b = (words("no answer") if x is None else x for x in (part.answer_a, part.answer_b))
        answers = words("they say", a=a, b=b, column=column)
    return words("for it", answers=answers, factor=factor)


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
