"""Labels of any sortable kind as states 0, 1, … and back, and what weights of labels are called.

Those that are void are not known: nothing is learned or judged of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from reprlib import repr as short
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.errors import DataWarning, outside
from mlestruct.statistics.identified import Named
from mlestruct.structures.base import Array, Ints, absent
from mlestruct.structures.batch import Partial

Labels = NDArray[Any]
Table = Literal["full", "symmetric", "potts"]  # of two labels
AUTO = "auto"
MARK = 255  # many data sets of pictures in bytes have it for "no label"
SETS = (set, frozenset)
WHOLE = {int, str, bool, np.str_, np.int64}  # kinds of which no value is missing


def as_labels(labels: Any) -> Labels:
    """An array of labels, numbers or text.

    A ValueError for labels that one array would change: 1 beside "1", text that ends in NUL,
    2^53 + 1 beside fractions.
    """
    if labels is None:
        raise ValueError("labels are None")
    array = np.asarray(labels, dtype=None if hasattr(labels, "dtype") else object)
    if array.dtype.kind in "cV":
        raise ValueError(f"labels are numbers in an order, or text; these are {array.dtype}")
    if array.dtype.kind != "O":
        return array
    each = array.ravel().tolist()
    odd = next((label for label in each if np.size(label) != 1 or np.ndim(label)), None)
    if odd is not None:
        raise ValueError(f"a label is a number or a text, not {short(odd)}")
    found = np.array(each)
    if found.dtype.kind == "f" and all(isinstance(label, (int, np.integer)) for label in each):
        found = np.array([int(label) for label in each], dtype=object)  # signed beside unsigned
    for label, kept in zip(each, found.tolist(), strict=True):
        if label != kept or isinstance(label, str) != isinstance(kept, str):
            others = f"{each[0]!r} and {each[-1]!r}"
            raise ValueError(
                f"label {label!r} would be {kept!r} in one array with the others ({others}): give "
                "labels that are all whole numbers, or all text"
            )
    return found.reshape(array.shape)


def classes_of(y: Sequence[Any]) -> Labels:
    """Every label of every example, sorted.

    >>> classes_of([["b", "a"], ["b"]]).tolist()
    ['a', 'b']
    """
    given = [labels.ravel() for labels in map(as_labels, y) if labels.size]
    if not given:
        raise ValueError("y holds no label in any example")
    if len({labels.dtype.kind for labels in given}) > 1:
        given = [as_labels(sorted({v for labels in given for v in labels.tolist()}, key=str))]
    try:
        return np.unique(np.concatenate(given))
    except TypeError as error:
        every = sorted({type(label).__name__ for labels in given for label in labels.tolist()})
        raise ValueError(
            f"labels are of type {' and '.join(every)}, which have no order; name each by "
            "a number or a text"
        ) from error


def states_of(classes: Labels, labels: Any, m: int) -> Ints:
    """Positions in ``classes`` of example m's labels, in their shape."""
    given = as_labels(labels)
    known = np.zeros(given.shape, dtype=bool)
    if (given.dtype.kind in "US") == (classes.dtype.kind in "US"):
        known = np.isin(given, classes)
    if not known.all():
        unknown = given[~known].tolist()[0]
        raise ValueError(f"example {m}: label {unknown!r} was not seen in training")
    return np.asarray(np.searchsorted(classes, given))


class Seen(NamedTuple):
    """One example's labels: the known ones in order, and where they stand."""

    labels: Labels
    known: NDArray[np.bool_]
    among: dict[int, list[Any]]
    """Of nodes known to have one of several labels: which."""


def seen_in(given: Any, void: Sequence[Any], nodes: int) -> Seen:
    """What is known of an example's labels.

    Void are None, NaN, masked entries, the codes in ``void``, and in a :class:`Partial` −1 as well;
    a mapping names the nodes that are known. A set says that the label is one of its members. A
    list stays one of objects, as ["a", nan] is no text.
    """
    if isinstance(given, Partial):
        return seen_in(given.observed, [*void, -1], nodes)
    if isinstance(given, Mapping):
        strange = next((i for i in given if i not in range(nodes)), None)
        if strange is not None:
            raise ValueError(f"y names node {strange!r}; there are nodes 0 to {nodes - 1}")
        given = [given.get(i) for i in range(nodes)]
    arrayed = hasattr(given, "__array__")
    if isinstance(given, str) or not (
        arrayed or (np.iterable(given) and hasattr(given, "__len__"))
    ):
        raise ValueError(
            f"y is {given!r}; expected a list of labels, one for each of {nodes} nodes"
        )
    plain = given.data if isinstance(given, np.ma.MaskedArray) else given
    array = np.asarray(plain) if arrayed else np.array(list(plain), dtype=object)
    known = ~missing(array)
    if plain is not given:
        known &= ~np.ma.getmaskarray(given)
    for code in void:
        known &= np.asarray(array != code, dtype=bool)
    among = {}
    if array.dtype.kind == "O":
        among = {i: sorted(v) for i, v in enumerate(array.ravel()) if isinstance(v, SETS)}
        known.ravel()[list(among)] = False
    labels = as_labels(array[known])
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        i = int((~np.isfinite(labels)).argmax())
        raise ValueError(f"label {i} is {labels[i]}")
    return Seen(labels, known, among)


def missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is no value at all: None, NaN, NaT, pandas' NA."""
    if array.dtype.kind in "fc":
        return np.isnan(array)
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind != "O" or set(map(type, array.ravel())) <= WHOLE:
        return np.zeros(array.shape, dtype=bool)
    return np.array([absent(v) for v in array.ravel()], dtype=bool).reshape(array.shape)


def void_among(seen: Sequence[Seen]) -> tuple[Any, ...]:
    """The label that means void if nobody says: −1 where others are two integers ≥ 0 or more.

    Whole numbers count as integers, as arrays that once held NaN are of floats. A warning says how
    −1 was taken beside 0 and 1 alone, and 255 beside 0, 1, …: both are often classes, often not.
    """
    values = [s.labels for s in seen if s.labels.size]
    if not values or not {v.dtype.kind for v in values} <= set("iuf"):
        return ()
    found = np.unique(np.concatenate(values))
    others, usual = found[found != -1], list(range(len(found) - 1))
    if (found != np.rint(found)).any() or len(others) < 2:
        return ()
    void, doubt = len(others) < len(found) and others[0] >= 0, ""
    if void and others.tolist() == [0, 1]:
        doubt = "labels −1, 0, 1: −1 is taken for 'no label'; say void=-1 if that is right, else"
    elif len(usual) > 1 and found.tolist() == [*usual, MARK]:
        doubt = f"labels 0 to {usual[-1]}, and {MARK}, taken for a class; say void={MARK}, else"
    if doubt:
        warnings.warn(f"{doubt} void=None", DataWarning, stacklevel=outside())
    return (-1,) if void else ()


def observed(classes: Labels, seen: Seen, m: int) -> Ints | Partial:
    """States of an example's labels; where some are void, what is known of them.

    Where a node is known to have one of several labels, that is a flag per node and label.
    """
    states = states_of(classes, seen.labels, m)
    if seen.known.all():
        return states
    found = np.full(seen.known.size, -1)
    found[seen.known.ravel()] = states
    if not seen.among:
        return Partial(found)
    flags = (found[:, None] < 0) | (found[:, None] == np.arange(len(classes)))
    for i, labels in seen.among.items():
        if len(labels) == 0:
            raise ValueError(f"example {m}: node {i} may have no label at all")
        flags[i] = np.isin(np.arange(len(classes)), states_of(classes, labels, m))
    return Partial(flags)


def numbered(count: int, what: str = "feature") -> list[str]:
    """Names for features that have none."""
    return [f"{what} {j}" for j in range(count)]


def table_spread(kind: Table, states: int) -> sp.csr_array:
    """(K² × weights): the weight of each entry of a full table.

    >>> table_spread("symmetric", 2).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    first, second = np.divmod(np.arange(states**2), states)
    if kind == "potts":
        return sp.csr_array((first == second).astype(float)[:, None])
    weight = rows = np.arange(states**2)
    if kind == "symmetric":
        pair = np.minimum(first, second) * states + np.maximum(first, second)
        weight = np.unique(pair, return_inverse=True)[1]
    return sp.csr_array((np.ones(states**2), (rows, weight)))


def tied_names(
    features: Sequence[str], classes: Labels, edges: Sequence[str], kind: Table
) -> list[str]:
    """Names of tied weights: ``feature: label``, then the table of every edge feature.

    >>> tied_names(["x"], np.array(["a", "b"]), [""], "symmetric")
    ['x: a', 'x: b', 'a – a', 'a – b', 'b – b']
    """
    labels = [str(label) for label in classes.tolist()]
    table = {
        "potts": ["same label"],
        "full": [f"{a} → {b}" for a in labels for b in labels],
        "symmetric": [f"{a} – {b}" for i, a in enumerate(labels) for b in labels[i:]],
    }[kind]
    found = [f"{feature}: {label}" for feature in features for label in labels]
    return found + [edge + entry for edge in edges for entry in table]


def tied_contrasts(
    features: Sequence[str],
    classes: Labels,
    edges: Sequence[str],
    kind: Table = "full",
    ref: int = 0,
    rim: str = "ends",
    inside: tuple[int, int] | None = None,
) -> list[Named]:
    """What a person asks of tied weights: labels against that of place ``ref``, equal neighbours.

    A weight for every label is always redundant, so none is identified alone. Transitions come as
    interactions: equal against unequal neighbours, by two labels; and with three labels or more,
    one way round against the other. What a label is worth as the first or the second of two
    neighbours is told apart from the rest only by the ``rim``: a chain's ends, a grid's borders.
    ``inside`` names the constant feature and how often a node away from the rim is the first of
    two neighbours: the sum of both is what data tell well.
    """
    labels, K, p = [str(label) for label in classes.tolist()], len(classes), len(features)
    unit, found = np.eye(K), list[Named]()
    shared: Any = np.zeros((0, 0))
    if edges:
        shared = sp.block_diag([table_spread(kind, K)] * len(edges), format="csr")

    def add(name: str, *placed: tuple[int, Array]) -> None:
        """Keep tables at these rows, in the weights; not of nothing, nor a multiple of another."""
        out = np.zeros((p + len(edges) * K, K))
        for row, table in placed:
            out[row : row + len(table)] += table
        whole = np.concatenate([out[:p].ravel(), shared.T @ out[p:].ravel()])
        size = np.linalg.norm(whole)
        others = (abs(whole @ one) / np.linalg.norm(one) for _, one in found)
        if size > 0 and all(other <= 0.999999 * size for other in others):
            found.append(Named(name, whole))

    against = {k: f"{labels[k]} against {labels[ref]}" for k in range(K) if k != ref}
    for j, name in enumerate(features):
        for k, pair in against.items():
            add(f"{name}: {pair}", (j, unit[[k]] - unit[[ref]]))
    tables = _transitions(labels, ref, rim)
    for e, edge in enumerate(edges):
        for name, table in tables.items():
            add(edge + name, (p + e * K, table))
    if inside is not None and edges:
        for k, pair in against.items():
            near = p, inside[1] * tables[f"{pair}, among neighbours"]
            own = inside[0], unit[[k]] - unit[[ref]]
            add(f"{pair}, inside: constant and neighbours", own, near)
    return found


def _transitions(labels: Sequence[str], ref: int, rim: str) -> dict[str, Array]:
    """Combinations of a table of transitions, by name."""
    K = len(labels)
    unit, others = np.eye(K), [k for k in range(K) if k != ref]
    found = {}
    if K > 1:
        found["equal against unequal neighbours"] = unit / K - (1.0 - unit) / (K * (K - 1))
    for a, b in combinations(range(K), 2) if K > 2 else ():
        difference = unit[a] - unit[b]
        name = f"{labels[a]}, {labels[b]}: equal against unequal neighbours"
        found[name] = np.outer(difference, difference)
    for a, b in combinations(others, 2):
        way = np.zeros((K, K))
        way[[a, b, ref], [b, ref, a]] = 1.0
        name = f"{labels[a]} → {labels[b]} → {labels[ref]} → {labels[a]} against the way back"
        found[name] = way - way.T
    for k in others:
        row = np.tile(unit[k] - unit[ref], (K, 1)).T / K
        pair = f"{labels[k]} against {labels[ref]}"
        found[f"{pair}, among neighbours"] = row + row.T
        found[f"{pair}, first of two neighbours less second (from the {rim} only)"] = row - row.T
    return found
