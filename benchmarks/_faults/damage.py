"""Damaged and forged files of every kind the library reads, and what is to come of reading them."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import pickle
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

import mlestruct as ms
from benchmarks._faults import hostile
from mlestruct.learning.checkpoints import Checkpoint
from mlestruct.readers import read_columns
from mlestruct.storage import files
from mlestruct.tables import table

SECONDS, BYTES = (
    5.0,
    64 << 20,
)  # of processor time (a collection may fall into it), and of memory beyond what was there
TABLES = [np.random.default_rng(k).standard_normal((3, 3, 2)) for k in range(4)]
PARTNERS = [[0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0]]
MARK = Path(gettempdir()) / f"a pickle ran here, {os.getpid()}"


@dataclass(frozen=True)
class Kind:
    """A kind of file: one that is whole, how it is read, and whether it knows itself damaged.

    Text has no checksum: a table cut after a row is a shorter table. There a reader may take what
    is left; it may not fail in any other way.
    """

    name: str
    suffix: str
    whole: bytes
    read: Callable[[Path], Any]
    sealed: bool


@dataclass(frozen=True)
class Damage:
    """A file of some kind with something done to it; ``loads`` says that it may load."""

    kind: Kind
    what: str
    raw: bytes
    loads: bool

    def __str__(self) -> str:
        return f"{self.kind.name}, {self.what}"


Way = Callable[[Kind, np.random.Generator, int], Damage]
"""Something done to a file of a kind, with what is drawn, and how often it was done before."""


def fault(damage: Damage) -> str | None:
    """What is wrong with how it is taken; None if it is refused, or loads where it may."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ms.ConvergenceWarning)
        path = Path(folder) / f"given{damage.kind.suffix}"
        path.write_bytes(damage.raw)
        tracemalloc.start()
        start = time.process_time()
        told = _told(damage.kind.read, path)
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if MARK.exists():
        MARK.rmdir()
        return "it was executed"
    if told is None and not damage.loads:
        return "it was accepted"
    if told is not None and not isinstance(told, ValueError):
        return f"it raised {type(told).__name__}: {told}"
    if told is not None and not str(told):
        return "it was refused without a word"
    if seconds > SECONDS or peak > BYTES:
        return f"it took {seconds:.1f} s and {peak >> 20} MiB"
    return None


def _told(read: Callable[[Path], Any], path: Path) -> BaseException | None:
    try:
        read(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def damaged(count: int, seed: int = 0) -> Iterator[Damage]:
    """``count`` files: every kind and every way in turn, places drawn by ``seed``."""
    rng, before = np.random.default_rng(seed), Counter[tuple[str, Way]]()
    ways = [(kind, way) for kind in kinds() for way in (*WAYS, *(FORGED if kind.sealed else ()))]
    for kind, way in itertools.islice(itertools.cycle(ways), count):
        yield way(kind, rng, before[kind.name, way])
        before[kind.name, way] += 1


def kinds() -> list[Kind]:
    """A file of each kind, made by the library where it writes that kind."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "file"
        X = [[{"word": word} for word in line.split()] for line in ("in Rome", "Rome is old")]
        ms.SequenceModel(tol=0.1).fit(X, [["O", "B"], ["B", "O", "O"]]).save(place)
        words = place.read_bytes()
        people = [{"id": i, "tidy": i % 3} for i in range(6)]
        ms.RoommateModel(ordinal="tidy").fit(people, [(0, 3), (1, 4), (2, 5)]).save(place)
        pairs = place.read_bytes()
        place.unlink()
        hostile.fit(hostile.Assigns(), replace(_going_on(place), rounds=5))
        kept = place.read_bytes()
        place.unlink()
        _alphas(place)
        chosen = place.read_bytes()
        ms.MatchingModel(tol=0.1).fit(TABLES, PARTNERS).save(place)
        tables = place.read_bytes()
    people_csv = "id,year,tidy\n" + "".join(f"{i},{i % 2},{i % 5}\n" for i in range(40))
    tokens = "".join(f"w{i} T{i % 3} B-x\n" + "\n" * (i % 7 == 6) for i in range(40))
    return [
        Kind("sequence model", ".npz", words, ms.SequenceModel.load, True),
        Kind("room-mates model", ".npz", pairs, ms.RoommateModel.load, True),
        Kind("checkpoint", ".npz", kept, _resume, True),
        Kind("checkpoint of alphas", ".npz", chosen, _alphas, True),
        Kind("matching model, asked", ".npz", tables, _asked, True),
        Kind("table", ".csv", people_csv.encode(), table, False),
        Kind("CoNLL columns", ".txt", tokens.encode(), read_columns, False),
    ]


def _going_on(path: Path) -> ms.FrankWolfe:
    return replace(hostile.SOLVER, rounds=5, checkpoint=Checkpoint(path, every=1))


def _resume(path: Path) -> Any:
    return hostile.fit(hostile.Assigns(), _going_on(path))


def _alphas(path: Path) -> Any:
    model = ms.MatchingModel(alpha=[0.1, 1.0], tol=0.1)
    return model.fit(TABLES, PARTNERS, checkpoint=Checkpoint(path, every=1))


def _asked(path: Path) -> Any:
    return ms.MatchingModel.load(path).predict_marginals(TABLES[:1])


def _cut(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    percent = 37 * number % 100  # of the file is left: every one in a hundred cuts
    left = kind.whole[: len(kind.whole) * percent // 100]
    return Damage(kind, f"cut at {percent} %", left, not kind.sealed)


def _flip(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    raw, place = bytearray(kind.whole), int(rng.integers(len(kind.whole)))
    raw[place] ^= 1 << int(rng.integers(8))
    return Damage(kind, f"a bit of byte {place} flipped", bytes(raw), not kind.sealed)


def _noise(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    raw, place = bytearray(kind.whole), int(rng.integers(len(kind.whole)))
    raw[place : place + 16] = rng.bytes(16)
    return Damage(kind, f"noise at byte {place}", bytes(raw), not kind.sealed)


def _twice(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    return Damage(kind, "the file twice", 2 * kind.whole, not kind.sealed)


def _huge(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    """A number replaced by a large one: declared sizes among them."""
    digits = [k for k, byte in enumerate(kind.whole) if chr(byte).isdigit()]
    place = digits[int(rng.integers(len(digits)))]
    large = str(10 ** int(rng.integers(6, 40))).encode()
    raw = kind.whole[:place] + large + kind.whole[place + 1 :]
    return Damage(kind, f"{large.decode()} at byte {place}", raw, not kind.sealed)


def _pickle(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    return Damage(
        kind, "a pickle", pickle.dumps(Trap(), protocol=int(rng.integers(6))), not kind.sealed
    )


class Trap:
    """Leaves a mark where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(MARK),)


WAYS: tuple[Way, ...] = (_cut, _flip, _cut, _noise, _cut, _twice, _cut, _huge, _pickle)


# Forged: whoever makes these knows the format, and gives them the right checksum.


def _sealed(entries: list[tuple[str, bytes]], compress: int = zipfile.ZIP_STORED) -> bytes:
    body = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(body, "w", compress) as archive:
        warnings.simplefilter("ignore")  # of names that come twice
        archive.comment = b"0" * files.DIGEST
        for name, content in entries:
            archive.writestr(name, content)
    raw = body.getvalue()[: -files.DIGEST]
    return raw + hashlib.sha256(raw).hexdigest().encode()


def _entries(kind: Kind) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(kind.whole)) as archive:
        return [(entry.filename, archive.read(entry)) for entry in archive.infolist()]


def _duplicate(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    entries = _entries(kind)
    again = entries[int(rng.integers(len(entries)))]
    return Damage(kind, f"{again[0]} twice", _sealed([*entries, again]), False)


def _missing(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    entries = _entries(kind)
    gone = entries.pop(int(rng.integers(len(entries))))
    return Damage(kind, f"without {gone[0]}", _sealed(entries), False)


def _outside(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    entries = _entries(kind)
    place = int(rng.integers(len(entries)))
    entries[place] = f"../../{entries[place][0]}", entries[place][1]
    return Damage(kind, "a name that leaves its directory", _sealed(entries), False)


def _compressed(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    bomb = ("bomb.npy", bytes(1 << 24))
    return Damage(kind, "compressed", _sealed([*_entries(kind), bomb], zipfile.ZIP_DEFLATED), False)


def _with_array(kind: Kind, number: int, stream: io.BytesIO) -> bytes:
    """A file with another array in the place of one; entry 0 is the header."""
    entries = _entries(kind)
    place = 1 + number % (len(entries) - 1)
    entries[place] = entries[place][0], stream.getvalue()
    return _sealed(entries)


def _objects(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([Trap()]), allow_pickle=True)
    return Damage(kind, "a pickle as an array", _with_array(kind, number, stream), False)


def _declared(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    stream = io.BytesIO()
    shape = (10 ** int(rng.integers(9, 19)),) * int(rng.integers(1, 4))
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return Damage(kind, f"an array of shape {shape}", _with_array(kind, number, stream), False)


def _reshaped(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    """Another array in the place of one: it may load, and must not fail in another way."""
    stream = io.BytesIO()
    shape = tuple(rng.integers(0, 4, int(rng.integers(0, 4))).tolist())
    made = rng.standard_normal(shape).astype(rng.choice(["f8", "i8", "U3", "?"]))
    np.lib.format.write_array(stream, np.asarray(made), version=(1, 0))
    raw = _with_array(kind, number, stream)
    return Damage(kind, f"an array of shape {shape} and {made.dtype}", raw, True)


def _header(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    """One value of the JSON header replaced: it may load, and must not fail in another way."""
    entries = dict(_entries(kind))
    whole = json.loads(entries[files.HEADER])
    holder, key = _somewhere(whole, rng)
    junk: list[Any] = [None, -1, 1e308, "", "x" * 99, [], {}, [[]], {"array": "none"}, True]
    holder[key] = junk[int(rng.integers(len(junk)))]
    entries[files.HEADER] = json.dumps(whole).encode()
    return Damage(
        kind, f"{key} = {holder[key]!r} in the header", _sealed(list(entries.items())), True
    )


def _somewhere(tree: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A container within the tree, and a place in it."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[int(rng.integers(len(keys)))]
        inside = tree[key]
        if not isinstance(inside, (dict, list)) or not inside or rng.random() < 0.2:
            return tree, key
        tree = inside


def _deep(kind: Kind, rng: np.random.Generator, number: int) -> Damage:
    entries = [(name, b"[" * 100_000 if name == files.HEADER else c) for name, c in _entries(kind)]
    return Damage(kind, "a header without an end", _sealed(entries), False)


FORGED: tuple[Way, ...] = (
    _duplicate, _missing, _outside, _compressed, _objects, _declared, _reshaped, _header, _deep,
)  # fmt: skip
