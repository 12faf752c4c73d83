"""Estimators as model files: settings as JSON where they are values, never as code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from mlestruct.learning.dual import Certificate
from mlestruct.learning.loop import Found
from mlestruct.storage import files
from mlestruct.storage.trees import pack, unpack

Path = str | os.PathLike[str]


def save(path: Path, model: Any) -> None:
    """Settings that are values go into the header, arrays beside the weights, code nowhere."""
    plain, again, arrays = {}, [], {}
    for name, value in model.get_params().items():
        try:
            plain[name], more = pack(value, f"settings.{name}")
            arrays.update(more)
        except TypeError:
            again.append(name)
    inference, more = pack(model._learned, "inference")
    own, most = pack(model.stored(), "learned")
    header = {
        "settings": plain,
        "again": again,
        "certificate": asdict(model.certificate_),
        "alpha": model.alpha_,
        "route": model.route_,
        "short": model._short,
        "notes": model.notes_,
        "inference": inference,
        "learned": own,
        "columns": model._columns,
    }
    arrays |= more | most
    arrays["coef"], arrays["scale"] = model.coef_, model.scale_
    arrays["history"] = np.array(model.history_, dtype=float).reshape(-1, 4)
    arrays["alpha_scores"] = np.array(model.alpha_scores_, dtype=float).reshape(-1, 2)
    files.save(path, type(model).__name__, arrays, header, private=model.private)


def load(path: Path, kind: Any, again: Mapping[str, Any]) -> Any:
    """A model of this kind, the settings in ``again`` replaced; a ValueError names the file."""
    arrays, header = files.load(path, kind.__name__)
    try:
        missing = [name for name in header["again"] if name not in again]
        if missing:
            raise ValueError(
                f"it was saved without its {', '.join(missing)}, which is code: "
                f"load(path, {', '.join(f'{name}=…' for name in missing)})"
            )
        settings = {name: unpack(value, arrays) for name, value in header["settings"].items()}
        settings |= again
        certificate = Certificate(**header["certificate"])
        theta, scale, columns = arrays["coef"], arrays["scale"], header["columns"]
        if theta.ndim != 1 or theta.dtype != float:
            raise ValueError(f"its weights are {theta.shape} {theta.dtype}")
        if scale.shape != theta.shape or not (scale > 0).all():
            raise ValueError(f"its scale is {scale.shape}, and not positive for every weight")
        if columns is not None and not all(type(name) is str for name in columns):
            raise ValueError("its names of columns are no list of texts")
        kind.check_names(settings)
        model, learned = kind(**settings), unpack(header["inference"], arrays)
        model.scale_ = scale
        found = Found(
            theta,
            certificate,
            history=[(int(calls), *map(float, row)) for calls, *row in arrays["history"]],  # type: ignore[misc]
            route=header["route"],
            learned=learned,
            short=str(header["short"]),
            inference=model._learner(header["alpha"]).inference.recall(learned),
        )
        model._keep(found, header["alpha"], len(theta))
        model.alpha_scores_ = [(float(a), float(b)) for a, b in arrays["alpha_scores"]]
        model.notes_, model._columns = header["notes"], columns
        model.restore(unpack(header["learned"], arrays))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ValueError(f"{path} does not load as a {kind.__name__}: {error}") from error
    return model
