"""Labels of which some are void: not known, so that nothing is learned or judged of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Partial
from mlestruct.errors import DataWarning, outside
from mlestruct.estimators.labels import Labels, as_labels, states_of
from mlestruct.structures.base import Ints, absent

AUTO = "auto"
MARK = 255  # many data sets of pictures in bytes have it for "no label"
SETS = (set, frozenset)


class Seen(NamedTuple):
    """One example's labels: the known ones in order, and where they stand."""

    labels: Labels
    known: NDArray[np.bool_]
    among: dict[int, list[Any]]
    """Of nodes known to have one of several labels: which."""


def seen_in(given: Any, void: Sequence[Any], nodes: int) -> Seen:
    """What is known of an example's labels.

    Void are None, NaN, masked entries, the codes in ``void``, and in a :class:`Partial` −1 as well;
    a mapping names the nodes that are known. A set says that the label is one of its members.
    """
    if isinstance(given, Partial):
        return seen_in(given.observed, [*void, -1], nodes)
    if isinstance(given, Mapping):
        given = _listed(given, nodes)
    if hasattr(given, "__next__"):
        raise ValueError(
            f"y is a {type(given).__name__}, which is empty after one look: pass a list"
        )
    listed = isinstance(given, Iterable) or hasattr(given, "__array__")
    if given is None or isinstance(given, str) or not listed:
        raise ValueError(f"y is {given!r}; expected a label for each of {nodes} nodes")
    array = _array(given)
    known = ~missing(array)
    if isinstance(given, np.ma.MaskedArray):
        known &= ~np.ma.getmaskarray(given)
    for code in void:
        known &= np.asarray(array != code, dtype=bool)
    among = {}
    if array.dtype.kind == "O":
        among = {i: sorted(v) for i, v in enumerate(array.ravel()) if isinstance(v, SETS)}
        known.ravel()[list(among)] = False
    return Seen(as_labels(array[known]), known, among)


WHOLE = {int, str, bool, np.str_, np.int64}  # kinds of which no value is missing


def _listed(given: Mapping[Any, Any], nodes: int) -> list[Any]:
    strange = [i for i in given if not isinstance(i, (int, np.integer)) or not 0 <= i < nodes]
    if strange:
        raise ValueError(f"y names node {strange[0]!r}; there are nodes 0 to {nodes - 1}")
    return [given.get(i) for i in range(nodes)]


def _array(given: Any) -> NDArray[Any]:
    """Labels as they are: a list stays a list of objects, as ["a", nan] is no text."""
    if isinstance(given, np.ma.MaskedArray):
        return np.asarray(given.data)
    if hasattr(given, "dtype") or hasattr(given, "__array__"):
        return np.asarray(given)
    return np.array(list(given), dtype=object)


def missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is no value at all: None, NaN, NaT, pandas' NA."""
    if array.dtype.kind in "fc":
        return np.isnan(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind != "O" or set(map(type, array.ravel())) <= WHOLE:
        return np.zeros(array.shape, dtype=bool)
    return np.array([absent(v) for v in array.ravel()], dtype=bool).reshape(array.shape)


def codes_of(setting: Any, seen: Sequence[Seen]) -> tuple[Any, ...]:
    """The labels that mean void: those named, or −1 where the others are two integers ≥ 0 or more.

    Whole numbers count as integers, as arrays that once held NaN are of floats.
    Beside 0 and 1 alone, −1 may be a class of its own: a warning says how it was taken.
    """
    if not (isinstance(setting, str) and setting == AUTO):
        if setting is None:
            return ()
        listed = isinstance(setting, Iterable) and not isinstance(setting, str)
        return tuple(setting) if listed else (setting,)
    values = [s.labels for s in seen if s.labels.size]
    if not values or not all(_whole(v) for v in values):
        return ()
    distinct = np.unique(np.concatenate(values))
    usual = list(range(len(distinct) - 1))
    if len(usual) > 1 and distinct.tolist() == [*usual, MARK]:
        warnings.warn(
            f"labels 0 to {usual[-1]}, and {MARK}: {MARK} is taken for a class of its own; if it "
            f"means 'no label' say void={MARK}, else void=None",
            DataWarning,
            stacklevel=outside(),
        )
    others = distinct[distinct != -1]
    if len(others) == len(distinct) or len(others) < 2 or others[0] < 0:
        return ()
    if others.tolist() == [0, 1]:
        warnings.warn(
            "labels −1, 0, 1: −1 is taken for 'no label'; say void=-1 if that is right, or "
            "void=None if it is a class of its own",
            UserWarning,
            stacklevel=2,
        )
    return (-1,)


def _whole(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "iu" or (
        labels.dtype.kind == "f" and bool((labels == np.rint(labels)).all())
    )


def observed(classes: Labels, seen: Seen, m: int) -> Ints | Partial:
    """States of an example's labels; where some are void, what is known of them."""
    states = states_of(classes, seen.labels, m)
    if seen.known.all():
        return states
    found = np.full(seen.known.size, -1)
    found[seen.known.ravel()] = states
    return Partial(allowed(classes, found, seen.among, m) if seen.among else found)


def allowed(
    classes: Labels, states: Ints, among: Mapping[int, list[Any]], m: int
) -> NDArray[np.bool_]:
    """A flag per node and label: whether the node may have it. State −1 is any label."""
    flags = (states[:, None] < 0) | (states[:, None] == np.arange(len(classes)))
    for i, labels in among.items():
        if len(labels) == 0:
            raise ValueError(f"example {m}: node {i} may have no label at all")
        flags[i] = np.isin(np.arange(len(classes)), states_of(classes, labels, m))
    return flags
