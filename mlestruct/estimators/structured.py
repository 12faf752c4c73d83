"""StructuredModel: any structure, any oracle, any data that a solver needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlestruct.estimators.base import Estimator
from mlestruct.estimators.examples import Given, columns_of, given_of, shape_at
from mlestruct.features import Features, as_features
from mlestruct.oracle import takes_instance
from mlestruct.storage.digest import digest
from mlestruct.structures.base import Array, Structure, as_numbers, lasting
from mlestruct.structures.batch import Batch
from mlestruct.structures.custom import Custom


@dataclass(eq=False, repr=False)
class StructuredModel(Estimator):
    """Any structure: X is a list of examples, y of outcomes, each a structure's or 0/1 per part.

    An example is its (parts, d) features, or a mapping with these under ``features`` and whatever
    else its solver needs. A solver is a function of the scores or of (scores, instance), where
    instance is the example as it is in X.
    ``structure`` is one :class:`Structure` for all examples, or a function of an example. By
    default an outcome is any 0/1 vector with an entry per part, or the set of the numbers of the
    parts that are used; examples may differ in how many parts they have. Where features are
    (rows, columns, d), parts form a table, and scores and outcomes are (rows, columns).

    ``bias`` names an entry of every example with scores known beforehand, as minus known costs: a
    number per part. They count with weight 1 and are not learned. Of a solver that minimises costs
    ``oracle`` is ``Solver(solve, sense="min")``, from ``mlestruct.oracle``. ``feature_names`` name
    the weights. Other settings and fitted attributes as :class:`Estimator`.

    >>> def cheapest(scores, instance):  # the best part, among those that are open
    ...     best = max(instance["open"], key=lambda k: scores[k])
    ...     return np.arange(len(scores)) == best
    >>> X = [{"features": [[1.0], [2.0], [5.0]], "open": [0, 1]},
    ...      {"features": [[3.0], [4.0]], "open": [0, 1]}]
    >>> model = StructuredModel(oracle=cheapest).fit(X, [[0, 1, 0], [0, 1]])
    >>> model.predict([{"features": [[2.0], [9.0], [4.0], [8.0]], "open": [0, 2, 3]}])
    [array([0., 0., 0., 1.])]
    """

    axes = 2
    structure: Structure | Callable[[Any], Structure] | None = None
    bias: str | None = None
    feature_names: Sequence[str] | None = None

    def _doubt(self) -> str:
        if self.structure is None and self.learner == "mle_struct":
            return "too timid, as it leaves out how parts depend on each other"
        return super()._doubt()

    def taken(self, X: Any, y: Any) -> Given:
        """As of any estimator; the features of every example may be a frame."""
        given = given_of(self, X, y)
        return replace(given, columns=columns_of([self.rows(x) for x in given.X]))

    def rows(self, x: Any) -> Any:
        """The (parts, d) features of one example."""
        if isinstance(x, Mapping) and "features" not in x:
            raise ValueError(f"an example has {sorted(map(str, x))}, no 'features'")
        return x["features"] if isinstance(x, Mapping) else x

    def structures(self, X: Sequence[Any]) -> list[Any]:
        given = self.structure
        if given is not None and not isinstance(given, Structure) and not callable(given):
            raise ValueError(f"structure is a Structure or a function of an example, not {given!r}")
        carried = takes_instance(self.oracle)
        found = []
        for m, x in enumerate(X):
            structure = lasting(given(x)) if callable(given) else given
            if structure is None:
                if self.oracle is None:
                    raise ValueError(
                        "StructuredModel needs structure=, or oracle= to solve without"
                    )
                shape = shape_at(self.rows(x), m)
                if len(shape) < 2:
                    raise ValueError(
                        f"example {m}: features have shape {shape}; expected (parts, d)"
                    )
                structure = Custom(math.prod(shape[:-1]), shape=shape[:-1])
            if not isinstance(structure, Structure):
                raise ValueError(f"example {m}: structure= made {structure!r}, no Structure")
            if carried or isinstance(x, Mapping):
                structure = structure.carrying(x, (m, digest(x)))
            found.append(structure)
        return found

    def features(self, batch: Batch[Any], X: Sequence[Any]) -> Features:
        rows: list[Any] = [self.rows(x) for x in X]
        if not all(sp.issparse(one) for one in rows):  # of a mixture all become dense
            rows = [one.todense() if hasattr(one, "todense") else one for one in rows]
        return as_features(batch, rows)

    def _problem(
        self, X: Sequence[Any], outcomes: Sequence[Any] | None, weight: Array | None
    ) -> tuple[Batch[Any], Features]:
        """As of any estimator; scores known beforehand are the batch's bias."""
        batch, features = super()._problem(X, outcomes, weight)
        if self.bias is None:
            return batch, features
        known = []
        for m, x in enumerate(X):
            if not isinstance(x, Mapping) or self.bias not in x:
                raise ValueError(f"example {m} has no {self.bias!r}, which bias= names")
            name, size = f"example {m}: bias", batch.structure(m).size
            known.append(as_numbers(x[self.bias], name).reshape(-1))
            if len(known[m]) != size:
                raise ValueError(f"{name} has {len(known[m])} entries for {size} parts")
            wrong = np.flatnonzero(~np.isfinite(known[m]))
            if len(wrong):
                raise ValueError(f"{name} of part {wrong[0]} is {known[m][wrong[0]]}")
        return replace(batch, bias=np.concatenate(known)), features

    def encode(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """Outcomes of the structures; those given as 0/1 per part are looked up.

        Of what is neither, the batch's own error names the example.
        """
        found = list(y)
        for m, structure in enumerate(self.structures(X)):
            with suppress(ValueError, TypeError, IndexError):
                structure.encode(found[m])
                continue
            with suppress(ValueError):
                vector = as_numbers(found[m], "an outcome").reshape(-1)
                whole = vector.shape == (structure.size,) and np.isin(vector, (0, 1)).all()
                if whole and structure.contains(vector):
                    found[m] = structure.decode(vector)
        return found
