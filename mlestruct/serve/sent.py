"""What the page sends, as JSON: no other entries than expected, each of its kind, none too large.

A whole number is none where it comes as text, a fraction or true; a person is a row's number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlestruct.files import parsed

MOST = 1_000_000  # signs of a request's text and entries of its lists; a page never comes near
Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST and all(map(_text, value))


def _row(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST


def _rows(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST and all(map(_row, value))


def _pairs(value: Any) -> bool:
    return isinstance(value, list) and all(_rows(pair) and len(pair) == 2 for pair in value)


TEXT: tuple[str, Check] = "a text", _text
NAME: tuple[str, Check] = "a text or null", lambda value: value is None or _text(value)
ROW: tuple[str, Check] = "a row's number", _row
SWITCH: tuple[str, Check] = "true or false", lambda value: isinstance(value, bool)
EXPECTED: Mapping[str, Mapping[str, tuple[str, Check]]] = {
    "choose": {"roles": ("an object", lambda value: isinstance(value, dict)), "planned": NAME},
    "fit": {},
    "sheet": {"kind": TEXT, "sheet": TEXT},
    "rule": {"kind": TEXT, "pairs": ("a list of pairs of rows", _pairs), "keep": SWITCH},
    "change": {"kind": TEXT, "a": ROW, "b": ROW},
    "undo": {},
    "let_go": {"kind": TEXT, "who": ("a list of ids", _texts)},
    "lock": {"rows": ("a list of rows", _rows), "room": NAME, "keep": SWITCH},
}
"""By what is asked: every entry, in words, and whether a value is one."""


def sent(asked: str, body: bytes) -> dict[str, Any]:
    """The entries of a request, or a ValueError with the entry, its value and what is expected."""
    try:
        text = body.decode() or "{}"
        found = parsed(text, parse_constant=_no_number, object_pairs_hook=_once)
    except ValueError as error:
        raise ValueError(f"{asked}: no JSON that is read here: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{asked}: expected an object, not {_short(found)}")
    expected = EXPECTED[asked]
    for name in found:
        if name not in expected:
            known = ", ".join(expected) or "no entries"
            raise ValueError(f"{asked}: unknown entry {_short(name)}; expected {known}")
    for name, (words, holds) in expected.items():
        if name not in found:
            raise ValueError(f"{asked}: {name!r} is missing; expected {words}")
        if not holds(found[name]):
            raise ValueError(f"{asked}: {name} is {_short(found[name])}; expected {words}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"entry {max(names, key=names.count)!r} comes twice")
    return found


def _no_number(value: str) -> Any:
    raise ValueError(f"{value} is no number in JSON")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
