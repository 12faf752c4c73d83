"""Answers that are probably none: codes such as 99, words such as "keine Angabe", odd spellings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict

import numpy as np

from mlestruct.roommates.cells import number, stripped, written
from mlestruct.roommates.frames import Column, missing

PHRASES = frozenset(
    """
    - | -- | --- | — | – | . | .. | ... | … | / | // | ? | ?? | xxx | # | #n/a | #nv
    n/a | na | n.a. | n. a. | nan | null | (blank) | missing
    unknown | undefined | refused | declined | no answer | no response | not answered | no data
    not applicable | not available | not stated | don't know | dont know | do not know
    prefer not to say | prefer not to answer | rather not say
    keine angabe | keine angaben | keine antwort | keine aussage | ohne angabe | k.a. | k. a. | ka
    k.a | k/a | weiß nicht | weiss nicht | nicht beantwortet | nicht zutreffend | entfällt
    verweigert | fehlt | unbekannt | leer | (leer)
    sans réponse | pas de réponse | non renseigné | nsp | ne sait pas | inconnu
    sin respuesta | no contesta | no sabe | ns/nc | nessuna risposta | non so
    geen antwoord | weet niet | n.v.t. | ingen svar | vet inte
    brak odpowiedzi | brak danych | nie wiem | bez odpovědi
    """.strip()
    .replace(" | ", "\n")
    .replace("\n    ", "\n")
    .split("\n")
)
CODE = re.compile(r"-?([7-9])\1*|-?[6-9][6-9]|9+[678]|-[1-9]")  # 9, 99, 97, 88, -1, -9, 998
MOST_LEVELS = 40  # of one question; its weights grow with their square
EACH = 5  # faults of one kind in one message
FEW = 60  # more different numbers than that are no scale with a code beside it


def shown(column: Column) -> Counter[str]:
    """How often each answer was given, as it is written."""
    return Counter(str(written(value)) for value in column[~missing(column)].tolist())


def suspects(column: Column) -> dict[str, int]:
    """Values that are probably no answers, the most frequent first, and how many gave each.

    Words are known by a list. Numbers are made of 7, 8 and 9, or are below 0 where no other is,
    and stand apart from the others: 9 is one beside 1 to 5, and none beside 0 to 10.
    """
    counts = shown(column)
    words = [value for value in counts if stripped(value).casefold() in PHRASES]
    scale = {value: n for value in counts if (n := number(value)) is not None}
    found = [*words, *(_codes(scale) if len(scale) <= FEW else [])]
    return {value: counts[value] for value in sorted(found, key=lambda v: (-counts[v], v))}


def _codes(scale: dict[str, float]) -> list[str]:
    """The spellings of numbers that stand apart on either side."""
    values = np.unique(list(scale.values()))
    apart = {float(v) for v in (*_above(values), *(-_above(-values[::-1])))}
    negative = values[values < 0]
    if len(negative) == 1 and len(values) > 2 and CODE.fullmatch(str(written(float(negative[0])))):
        apart.add(float(negative[0]))
    return [spelling for spelling, value in scale.items() if value in apart]


def _above(values: np.ndarray) -> np.ndarray:
    """The largest values, if a wide gap parts them from the others and all of them are codes."""
    steps = np.diff(values)
    for k in range(len(steps) - 1, 0, -1):
        within = steps[:k].max()
        codes = all(CODE.fullmatch(str(written(abs(float(v))))) for v in values[k + 1 :])
        if codes and steps[k] >= 2 * within and steps[k] >= 2:
            return np.asarray(values[k + 1 :])
    return values[:0]


def variants(column: Column) -> list[list[str]]:
    """Sets of answers that differ only in case, accents, blanks or signs between words."""
    alike: dict[str, set[str]] = defaultdict(set)
    if column.dtype.kind == "O":
        for value in set(column[~missing(column)].tolist()):
            alike[folded(value)].add(value)
    return sorted(sorted(spellings) for spellings in alike.values() if len(spellings) > 1)


def folded(text: str) -> str:
    """A text by its letters and digits alone; signs where there are no others."""
    plain = unicodedata.normalize("NFKD", stripped(text).casefold())
    kept = "".join(ch for ch in plain if ch.isalnum())
    return kept or plain
