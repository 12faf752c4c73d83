"""MultiLabelModel: several yes-or-no labels at once, and which of them go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.estimators.base import Estimator
from mlestruct.estimators.examples import Given
from mlestruct.estimators.labels import missing, numbered
from mlestruct.features import Shared, Tied
from mlestruct.structures.base import Array, Ints, as_numbers, small
from mlestruct.structures.batch import Batch, Partial
from mlestruct.structures.graph import FactorGraph


@dataclass(kw_only=True, eq=False, repr=False)
class MultiLabelModel(Estimator):
    """Several labels at once: X is (examples, p), y (examples, labels) of 0 and 1.

    Of sets of labels ``MultiLabelBinarizer`` of scikit-learn makes such a table. Both may be
    frames, whose columns then name features and labels. Entries of y that are None, NaN or masked
    are not known: learning sums over them, and scores leave them out.

    A complete graph of labels: θ holds a weight per (label, feature), then one per pair of labels
    that both apply; with ``pairs=False`` every label is by itself. ``intercept`` adds a constant
    feature. ``predict`` gives rows of 0 and 1, ``predict_marginals`` a probability per label.
    ``node_weight`` of ``fit`` (examples × labels) is a weight for each in learning;
    :class:`Labelled` says what weights mean. Other settings and fitted attributes are those of
    :class:`Estimator`.

    >>> X = [[0.0], [1.0], [2.0], [3.0]] * 5
    >>> y = [[0, 0], [0, 1], [1, 1], [1, 1]] * 5  # dry, warm
    >>> model = MultiLabelModel(alpha=0.1).fit(X, y)
    >>> [labels.tolist() for labels in model.predict([[0.0], [3.0]])]
    [[0, 0], [1, 1]]
    """

    pairs: bool = True
    intercept: bool = True
    learns = ("classes_", "n_features_in_", "_label_columns")

    def taken(self, X: Any, y: Any) -> Given:
        tables, names = [X, y], list[Any]()
        for k, table in enumerate(tables):
            frame = hasattr(table, "to_numpy") and hasattr(table, "columns")
            names.append([str(name) for name in table.columns] if frame else None)
            if frame or getattr(table, "dtype", 0) == np.dtype(object):
                tables[k] = list(table.to_numpy() if frame else table)
        return replace(super().taken(*tables), columns=names[0], labels=names[1])

    def prepare(self, given: Given) -> Given:
        """The labels: names of columns, or numbers."""
        self.n_features_in_ = _table(given.X).shape[1]
        table = _zeros_and_ones(given.outcomes, None)
        if np.isnan(table).all():
            raise ValueError("no label in y is known: there is nothing to learn")
        names = self._label_columns
        self.classes_ = np.array(range(table.shape[1]) if names is None else names)
        return given

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        states = np.nan_to_num(_zeros_and_ones(y, len(self.classes_)), nan=-1).astype(int)
        return [Partial(row) if (row < 0).any() else row for row in states]

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        return [small(FactorGraph, (2,) * len(self.classes_), tuple(self._couples()))] * len(X)

    def _couples(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.classes_)), 2)) if self.pairs else []

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Shared:
        """Only the states 'applies' have weights; those of 'does not' would be redundant."""
        rows, labels, couples = _table(X), len(self.classes_), len(self._couples())
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features; expected {self.n_features_in_}")
        if self.intercept:
            rows = np.hstack([rows, np.ones((len(rows), 1))])
        alike: Any = np.ones((0, 1))
        if couples:
            alike = sp.csr_array(sp.vstack([sp.eye_array(couples)] * len(rows)))
        own, both = (
            sp.kron(sp.eye_array(count), np.eye(states)[:, -1:], format="csr")
            for count, states in ((labels * rows.shape[1], 2), (couples, 4))
        )
        spread = sp.block_diag([own, both]) if couples else own
        return Shared.of(Tied.of(batch, _by_label(rows, labels), alike), spread)

    def present(self, x: Any, outcome: Ints) -> Ints:
        return np.asarray(outcome)

    def shape(self, x: Any, structure: FactorGraph, flat: Array) -> Array:
        """The probability of every label."""
        return flat[1 : structure.node_start[-1] : 2]

    def names(self) -> list[str]:
        """``label: feature``, then ``label with label``."""
        self._check_fitted()
        labels = [str(label) for label in self.classes_.tolist()]
        features = self._columns or numbered(self.n_features_in_)
        features = features + ["constant"] * self.intercept
        own = [f"{label}: {feature}" for label in labels for feature in features]
        return own + [f"{labels[a]} with {labels[b]}" for a, b in self._couples()]


def _table(X: Sequence[Any]) -> Array:
    """(examples, features) of finite numbers."""
    rows = as_numbers(X, "X")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X has shape {rows.shape}; expected (examples, features), none empty")
    return rows


def _by_label(rows: Array, labels: int) -> sp.csr_array:
    """(examples · labels × labels · features): every label sees the row at its own place."""
    count, width = rows.shape
    places = width * np.arange(labels)[:, None] + np.arange(width)
    indices = np.tile(places.ravel(), count)
    data = np.repeat(rows, labels, axis=0).ravel()
    return sp.csr_array((data, indices, width * np.arange(count * labels + 1)))


def _zeros_and_ones(y: Sequence[Any], labels: int | None) -> Array:
    """(examples, labels) of 0 and 1, and NaN where nothing is known."""
    try:
        table = as_numbers(_filled(list(y)), "y")
    except ValueError as error:
        why = "rows have different lengths" if "inhomogeneous" in str(error) else str(error)
        sets = "of sets MultiLabelBinarizer of scikit-learn makes such a table"
        raise ValueError(f"y holds rows of 0 and 1 per label: {why}; {sets}") from error
    if table.ndim != 2 or table.shape[1] == 0 or labels not in (None, table.shape[1]):
        raise ValueError(f"y has shape {table.shape}; expected (examples, {labels or 'labels'})")
    wrong = np.argwhere(~np.isin(table, (0, 1)) & ~np.isnan(table))
    if len(wrong):
        m, k = wrong[0].tolist()
        raise ValueError(f"example {m}: label {k} is {table[m, k]:g}; it is 0 or 1")
    return table


def _filled(rows: list[Any]) -> NDArray[Any]:
    """A row per example, with NaN for what is None, missing or masked."""
    table = np.array([np.ma.getdata(row) for row in rows])
    gone = missing(table)
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        gone = gone | [np.ma.getmaskarray(row) for row in rows]
    return np.where(gone, np.nan, table) if gone.any() else table
