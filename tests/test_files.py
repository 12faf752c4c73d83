"""Model files: bit-for-bit round trips; damaged, oversized and foreign files are refused."""

import hashlib
import io
import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest

from mlestruct.storage import files

ARRAYS = {
    "coef": np.array([0.1, -np.inf, 5e-324]),
    "classes": np.array(["ham", "ćevap"]),
    "index": np.arange(6).reshape(2, 3).T,
    "flag": np.array(True),
    "none": np.zeros((0, 3), dtype=np.float32),
}
HEADER = {"settings": {"alpha": 0.1, "tol": float("inf")}, "names": ["a", "b"]}


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "model.npz"
    files.save(target, "Model", ARRAYS, HEADER)
    return target


def test_what_is_loaded_is_what_was_saved(path):
    arrays, header = files.load(path, "Model")
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
    with np.load(path, allow_pickle=False) as plain:
        np.testing.assert_array_equal(plain["coef"], ARRAYS["coef"])


def test_every_flipped_byte_and_every_truncation_is_refused(path):
    files.save(path, "Model", {"coef": ARRAYS["coef"]}, {})
    raw = path.read_bytes()
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|no npz"):
            files.load(path, "Model")
    for length in range(0, len(raw), 7):
        path.write_bytes(raw[:length])
        with pytest.raises(ValueError, match=r"damaged|no npz"):
            files.load(path, "Model")
    path.write_bytes(raw + b"\0")
    with pytest.raises(ValueError, match="damaged"):
        files.load(path, "Model")


def forged(entries, compress=zipfile.ZIP_STORED, header=None):
    """A file with a right checksum and somebody else's contents."""
    named = [name.removesuffix(".npy") for name, _ in entries]
    whole = {"format": "mlestruct", "version": 1, "kind": "Model", "header": {}, "arrays": named}
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", compress) as archive:
        archive.comment = b"0" * 64
        text = json.dumps({**whole, **(header or {})}) if header is not False else "[" * 100_000
        archive.writestr(files.HEADER, text)
        for name, content in entries:
            archive.writestr(name, content)
    raw = body.getvalue()[:-64]
    return raw + hashlib.sha256(raw).hexdigest().encode()


def npy(array, **settings):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **settings)
    return stream.getvalue()


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


LIE = npy(np.zeros(4)).replace(b"(4,)", b"(9,)")
BOMB = npy(np.zeros(4)).replace(b"(4,), } ", b"(1<<9,),}")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (pickle.dumps(Trap()), "no npz archive"),
        (b"", "no npz archive"),
        (forged([("a.npy", npy(np.array([Trap()])))]), "a.npy has dtype object"),
        (forged([("a.npy", LIE)]), r"a.npy claims shape \(9,\) of float64"),
        (forged([("a.npy", npy(np.zeros(4), version=(2, 0)))]), "no array of version 1.0"),
        (forged([("a.npy", BOMB)]), "is not a model file"),
        (forged([("a.npy", npy(np.zeros(2, dtype="m8[s]")))]), "a.npy has dtype timedelta64"),
        (forged([("a.npy", b"junk")]), "is not a model file"),
        (forged([("a.npy", npy(np.zeros(99)))], zipfile.ZIP_DEFLATED), "is compressed"),
        (forged([], header={"format": "other"}), "its format is 'other'"),
        (forged([], header={"arrays": ["a"]}), r"it should hold \['a'\], and holds \[\]"),
        (forged([], header={"version": 2}), "has format version 2; this mlestruct reads 1"),
        (forged([], header={"kind": "Other"}), "holds a Other, not a Model"),
        (forged([], header=False), "is not a model file"),
    ],
)
def test_foreign_files_are_refused_and_never_run(tmp_path, raw, message):
    path = tmp_path / "foreign.npz"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=message):
        files.load(path, "Model")


def test_large_files_are_refused_unread(path):
    with pytest.raises(ValueError, match="bytes; it may have at most 10"):
        files.load(path, "Model", largest=10)


@pytest.mark.parametrize(
    ("arrays", "header", "message"),
    [
        ({"a": np.array([{}])}, {}, "array 'a' holds Python objects"),
        ({}, {"a": {1, 2}}, "a header holds JSON only"),
    ],
)
def test_what_cannot_be_stored_leaves_the_old_file(path, arrays, header, message):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        files.save(path, "Model", arrays, header)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_contents_are_on_the_disk_before_the_name_is(path, monkeypatch):
    """Written, synchronised, renamed, and the rename synchronised: a power cut at any point."""
    calls, replace, fsync = [], os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda *ends: calls.append("rename") or replace(*ends))
    monkeypatch.setattr(os, "fsync", lambda what: calls.append(_kind(what)) or fsync(what))
    files.save(path, "Model", ARRAYS, HEADER)
    assert calls == ["file", "rename", "directory"]


def _kind(descriptor):
    return "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"


@pytest.mark.parametrize("said", ["-" * 9000 + "1", "(" * 9000, "{'descr': [('a', '<f8')]}", "1"])
def test_what_an_array_says_of_itself_is_matched_never_parsed(said):
    header = said.encode() + b"\n"
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(ValueError, match="as NumPy would"):
        files._array("a.npy", raw)
