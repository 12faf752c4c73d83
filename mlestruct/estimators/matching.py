"""MatchingModel: rows matched to columns, from a feature vector per pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import call
from typing import TYPE_CHECKING, Any

from mlestruct.estimators.base import Estimator
from mlestruct.structures.base import SHORT, Array, shape_of, small
from mlestruct.structures.batch import Batch
from mlestruct.structures.matching import BipartiteMatching, Kind

if TYPE_CHECKING:
    from mlestruct.inference.bounds import ProvenInterval


@dataclass(eq=False, repr=False)
class MatchingModel(Estimator):
    """Bipartite matchings: X holds (rows, columns, d) arrays, y each row's column (−1: none).

    An outcome may also be a (rows, columns) table of 0 and 1.
    ``kind``: ``perfect``, ``one_sided`` (every row one column) or ``partial``. ``feature_names``
    name the weights. Other settings and fitted attributes as :class:`Estimator`; the default
    entropy (ρ = ½) bounds log Z above.

    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((4, 4, 2)) for _ in range(10)]
    >>> y = [x[:, :, 0].argmax(axis=1).argsort() for x in X]
    >>> MatchingModel(tol=0.01).fit(X, y).predict_marginals(X)[0].shape
    (4, 4)
    """

    kind: Kind = "perfect"
    feature_names: Sequence[str] | None = None
    axes = 3

    def structures(self, X: Sequence[Any]) -> list[BipartiteMatching]:
        made: dict[Any, BipartiteMatching] = {}
        found = []
        for m, x in enumerate(X):
            try:
                shape = shape_of(x)
                if len(shape) != 3:
                    raise ValueError(f"X has shape {shape}; expected (rows, columns, d)")
                sides, make = shape[:2], small if math.prod(shape[:2]) <= SHORT else call
                if sides not in made:
                    made[sides] = make(BipartiteMatching, *sides, self.kind)
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
            found.append(made[sides])
        return found

    def log_z(self, batch: Batch[Any], scores: Array) -> ProvenInterval:
        """ρ = ½ bounds log Z above, and Bethe on both sides where theorems say so.

        The best matching's score is below, too. A model that sums every matching needs none.
        """
        from mlestruct.inference import bounds, marginals

        if self.oracle is not None or self._inference().sums(batch):
            return super().log_z(batch, scores)
        half, bethe = (marginals(batch, scores, rho=rho) for rho in (0.5, 1.0))
        inside = bounds.outcome_interval(batch, scores) & bounds.permanent_interval(batch, bethe)
        return inside & bounds.log_z_interval(half) & bounds.log_z_interval(bethe)
