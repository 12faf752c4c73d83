"""StructuredModel: any structure, any oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlestruct.estimators.base import Estimator
from mlestruct.structures.base import Structure


@dataclass(eq=False, repr=False)
class StructuredModel(Estimator):
    """Any structure: X is a list of (coordinates, d) feature arrays, y of outcomes.

    ``structure`` is one :class:`Structure` for all examples, or a function of an example's
    features. Other settings and fitted attributes as :class:`Estimator`.

    >>> import mlestruct as ms
    >>> model = ms.StructuredModel(ms.Custom(2, exactly_one=[[0, 1]]), oracle="simplices")
    >>> model.fit([[[1.0], [0.0]], [[0.0], [2.0]]], [[1, 0], [0, 1]]).predict([[[0.0], [3.0]]])
    [array([0., 1.])]
    """

    structure: Structure | Callable[[Any], Structure] | None = None

    @property
    def n_features_in_(self) -> int:
        """The number of features, which is that of the weights."""
        self._check_fitted()
        return len(self.coef_)

    def structures(self, X: Sequence[Any]) -> list[Any]:
        given = self.structure
        if given is None:
            raise ValueError("StructuredModel needs structure=")
        if not isinstance(given, Structure) and not callable(given):
            raise ValueError(f"structure is a Structure or a function of an example, not {given!r}")
        return [given if isinstance(given, Structure) else given(x) for x in X]
