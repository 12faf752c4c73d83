"""Reference files: cases with inputs, expected values and tolerances, checked at the door."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlestruct.structures.base import Array

Place = tuple[str | int, ...]


class Malformed(ValueError):
    """A reference file that cannot be read; the message names the case and the field."""


class Fields(dict[str, Any]):
    """A JSON object that says which case lacks what."""

    def __init__(self, where: str, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.where = where

    def __missing__(self, name: str) -> Any:
        raise Malformed(f"{self.where} lacks {name!r}")

    def array(self, name: str, ndim: int | None = None) -> Array:
        """A field as an array of finite numbers."""
        try:
            values = np.asarray(self[name], dtype=float)
        except (TypeError, ValueError) as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed(f"{self.where}.{name} is no regular array of numbers") from error
        if values.size == 0 and ndim == 2:
            values = values.reshape(0, 2)  # a graph without edges
        if ndim is not None and values.ndim != ndim:
            raise Malformed(f"{self.where}.{name} has {values.ndim} axes; it must have {ndim}")
        if not np.isfinite(values).all():
            raise Malformed(f"{self.where}.{name} holds a number that is not finite")
        return values

    def whole(self, name: str, ndim: int | None = None) -> Any:
        """A field as an array of integers."""
        values = self.array(name, ndim)
        if (values != np.round(values)).any():
            raise Malformed(f"{self.where}.{name} must hold whole numbers")
        return values.astype(np.int64)

    def number(self, name: str) -> float:
        return float(self.array(name, 0))

    def lists(self, name: str) -> list[list[int]]:
        """A field as a list of lists of integers, of any lengths."""
        rows = self[name]
        good = isinstance(rows, list) and all(
            isinstance(row, list) and all(type(i) is int for i in row) for row in rows
        )
        if not good:
            raise Malformed(f"{self.where}.{name} must be a list of lists of whole numbers")
        return list(rows)

    def inside(self, name: str | int) -> Fields:
        """A nested object."""
        value = self[name] if isinstance(name, str) else None
        if not isinstance(value, dict):
            raise Malformed(f"{self.where}.{name} must be an object")
        return Fields(f"{self.where}.{name}", value)

    def objects(self, name: str) -> list[Fields]:
        """A list of objects, or an object of objects (its keys do not matter)."""
        value = self[name]
        rows = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Malformed(f"{self.where}.{name} must hold objects")
        keys = list(value) if isinstance(value, dict) else list(range(len(rows)))
        return [Fields(f"{self.where}.{name}.{k}", r) for k, r in zip(keys, rows, strict=True)]


@dataclass(frozen=True)
class Case:
    """One case: what to compute, what must come out, and how closely."""

    name: str
    kind: str
    inputs: Fields
    expected: Fields
    tolerance: float
    field_tolerance: dict[str, float | None] = field(default_factory=dict)

    def tolerance_at(self, place: Place) -> float | None:
        """The innermost named tolerance on the way to a field; None: do not compare."""
        for name in reversed(place):
            if isinstance(name, str) and name in self.field_tolerance:
                return self.field_tolerance[name]
        return self.tolerance

    def quantities(self) -> Iterator[tuple[Place, Any]]:
        """Every expected field that is no object of objects, with its place."""
        yield from _leaves((), dict(self.expected))


def _leaves(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves((*place, key), inner)
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        for index, inner in enumerate(value):
            yield from _leaves((*place, index), inner)
    else:
        yield place, value


def load(path: Path) -> list[Case]:
    """The cases of a file, in its order."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise Malformed(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Malformed(f"{path} is not JSON: {error}") from error
    except Malformed as error:
        raise Malformed(f"{path}: {error}") from error
    cases = data.get("cases") if isinstance(data, dict) else None
    if not isinstance(cases, dict) or not cases:
        raise Malformed(f"{path} has no object 'cases', or nothing in it")
    return [_case(name, cases) for name in cases]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"the name {twice!r} occurs twice in one object")
    return seen


def _case(name: str, cases: dict[str, Any]) -> Case:
    case, where = cases[name], f"case {name!r}"
    if not isinstance(case, dict):
        raise Malformed(f"{where} must be an object")
    kind = case.get("kind")
    if not isinstance(kind, str):
        raise Malformed(f"{where} lacks a string 'kind'")
    expected = case.get("expected", case if "cases" in case else None)
    if not isinstance(expected, dict):
        raise Malformed(f"{where} lacks an object 'expected'")
    if expected is case:
        expected = {"cases": case["cases"]}
    return Case(
        name,
        kind,
        Fields(f"{where}: inputs", _inputs(name, cases, ())),
        Fields(f"{where}: expected", expected),
        _tolerance(where, case),
        _field_tolerance(where, case),
    )


def _inputs(name: str, cases: dict[str, Any], asked: tuple[str, ...]) -> dict[str, Any]:
    case = cases.get(name)
    where = f"case {(asked or (name,))[0]!r}"
    if name in asked:
        raise Malformed(f"{where}: inputs_from goes round in a circle at {name!r}")
    if not isinstance(case, dict):
        raise Malformed(f"{where}: inputs_from names {name!r}, which is no case of this file")
    source, own = case.get("inputs_from"), case.get("inputs")
    if source is not None and not isinstance(source, str):
        raise Malformed(f"{where}: inputs_from must be the name of a case")
    first = {} if source is None else _inputs(source, cases, (*asked, name))
    return {**first, **own} if isinstance(own, dict) else first


def _tolerance(where: str, case: dict[str, Any]) -> float:
    given = case.get("tolerance")
    value = given.get("default") if isinstance(given, dict) else given
    if not _is_tolerance(value):
        raise Malformed(f"{where}: tolerance is {given!r}; it must be a number >= 0")
    return float(value)  # type: ignore[arg-type]


def _field_tolerance(where: str, case: dict[str, Any]) -> dict[str, float | None]:
    given = case.get("field_tolerance") or {}
    if not isinstance(given, dict):
        raise Malformed(f"{where}: field_tolerance must be an object")
    for name, value in given.items():
        if value is not None and not _is_tolerance(value):
            raise Malformed(f"{where}: field_tolerance.{name} is {value!r}; a number or null")
    return given


def _is_tolerance(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0
