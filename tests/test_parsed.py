"""JSON from outside: what ``json`` reads, unless its nesting could exhaust Python's stack."""

import json
import random

import pytest

from mlestruct.storage import files
from mlestruct.storage.files import NESTED, parsed

LETTERS = '[]{}"\\ ,:ä\n'


def tree(rng, depth):
    if not depth or rng.random() < 0.3:
        return "".join(rng.choices(LETTERS, k=rng.randrange(6)))
    parts = [tree(rng, depth - 1) for _ in range(rng.randrange(4))]
    return parts if rng.random() < 0.5 else {f"{k}]": part for k, part in enumerate(parts)}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_is_no_deeper_is_read_whatever_its_strings_hold(ascii_only):
    rng = random.Random(0)
    for _ in range(300):
        whole = tree(rng, 6)
        assert parsed(json.dumps(whole, ensure_ascii=ascii_only)) == whole
    assert parsed("[" * NESTED + "]" * NESTED) is not None
    assert parsed(json.dumps("[" * 5000)) == "[" * 5000


@pytest.mark.parametrize("start", ["[", '{"a":', '["]]]",', '{"\\"]}":', '"]" [', '" [', ""])
def test_what_is_deeper_is_refused_before_anything_recurses(start, monkeypatch):
    monkeypatch.setattr(files.json, "loads", None)
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed(start + "[" * (NESTED + 1))


@pytest.mark.parametrize("text", ["", "[", "]", '"[', "{]", "\\[", "[1,]"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Illegal|delimiter"):
        parsed(text)
