"""What the doctor says of messy tables is said in German on a German page."""

import re

import numpy as np
import pytest

from mlestruct import data
from mlestruct.doctor import examine
from mlestruct.report import words as of_report
from mlestruct.serve import german, words
from mlestruct.tables import table

FOREIGN = re.compile(r"\b(?:the|and|of|is|are|in a|which|column|row|line|cell|pairs|people)\b")


def spoiled(rng):
    """People and pairs with one fault of nearly every kind, here and there."""
    people, pairs, _ = data.roommates(60, 2, int(rng.integers(100)))
    people = {n: c.astype(object) for n, c in people.items()}
    pairs = {n: c.astype(object) for n, c in pairs.items()}
    some = rng.permutation(len(people["id"]))
    people["q1"][some[:9]] = 99
    people["diet"] = np.array([("meat", "Meat", "fish", "k.A.")[k % 4] for k in some], dtype=object)
    people["free"] = np.array([f"text {k}" for k in some], dtype=object)
    people["flat"] = np.array(["yes"] * (len(some) - 2) + ["no"] * 2, dtype=object)
    people["gap"] = np.array([None if k % 3 else 1 for k in some], dtype=object)
    home = {
        w: k for k, two in enumerate(zip(pairs["id_a"], pairs["id_b"], strict=True)) for w in two
    }
    people["room"] = np.array([home[w] for w in people["id"]], dtype=object)
    people["house"] = np.array([home[w] % 2 for w in people["id"]], dtype=object)
    other = dict(zip(pairs["id_a"], pairs["id_b"], strict=True))
    people["with"] = np.array([other.get(w) for w in people["id"]], dtype=object)
    pairs["id_a"][0], pairs["id_b"][1] = 999, pairs["id_a"][1]
    pairs["id_a"][2] = pairs["id_a"][3]
    people["gender"][some[0]], people["id"][some[1]] = None, people["id"][some[2]]
    people["year"][some[3]] = 7
    return people, pairs


@pytest.mark.parametrize("seed", range(6))
def test_every_finding_is_said_in_german(seed):
    people, pairs = spoiled(np.random.default_rng(seed))
    found = examine([table(people), table(pairs)]).findings
    assert len(found) > 12
    for one in found:
        said = german.finding(one.words)
        assert said is not None, one.words
        assert not FOREIGN.search(re.sub(r"'[^']*'", "", said)), said


def test_how_a_file_was_read():
    said = german.reading(
        "x.csv: 20 rows; UTF-8, semicolons, names in line 3, 2 lines above it left out, "
        "blanks taken off 4 cells (the first in line 8), decimal commas"
    )
    assert said == (
        "x.csv: 20 Zeilen; UTF-8, Semikolons, Namen in Zeile 3, 2 Zeilen darüber ausgelassen, "
        "Leerzeichen in 4 Zellen entfernt (zuerst Zeile 8), Dezimalkommas"
    )


@pytest.mark.parametrize("texts", [words.TEXTS, of_report.TEXTS])
def test_both_languages_of_a_sentence_say_the_same_values(texts):
    for key, both in texts.items():
        english, german = (set(re.findall(r"{\w+}", sentence)) for sentence in both)
        assert english == german, key
