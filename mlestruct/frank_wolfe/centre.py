"""A moving proximal centre for θ: learning then costs the calls that inference costs.

Where R is weak beside the data (λ small against thousands of parts), θ = ∇R*(r) leaps whenever a
block moves, and the oracle is asked far from any θ that matters. So every round is made with

    R_t(θ) = R(θ) + ½ Σ_j κ_j (θ_j − c_j)²,    c = θ after every round,
    κ = s · diag(Σ_m w_m Φ_mᵀ diag(τ_m (1 − τ_m)) Φ_m),

the curvature that the log-likelihood would have at τ if all parts were independent. R_t is a
:class:`Regulariser` again: λ + κ per weight, and (λ · prior + κ c) / (λ + κ) for its prior mean,
within the same bounds, with the same l1. Every certificate is of R, not of R_t.

Max-margin has no entropy: its log-likelihood is a maximum of planes, without curvature, and τ lies
at vertices, where τ (1 − τ) vanishes. There κ is a multiple of λ, and c the θ of the best bound so
far, which changes only where a round proves more: the proximal bundle method of Lemaréchal and
Kiwiel, with each example's known vertices for its bundle. Of a column far larger than the others
(a Unix time) κ is larger by its square, or steps would end before any other weight has moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlestruct.dual import Dual
from mlestruct.features.base import squares
from mlestruct.regulariser import Regulariser
from mlestruct.structures.base import Array
from mlestruct.trees import Tree, like

EARLY, OFTEN, SELDOM = 50, 10, 50  # κ is renewed every 10 rounds up to the 50th, then every 50
HELD = 3  # rounds in which c stays: τ has not yet learned to follow θ
# s = .3 was within a tenth of the best s on grids, chains, matchings, knapsacks, tours, alignments.
# It falls where θ ≠ ∇R*(r) is more of the certificate than MOST of the rest, and rises again.
STIFF, LOOSE, MOST, LEAST, FASTER, SLOWER = 0.3, 0.2, 0.5, 0.1, 0.9, 1.1
LARGER = 100.0  # times the median of ΣΦ²/λ: beyond it κ grows (of 1 to 1,000; words want 100)
MARGIN = 3.0  # κ / λ without entropy: of .3 to 10 the best on grids, matchings, chains, own solvers


@dataclass
class Centre:
    """Where θ is held, and how stiffly: κ = scale · curvature."""

    at: Array
    curvature: Array
    scale: float = STIFF

    @classmethod
    def of(cls, dual: Dual, at: Array, tau: Array) -> Centre:
        return cls(at, _curvature(dual, tau))

    @classmethod
    def of_margin(cls, dual: Dual, at: Array) -> Centre:
        lam = dual.regulariser.lam
        size = squares(dual.features, dual.weigh(np.ones(dual.batch.size))) / lam
        typical = float(np.median(size[size > 0])) if size.any() else 1.0
        return cls(at, lam * np.maximum(size / (LARGER * typical), 1.0), MARGIN)

    def moved(self, own: Regulariser) -> Regulariser:
        """R_t without its constant."""
        kappa = self.scale * self.curvature
        lam = own.lam + kappa
        return replace(own, lam=lam, prior=(own.lam * own.prior + kappa * self.at) / lam)

    def follow(
        self, dual: Dual, theta: Array, tau: Array, lag: float, gap: float, number: int
    ) -> None:
        """After a round c is θ. ``lag``: what θ ≠ ∇R*(r) added to its certificate's ``gap``."""
        if number >= HELD:
            self.at = theta
            if lag > MOST * gap:
                self.scale = max(FASTER * self.scale, LOOSE)
            elif lag < LEAST * gap:
                self.scale = min(SLOWER * self.scale, STIFF)
        if number and number % (OFTEN if number < EARLY else SELDOM) == 0:
            self.curvature = _curvature(dual, tau)

    def tree(self) -> Tree:
        return self.at, self.curvature, self.scale

    def recall(self, tree: Tree) -> None:
        at, curvature, self.scale = tree
        self.at, self.curvature = like((at, curvature), (self.at, self.curvature))


def _curvature(dual: Dual, tau: Array) -> Array:
    return squares(dual.features, dual.weigh(np.maximum(tau * (1.0 - tau), 0.0)))
