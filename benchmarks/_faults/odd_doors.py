"""Inputs invented for the doors: odd ones that are right, to be read right, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import mlestruct as ms
from benchmarks._faults.refusal import Bad, bad
from mlestruct.tables import table

RNG = np.random.default_rng(18)
COUNT = 5


@dataclass(frozen=True)
class Task:
    """An estimator with examples of its own; ``plain`` is what it learns of them."""

    name: str
    make: Callable[..., Any]
    X: list[Any]
    y: list[Any]

    def learned(self, X: Any = None, y: Any = None, *more: Any, **settings: Any) -> bytes:
        """The weights' bits and those of the first example's probabilities."""
        model = self.make(tol=1e-2, **settings)
        model.fit(self.X if X is None else X, self.y if y is None else y, *more)
        told = model.predict_marginals(self.X[:1])[0]
        parts = told if isinstance(told, tuple) else (told,)
        return b"".join(np.asarray(part).tobytes() for part in (model.coef_, *parts))


def tasks() -> list[Task]:
    """One of each front door."""
    tables = [RNG.normal(size=(3, 3, 2)) for _ in range(COUNT)]
    rows = [RNG.normal(size=(4, 2)) for _ in range(COUNT)]
    images = [RNG.normal(size=(3, 2, 2)) for _ in range(COUNT)]
    bags = [RNG.normal(size=3) for _ in range(COUNT)]
    return [
        Task("matching", ms.MatchingModel, tables, [RNG.permutation(3) for _ in tables]),
        Task("sequence", ms.SequenceModel, rows, [(x[:, 0] > 0).astype(int) for x in rows]),
        Task("grid", ms.GridModel, images, [(x[..., 0] > 0).astype(int) for x in images]),
        Task("several labels", ms.MultiLabelModel, bags, [(x[:2] > 0).astype(int) for x in bags]),
    ]


@dataclass(frozen=True)
class Odd:
    """An odd input that is right: ``given`` has to come to what ``plain`` comes to."""

    name: str
    given: Callable[[], Any]
    plain: Callable[[], Any]

    def __str__(self) -> str:
        return self.name


def misread(odd: Odd) -> str | None:
    """What is wrong with how it is read; None if it is read right."""
    try:
        found = odd.given()
    except Exception as error:  # whatever it is, it is no reading
        return f"it was refused: {type(error).__name__}: {error}"
    return None if found == odd.plain() else "it was read as something else"


class Own:
    """An array of another library's: only what NumPy asks for."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.kept, dtype)

    def __len__(self) -> int:
        return len(self.kept)


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


FORMS: dict[str, Callable[[Any], Any]] = {
    "columns first": np.asfortranarray,
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards twice": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "objects": lambda x: x.astype(object),
    "nested lists": lambda x: x.tolist(),
    "long": lambda x: x.astype(np.longdouble),
    "unmasked": np.ma.masked_array,
    "read only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "a buffer": lambda x: memoryview(np.ascontiguousarray(x)),
    "decimals": lambda x: np.array([Decimal(v) for v in x.ravel().tolist()], object).reshape(
        x.shape
    ),
    "an array of its own": lambda x: Own(x),
    "tuples": lambda x: _tuples(x.tolist()),
}
LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "a tuple": tuple,
    "one array": np.stack,
    "an array of objects": lambda items: _objects(items),
    "a shuffled Series": lambda items: pd.Series(_objects(items), index=[4, 2, 0, 3, 1]),
}
WEIGHTS: dict[str, Any] = {
    "whole numbers": [1, 1, 2, 1, 3],
    "a tuple": (1.0, 1.0, 2.0, 1.0, 3.0),
    "a shuffled Series": pd.Series([1, 1, 2, 1, 3], index=[4, 2, 0, 3, 1]),
    "bytes": np.array([1, 1, 2, 1, 3], dtype=np.uint8),
    "objects": np.array([1, 1.0, 2, 1, 3], dtype=object),
}
FILES: dict[str, bytes] = {
    "a mark at the start": b"\xef\xbb\xbfid,n\nx,1\ny,2\n",
    "ends of another system": b"id,n\r\nx,1\r\ny,2\r\n",
    "no end at the end": b"id,n\nx,1\ny,2",
    "empty lines below": b"id,n\nx,1\ny,2\n\n\n",
    "semicolons": b"id;n\nx;1\ny;2\n",
    "tabs": b"id\tn\nx\t1\ny\t2\n",
    "quotes around all": b'"id","n"\n"x","1"\n"y","2"\n',
    "two bytes a sign": "id,n\nx,1\ny,2\n".encode("utf-16"),
}


def _objects(items: list[Any]) -> Any:
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found


def odd() -> Iterator[Odd]:
    """Odd, and right."""
    for task in tasks():
        yield from _forms(task)
    yield from _labels()
    yield from _attributes()
    for name, raw in FILES.items():
        yield Odd(f"table: {name}", lambda raw=raw: _read(raw), lambda: [["x", "y"], [1.0, 2.0]])


def _forms(task: Task) -> Iterator[Odd]:
    for name, form in FORMS.items():
        given = [form(x) for x in task.X]
        yield Odd(f"{task.name}, X: {name}", lambda g=given: task.learned(g), task.learned)
        if name not in ("long", "a buffer", "decimals"):
            given = [form(y) for y in task.y]
            yield Odd(
                f"{task.name}, y: {name}", lambda g=given: task.learned(None, g), task.learned
            )
    for name, form in LISTS.items():
        X, y = form(task.X), form(task.y)
        yield Odd(f"{task.name}, both: {name}", lambda X=X, y=y: task.learned(X, y), task.learned)
    plain = [1.0, 1.0, 2.0, 1.0, 3.0]
    for name, weight in WEIGHTS.items():
        yield Odd(
            f"{task.name}, weights: {name}",
            lambda w=weight: task.learned(None, None, w),
            lambda: task.learned(None, None, plain),
        )
    for name, alpha in {"one of a list": [0.5], "NumPy's": np.float32(0.5)}.items():
        yield Odd(
            f"{task.name}, alpha: {name}",
            lambda a=alpha: task.learned(alpha=a),
            lambda: task.learned(alpha=0.5),
        )


def _labels() -> Iterator[Odd]:
    X = [np.array([[0.0], [9.0], [0.0], [9.0]])] * 4
    for name, labels in {
        "beyond 2^53": [2**53, 2**53 + 1] * 2,
        "composed and not": ["é", "e\u0301"] * 2,
        "truth values": [True, False] * 2,
        "negative and not whole": [-1.5, 2.0] * 2,
        "widths mixed": [np.int8(4), np.int64(5), 4, 5],
        "blanks": ["a", "a "] * 2,
        "empty": ["", "a"] * 2,
        "signs that turn": ["\u202ea", "a"] * 2,
    }.items():
        yield Odd(
            f"labels: {name}",
            lambda v=labels: list(ms.SequenceModel(alpha=0.01).fit(X, [v] * 4).predict(X)[0]),
            lambda v=labels: list(v),
        )


def _attributes() -> Iterator[Odd]:
    named = [[["a", "b"], ["b", "c"], ["c"]], [["a"], ["b"], ["a", "c"]]] * 3
    y = [["x", "y", "x"], ["x", "x", "y"]] * 3

    def learned(X: Any) -> Any:
        model = ms.SequenceModel(tol=1e-2).fit(X, y)
        return sorted(model.attributes_.names), model.coef_.tobytes()

    for name, form in {
        "sets": set,
        "frozen sets": frozenset,
        "keys": lambda p: dict.fromkeys(p, 1.0).keys(),
        "tuples": tuple,
        "truth values": lambda p: dict.fromkeys(p, True),
        "numbers of NumPy": lambda p: dict.fromkeys(p, np.float32(1)),
    }.items():
        given = [[form(p) for p in x] for x in named]
        yield Odd(f"attributes: {name}", lambda g=given: learned(g), lambda: learned(named))
    dense = [RNG.integers(0, 2, size=(4, 3)).astype(float) for _ in range(COUNT)]
    tags = [(x[:, 0] > 0).astype(int) for x in dense]
    plain = ms.SequenceModel(tol=1e-9).fit(dense, tags).coef_
    for name, form in {
        "by rows": sp.csr_array, "by columns": sp.csc_array, "triples": sp.coo_array,
        "blocks": sp.bsr_array, "diagonals": sp.dia_array, "lists": sp.lil_array,
        "a matrix": sp.csr_matrix,
    }.items():  # fmt: skip
        given = [form(x) for x in dense]
        yield Odd(
            f"sparse: {name}",
            lambda g=given: bool(
                np.allclose(ms.SequenceModel(tol=1e-9).fit(g, tags).coef_, plain, atol=1e-6)
            ),
            lambda: True,
        )


def _read(raw: bytes) -> list[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "given.csv"
        path.write_bytes(raw)
        found = table(path)
    return [list(found["id"]), [float(v) for v in found["n"]]]


SPOILT: dict[str, Callable[[Any], Any]] = {
    "not a number": lambda x: _put(x, np.nan),
    "infinite": lambda x: _put(x, -np.inf),
    "beyond all sizes": lambda x: _put(x, 1e200),
    "text": lambda x: x.astype(str),
    "complex": lambda x: x + 1j,
    "a date": lambda x: np.full(x.shape, np.datetime64("2026-01-01")),
    "a span of time": lambda x: np.full(x.shape, np.timedelta64(1, "s")),
    "None among objects": lambda x: _put(x.astype(object), None),
    "text among objects": lambda x: _put(x.astype(object), "1"),
    "an integer of 400 digits": lambda x: _put(x.astype(object), 10**400),
    "a masked entry": lambda x: np.ma.masked_array(x, np.arange(x.size).reshape(x.shape) == 1),
    "no entries": lambda x: x[:0],
    "another width": lambda x: np.concatenate([x, x], axis=-1),
    "one axis more": lambda x: x[None],
    "one number": lambda x: 3.0,
    "None": lambda x: None,
}
UNWEIGHED: dict[str, Any] = {
    "negative": [1, 1, -1, 1, 1], "zero": [1, 0, 1, 1, 1], "not a number": [1, np.nan, 1, 1, 1],
    "infinite": [1, 1, np.inf, 1, 1], "text": ["1"] * 5, "too few": [1, 1], "two axes": [[1] * 5],
    "beyond all sizes": [1, 1, 1e200, 1, 1], "complex": [1j] * 5, "None": [None] * 5,
    "masked": np.ma.masked_equal(np.arange(5.0), 0),
}  # fmt: skip
NO_ALPHA: dict[str, Any] = {
    "zero": 0.0, "negative": -1.0, "not a number": np.nan, "infinite": np.inf, "text": "1",
    "None": None, "none": [], "two axes": [[1.0]], "among others": [1.0, np.nan],
    "beyond all sizes": 1e-200, "complex": 1j,
}  # fmt: skip


def _put(x: Any, value: Any) -> Any:
    changed = x.copy()
    changed.flat[1] = value
    return changed


def wrong() -> list[Bad]:
    """Wrong, to be refused in words."""
    found = []
    for task in tasks():
        fit = task.make(tol=1e-2).fit
        for name, spoil in SPOILT.items():
            X = [*task.X[:2], spoil(task.X[2]), *task.X[3:]]
            found.append(
                bad(f"{task.name}, X: {name}", r"example [23]|features|numbers", fit, X, task.y)
            )
        for name, y in _outcomes(task.y).items():
            found.append(bad(f"{task.name}, y: {name}", r"\w+ \w+", fit, task.X, y))
        for name, weight in UNWEIGHED.items():
            words = r"example \d has weight|sample_weight"
            found.append(bad(f"{task.name}, weights: {name}", words, fit, task.X, task.y, weight))
        for name, alpha in NO_ALPHA.items():
            fit_so = task.make(tol=1e-2, alpha=alpha).fit
            found.append(bad(f"{task.name}, alpha: {name}", "alpha|lam", fit_so, task.X, task.y))
    return found


def _outcomes(y: list[Any]) -> dict[str, Any]:
    return {
        "None": None,
        "one too few": y[:-1],
        "infinite": [*y[:2], _put(y[2].astype(float), np.inf), *y[3:]],
        "complex": [*y[:2], y[2] + 1j, *y[3:]],
        "one axis more": [*y[:2], y[2][None, None], *y[3:]],
        "cut": [*y[:2], y[2][:1], *y[3:]],
        "a name": "name",
        "a number": 3,
    }
