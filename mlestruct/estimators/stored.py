"""Estimators as model files: settings as JSON where they are values, never as code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from mlestruct.learning.dual import Certificate
from mlestruct.storage import files
from mlestruct.storage.trees import pack, unpack

Path = str | os.PathLike[str]
KEPT = (
    *("coef_", "scale_", "alpha_", "alpha_scores_", "route_", "notes_", "n_iter_", "converged_"),
    *("solver_seconds_", "n_features_in_", "_short", "_learned", "_columns"),
)


def save(path: Path, model: Any) -> None:
    """Settings that are values go into the header, arrays beside the weights, code nowhere."""
    plain, again, arrays = {}, [], {}
    for name, value in model.get_params().items():
        try:
            plain[name], more = pack(value, f"settings.{name}")
            arrays.update(more)
        except TypeError:
            again.append(name)
    tree = {name: getattr(model, name) for name in KEPT} | {
        "certificate": asdict(model.certificate_),
        "history": np.array(model.history_, dtype=float).reshape(-1, 4),
        "learned": model.stored(),
    }
    packed, more = pack(tree, "model")
    header = {"settings": plain, "again": again, "model": packed}
    files.save(path, type(model).__name__, arrays | more, header, private=model.private)


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
        tree = unpack(header["model"], arrays)
        theta, scale, columns = tree["coef_"], tree["scale_"], tree["_columns"]
        if theta.ndim != 1 or theta.dtype != float:
            raise ValueError(f"its weights are {theta.shape} {theta.dtype}")
        if scale.shape != theta.shape or not (scale > 0).all():
            raise ValueError(f"its scale is {scale.shape}, and not positive for every weight")
        if columns is not None and not all(type(name) is str for name in columns):
            raise ValueError("its names of columns are no list of texts")
        kind.check_names(settings)
        model = kind(**settings)
        vars(model).update({name: tree[name] for name in KEPT})
        rows = tree["history"].tolist()
        model.history_ = [(int(calls), *more) for calls, *more in rows]
        model.certificate_ = Certificate(**tree["certificate"])
        model.inference_ = model._learner(tree["alpha_"]).inference.recall(tree["_learned"])
        model.restore(tree["learned"])
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ValueError(f"{path} does not load as a {kind.__name__}: {error}") from error
    return model
