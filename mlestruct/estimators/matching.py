"""MatchingModel: rows matched to columns, from a feature vector per pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from mlestruct.estimators.structured import Estimator, Settings
from mlestruct.structures.matching import BipartiteMatching, Kind


class MatchingModel(Estimator):
    """Bipartite matchings: X holds (rows, columns, d) arrays, y each row's column (−1: none).

    ``kind``: ``perfect``, ``one_sided`` (every row one column) or ``partial``. Other settings and
    fitted attributes as :class:`Estimator`; the default entropy (ρ = ½) bounds log Z above.

    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((4, 4, 2)) for _ in range(10)]
    >>> y = [x[:, :, 0].argmax(axis=1).argsort() for x in X]
    >>> MatchingModel(tol=0.01).fit(X, y).predict_marginals(X)[0].shape
    (4, 4)
    """

    def __init__(self, kind: Kind = "perfect", **settings: Unpack[Settings]) -> None:
        super().__init__(**settings)
        self.kind = kind

    def structures(self, X: Sequence[Any]) -> list[BipartiteMatching]:
        shapes = [np.shape(x) for x in X]
        for m, shape in enumerate(shapes):
            if len(shape) != 3:
                raise ValueError(f"example {m}: X has shape {shape}; expected (rows, columns, d)")
        made = {s[:2]: BipartiteMatching(s[0], s[1], self.kind) for s in shapes}
        return [made[shape[:2]] for shape in shapes]
