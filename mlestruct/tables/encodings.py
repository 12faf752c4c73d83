"""Bytes as text: UTF-8, UTF-16 and UTF-32 are recognised, Windows-1252 is what remains."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with a byte-order mark"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
PREAMBLES = (
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls), or one with a password"),
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "packed (.gz)"),
    (b"{\\rtf", "a text with formatting (RTF)"),
    (b"Rar!", "packed (.rar)"),
    (b"7z\xbc\xaf", "packed (.7z)"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
)
STRANGE = re.compile(  # letters of other encodings as Windows-1252 would show them
    "[a-z][ŠŸŽŒÐÞ][a-z]|[a-z]Ÿ|£[a-zà-ÿ]|[B-DF-HJ-NP-TV-Zb-df-hj-np-tv-z]š[b-df-hj-np-tv-z]|[A-Za-z][‚ƒ„…†‡ˆ‰‹‘“”•˜™›¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿×÷][a-z]"
)
MANY = 0.2  # share of NULs at odd or even places that only UTF-16 has


class DecodedText(NamedTuple):
    """The text, and the encoding in words."""

    text: str
    words: str


def decoded(data: bytes, place: str, encoding: str | None = None) -> DecodedText:
    """The text of a file, by ``encoding`` where it is named; a ValueError names the line."""
    _refuse_other_kinds(data, place)
    if encoding is not None:
        return DecodedText(_by(data, encoding, place), encoding)
    for mark, name, words in MARKS:
        if data.startswith(mark):
            return DecodedText(_by(data, name, place), words)
    wide = _without_mark(data)
    if wide is not None:
        return DecodedText(_by(data, wide, place), f"{wide.upper()} without a mark")
    try:
        found = DecodedText(data.decode("utf-8"), "UTF-8")
    except UnicodeDecodeError as error:
        found = DecodedText(_as_windows(data, error, place), "Windows-1252")
    if "\0" in found.text:
        line = 1 + found.text[: found.text.index("\0")].count("\n")
        raise ValueError(f"{place}, line {line}: a zero byte, so this is no table as text")
    return found


def _refuse_other_kinds(data: bytes, place: str) -> None:
    for start, words in PREAMBLES:
        if data.startswith(start):
            raise ValueError(f"{place} is {words}; save the table as .xlsx or as CSV in UTF-8")
    bare = data[:200].removeprefix(codecs.BOM_UTF8)
    if re.match(rb'\s*[\[{]\s*["\[{]', bare):
        raise ValueError(f"{place} is JSON; save the table as .xlsx or as CSV in UTF-8")
    if re.match(
        rb"\s*<(?:!doctype|html|\?xml|table|meta)", data[:200].lstrip(b"\xef\xbb\xbf"), re.I
    ):
        raise ValueError(
            f"{place} is a web page or XML, whatever its name says; open it in your spreadsheet "
            "and save it as .xlsx or as CSV in UTF-8"
        )


def _by(data: bytes, encoding: str, place: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise ValueError(
            f"encoding {encoding!r} is unknown; try utf-8, cp1252 or mac_roman"
        ) from error
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = 1 + data[:start].count(b"\n")
        raise ValueError(f"{place}, line {line}: not {encoding} ({error})") from error


def _without_mark(data: bytes) -> str | None:
    """UTF-16 whose every other byte is mostly zero."""
    sample = data[:4000]
    if len(sample) < 4 or len(data) % 2:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) < MANY * len(sample) / 2 or min(even, odd) > 0:
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _as_windows(data: bytes, error: UnicodeDecodeError, place: str) -> str:
    """Windows-1252 unless that would make no words; a file of two encodings is refused."""
    line = 1 + data[: error.start].count(b"\n")
    here = f"{place}, line {line}: byte 0x{data[error.start]:02x} is no UTF-8"
    good = data.decode("utf-8", "ignore")
    wide = sum(ch > "\x7f" for ch in good)
    broken = data.decode("utf-8", "replace").count("\ufffd")
    if wide >= broken:
        raise ValueError(
            f"{here}, although the rest of the file is; put that line right, or save the file anew "
            "as UTF-8"
        )
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    odd = STRANGE.search(text)
    if not text or odd:
        shown = f", and as Windows-1252 it would read {odd.group()!r}" if odd else ""
        raise ValueError(
            f"{here}{shown}; save the file as UTF-8, or name its encoding, such as cp850, "
            "mac_roman or cp1250: encoding="
        )
    return text
