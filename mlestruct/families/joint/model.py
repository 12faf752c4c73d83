"""JointModel: values at the sites of a labelled graph, from noisy observations of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

from numpy.typing import ArrayLike

from mlestruct import Batch, FactorGraph
from mlestruct.errors import not_fitted, refuse_removed
from mlestruct.estimators.examples import given_of
from mlestruct.estimators.trainable import Parameters
from mlestruct.families.joint.prediction import (
    Mixture,
    Prediction,
    check_mixture,
    predict,
    strays,
)
from mlestruct.learners import match_moments
from mlestruct.structures.base import Array
from mlestruct.structures.entropy import Rho


@dataclass(eq=False, repr=False)
class JointModel(Parameters):
    """Learns couplings of labels by matching moments, and predicts with the same surrogate.

    ``mixture`` says how a site's label makes its value and how the value is seen. ``rho`` is the
    surrogate of both steps; ``smoothing`` ε mixes the moments with uniform tables.

    After ``fit``: ``coef_``, ``log_likelihood_`` (the surrogate's, per sample),
    and ``converged_``: the weights have a closed form, and predict its moments where nothing
    is seen unless messages leave them, as they may where the entropy is not concave.

    >>> from mlestruct.structures import grid
    >>> model = JointModel(grid(1, 2), Mixture(0.6, [-1.0, 1.0], [0.5, 0.5]), smoothing=0.1)
    >>> model.fit([[0, 0], [1, 1]]).predict([[1.0, float("nan")]])[0].round(2).tolist()
    [0.85, 0.56]
    """

    graph: FactorGraph
    mixture: Mixture
    _: KW_ONLY
    rho: Rho = "trees"
    smoothing: float = 0.0

    def fit(self, labels: Sequence[ArrayLike]) -> Self:
        """Learn from complete labellings of the graph."""
        if not isinstance(self.graph, FactorGraph):
            raise ValueError(f"graph is a labelled graph, not a {type(self.graph).__name__}")
        if not isinstance(self.mixture, Mixture):
            raise ValueError(f"mixture is a Mixture, not {self.mixture!r}")
        check_mixture(self.graph, self.mixture)
        given_of(self, labels, labels)
        target = Batch.of(self.graph, labels).target
        assert target is not None
        mean = target.reshape(len(labels), -1).mean(axis=0)
        found = match_moments(self.graph, mean, self.rho, self.smoothing)
        self.coef_, self.log_likelihood_ = found.theta, found.log_likelihood
        self.converged_ = not strays(self.graph, found, self._rho)
        return self

    @property
    def _rho(self) -> Rho:
        """What None stands for in learning: exact inference, to predict with, is another one."""
        return self.rho if self.rho is not None else (lambda graph: None)

    @property
    def stability_(self) -> None:
        refuse_removed("JointModel.stability_", AttributeError)

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise not_fitted(self)

    def predict(self, observed: Sequence[ArrayLike]) -> list[Array]:
        """The estimate of every site's value, for each array of observations (NaN: unseen)."""
        return [found.z for found in self._predicted(observed)]

    def predict_marginals(self, observed: Sequence[ArrayLike]) -> list[Array]:
        """Labels' pseudo-probabilities (sites × labels), for each array of observations."""
        return [found.labels for found in self._predicted(observed)]

    def _predicted(self, observed: Sequence[ArrayLike]) -> Iterator[Prediction]:
        self._check_fitted()
        given_of(self, observed, observed)
        for m, y in enumerate(observed):
            try:
                yield predict(self.graph, self.coef_, self.mixture, y, self._rho)
            except ValueError as error:
                raise ValueError(f"example {m}: {error}") from error
