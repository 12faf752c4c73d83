"""What each column is probably for, as a proposal; and the command that would learn from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from mlestruct.estimators.roommates.leaks import Leak
from mlestruct.estimators.roommates.questionnaire import MOST_LEVELS
from mlestruct.tables import Column, Table, missing
from mlestruct.tables.cells import number, written
from mlestruct.tables.suspicion import suspects

FEW = 12  # answers that a question in words has at most
COHORTS = re.compile("year|cohort|class|intake|semester|term|jahr|jahrgang|kohorte|année|año")
GROUPS = re.compile("gender|sex|geschlecht|genre|sexo|house|haus|wing|building|gebäude")
ALMOST = 0.8  # share of numbers that makes other cells codes


def cohort_of(people: Table, taken: Collection[str]) -> str | None:
    """The first column that is called like a year or term."""
    return next(
        (n for n in people.names if n not in taken and COHORTS.fullmatch(n.casefold())), None
    )


def same_of(people: Table, taken: Collection[str], found: Iterable[Leak]) -> list[str]:
    """Columns in which all partners agree and that have few values: rules, to all appearance."""
    rules = {leak.column for leak in found if leak.rule}
    named = {n for n in people.names if GROUPS.fullmatch(n.casefold())}
    return [n for n in people.names if n in rules & named and n not in taken]


def role_of(column: Column) -> tuple[str, list[str]]:
    """(ordinal, binary, categorical or ignore; codes for no answer) of a column of answers."""
    codes = [suspect.value for suspect in suspects(column)]
    shown = [str(written(value)) for value in column[~missing(column)].tolist()]
    told = [value for value in shown if value not in codes]
    values = set(told)
    numbers = [value for value in values if number(value) is not None]
    if len(values) < 2 or len(values) > MOST_LEVELS:
        return "ignore", []
    if len(numbers) == len(values):
        return ("binary" if values <= {"0", "1"} else "ordinal"), codes
    if len(numbers) >= ALMOST * len(values):
        return "ordinal", [*codes, *sorted(values - set(numbers))]
    if len(values) == 2:
        return "binary", codes
    return ("categorical" if len(values) <= min(FEW, len(told) // 2) else "ignore"), codes


def roles_of_answers(
    people: Table, taken: Collection[str], found: Iterable[Leak]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Every other column's role, and its codes for no answer; what leaks is left out."""
    out = {leak.column for leak in found}
    roles, codes = {}, {}
    for name in people.names:
        if name not in taken:
            role, told = role_of(people[name])
            roles[name] = "ignore" if name in out else role
            if told and roles[name] != "ignore":
                codes[name] = told
    return roles, codes


def command(
    files: Sequence[str],
    people: Table,
    settings: Mapping[str, Sequence[str]],
    roles: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
    gaps: bool,
) -> str:
    """The line to type: ``mlestruct roommates fit …``."""
    words = ["mlestruct", "roommates", "fit", *files]
    for name, columns in settings.items():
        words += [f"--{name}", ",".join(columns)] if columns else []
    for role in ("ordinal", "binary", "categorical"):
        mine = [n for n, r in roles.items() if r == role]
        words += [f"--{role}", ",".join(_short(mine, people.names, roles))] if mine else []
    listed = [f"{name}={value}" for name, values in codes.items() for value in values]
    words += ["--no-answer", ",".join(listed)] if listed else []
    words += ["--missing", "neutral"] if gaps or listed else []
    return " ".join(shlex.quote(word) for word in words)


def _short(columns: Sequence[str], every: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """Names, with a pattern for those that only differ in a number: q1, q2, q3 are ``q*``."""
    out: list[str] = []
    for name in columns:
        stem = re.sub(r"[0-9]+$", "", name)
        fits = [n for n in every if n.startswith(stem)]
        whole = stem and len(fits) > 2 and set(fits) <= set(columns) and not set(stem) & set("*?[]")
        if (word := f"{stem}*" if whole else name) not in out:
            out.append(word)
    return out


def gaps_in(people: Table, columns: Iterable[str]) -> bool:
    """Whether somebody left one of these questions out."""
    return any(bool(np.any(missing(people[name]))) for name in columns)
