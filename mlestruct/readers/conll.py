"""CoNLL-style columns: a token per line, a blank line between sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from mlestruct.storage.files import content

Rows = list[tuple[str, ...]]


def read_columns(
    source: str | Path | Iterable[str],
    columns: Sequence[int] | None = None,
    *,
    separator: str | None = None,
    skip: Sequence[str] = ("-DOCSTART-",),
) -> list[Rows]:
    r"""Sentences as lists of rows, one tuple of columns per token, as many in every row.

    ``source`` is a path or lines. ``columns`` picks some (−1 is the last); ``separator`` is
    whitespace, or a tab where tokens may hold blanks. Sentences that begin with ``skip`` are left
    out; nothing else is, so a ``#`` may be a token.

    >>> read_columns(["EU\tB-ORG\n", "rejects\tO\n", "\n", "Peter\tB-PER\n"])
    [[('EU', 'B-ORG'), ('rejects', 'O')], [('Peter', 'B-PER')]]
    """
    if isinstance(source, (str, Path)):
        try:
            lines = StringIO(content(source, "text file").decode(), newline=None)
            return read_columns(lines, columns, separator=separator, skip=skip)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
    sentences: list[Rows] = [[]]
    width = None
    for number, line in enumerate(source, start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            if sentences[-1]:
                sentences.append([])
            continue
        fields = tuple(text.split(separator))
        if fields[0] in skip:
            continue
        if width is not None and len(fields) != width:
            raise ValueError(f"line {number} has {len(fields)} columns, the lines before {width}")
        width = len(fields)
        sentences[-1].append(fields if columns is None else _pick(fields, columns, number))
    return sentences if sentences[-1] else sentences[:-1]


def _pick(fields: tuple[str, ...], columns: Sequence[int], number: int) -> tuple[str, ...]:
    for column in columns:
        if not -len(fields) <= column < len(fields):
            raise ValueError(f"line {number} has {len(fields)} columns, and no column {column}")
    return tuple(fields[column] for column in columns)
