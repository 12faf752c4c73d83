"""Estimators as model files: settings as JSON where they are values, never as code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found
from mlestruct.storage.trees import Tree, pack, unpack
from mlestruct.structures.base import Array

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class StoredFit:
    """The model that every fit leaves, and how its alpha was chosen."""

    model: Found
    alpha: float
    alpha_scores: list[tuple[float, float]]
    notes: list[str] = field(default_factory=list)
    scale: Array | None = None
    """What a penalty takes every weight times, where that is not 1 for all."""
    columns: list[str] | None = None
    """The names of X's columns, where every example had them."""


def write(
    path: Path,
    kind: str,
    settings: Mapping[str, Any],
    fitted: StoredFit,
    learned: Tree,
    private: bool = False,
) -> None:
    """Settings that are values go into the header, arrays beside the weights, code nowhere.

    ``learned`` is what the kind of model knows besides; nobody but its owner may read a
    ``private`` file.
    """
    from mlestruct.storage import files

    plain, again, beside = {}, [], {}
    for name, value in settings.items():
        try:
            plain[name], more = pack(value, f"settings.{name}")
            beside.update(more)
        except TypeError:
            again.append(name)
    model = fitted.model
    inference, more = pack(model.learned, "inference")
    own, most = pack(learned, "learned")
    beside.update(more | most)
    header = {
        "settings": plain,
        "again": again,
        "certificate": asdict(model.certificate),
        "alpha": fitted.alpha,
        "route": model.route,
        "short": model.short,
        "notes": fitted.notes,
        "inference": inference,
        "learned": own,
        "columns": fitted.columns,
    }
    arrays = {
        "coef": model.theta,
        "history": np.array(model.history, dtype=float).reshape(-1, 4),
        "alpha_scores": np.array(fitted.alpha_scores, dtype=float).reshape(-1, 2),
        **({} if fitted.scale is None else {"scale": fitted.scale}),
        **beside,
    }
    files.save(path, kind, arrays, header, private=private)


@contextmanager
def loading(path: Path, kind: str) -> Iterator[None]:
    """Errors raised inside are raised as a ValueError that names the file."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ValueError(f"{path} does not load as a {kind}: {error}") from error


def read(path: Path, kind: str, again: Mapping[str, Any]) -> tuple[dict[str, Any], StoredFit, Tree]:
    """(settings, what was fitted, what was learned besides), the settings in ``again`` replaced."""
    from mlestruct.storage import files

    arrays, header = files.load(path, kind)
    with loading(path, kind):
        missing = [name for name in header["again"] if name not in again]
        if missing:
            raise ValueError(
                f"it was saved without its {', '.join(missing)}, which is code: "
                f"load(path, {', '.join(f'{name}=…' for name in missing)})"
            )
        settings = {name: unpack(value, arrays) for name, value in header["settings"].items()}
        if arrays["coef"].ndim != 1 or arrays["coef"].dtype != float:
            raise ValueError(f"its weights are {arrays['coef'].shape} {arrays['coef'].dtype}")
        scale, columns = arrays.get("scale"), header.get("columns")
        if scale is not None and (scale.shape != arrays["coef"].shape or not (scale > 0).all()):
            raise ValueError(f"its scale is {scale.shape}, and not positive for every weight")
        if columns is not None and not (
            isinstance(columns, list) and all(type(v) is str for v in columns)
        ):
            raise ValueError("its names of columns are no list of texts")
        model = Found(
            arrays["coef"],
            Certificate(**header["certificate"]),
            history=[(int(calls), *map(float, row)) for calls, *row in arrays["history"]],  # type: ignore[misc]
            route=header["route"],
            learned=unpack(header["inference"], arrays),
            short=str(header["short"]),
        )
        fitted = StoredFit(
            model,
            header["alpha"],
            [(float(a), float(b)) for a, b in arrays["alpha_scores"]],
            header["notes"],
            scale,
            columns,
        )
        return {**settings, **again}, fitted, unpack(header["learned"], arrays)
