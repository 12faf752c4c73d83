"""Rules that save calls: where to ask, where to hold θ, and which answers examples share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlestruct.features.base import squares
from mlestruct.learning.dual import Dual
from mlestruct.learning.iterate import Iterate
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch

SHARE, MOST = 0.5, 0.3  # of the gap that is allowed for δ; δ itself at most
# A round without progress shrinks δ, unless that only raised the gap.
PROGRESS, SHRINK, GROWTH = 1e-5, 0.5, 1.5
TRIED, FINER, BACK = 3, 0.3, 1.4  # questions of either kind that are compared


@dataclass
class Smoothing:
    """The share δ of the interior point u, where the oracle is asked at (1−δ)τ + δu.

    Slopes there look past coordinates that no vertex has reached yet but that matter little. At an
    optimum δ alone opens a gap of up to δ · Σ|a|·view (a ≥ 0): half of the gap is allowed for it,
    so that δ at least halves where nothing else is left.

    Where some a < 0 the parts of rare views are shares of one another, and u hides them until δ is
    below the view itself. So there (``tried``) every other question is asked with a finer δ, and
    where their bounds are better on average δ falls for good, else it returns towards the rule.

    ``share`` is the δ to ask with. ``gap`` and ``objective`` are the last round's; ``lead`` sums
    how much better the bounds of finer questions were.
    """

    tried: bool
    share: float = 0.0
    rule: float = 0.0
    factor: float = 1.0
    objective: float = float("inf")
    gap: float = float("inf")
    lead: float = 0.0
    asked: int = 0

    def follow(self, gap: float, mass: float, objective: float) -> None:
        """After a round of this gap; ``mass`` is its vertices' Σ|a|·view."""
        stalled = self.objective - objective < PROGRESS * gap and gap <= 1.01 * self.gap
        change = SHRINK if stalled else GROWTH
        most = min(change * self.rule, MOST) if self.rule > 0.0 else MOST
        self.rule = min(SHARE * max(gap, 0.0) / max(mass, 1e-300), most)
        self.objective, self.gap = objective, gap
        if self.tried:
            self.lead += (objective - gap) * (1.0 if self.asked % 2 else -1.0)
            self.asked += 1
            if self.asked == 2 * TRIED:
                better = self.lead > 0.0
                self.factor = FINER * self.factor if better else min(BACK * self.factor, 1.0)
                self.lead, self.asked = 0.0, 0
        self.share = self.rule * self.factor * (FINER if self.asked % 2 else 1.0)


EARLY, OFTEN, SELDOM = 50, 10, 50  # κ is renewed every 10 rounds up to the 50th, then every 50
HELD = 3  # rounds in which c stays: τ has not yet learned to follow θ
# s = .3 was within a tenth of the best s on grids, chains, matchings, knapsacks, tours, alignments.
# It falls where θ ≠ ∇R*(r) is more of the certificate than MUCH of the rest, and rises again.
STIFF, LOOSE, MUCH, LITTLE, FASTER, SLOWER = 0.3, 0.2, 0.5, 0.1, 0.9, 1.1
LARGER = 100.0  # times the median of ΣΦ²/λ: beyond it κ grows (of 1 to 1,000; words want 100)
MARGIN = 3.0  # κ / λ without entropy: of .3 to 10 the best on grids, matchings, chains, own solvers


@dataclass
class Centre:
    """A moving proximal centre c for θ: learning then costs the calls that inference costs.

    Where R is weak beside the data (λ small against thousands of parts), θ = ∇R*(r) leaps whenever
    a block moves, and the oracle is asked far from any θ that matters. So every round is made with

        R_t(θ) = R(θ) + ½ Σ_j κ_j (θ_j − c_j)²,    c = θ after every round,
        κ = s · diag(Σ_m w_m Φ_mᵀ diag(τ_m (1 − τ_m)) Φ_m),

    the curvature that the log-likelihood would have at τ if all parts were independent. R_t is a
    :class:`Regulariser` again: λ + κ per weight, and (λ · prior + κ c) / (λ + κ) for its prior
    mean, within the same bounds, with the same l1. Every certificate is of R, not of R_t.

    Max-margin has no entropy: its log-likelihood is a maximum of planes, without curvature, and τ
    lies at vertices, where τ (1 − τ) vanishes. There κ is a multiple of λ, and c the θ of the best
    bound so far, which changes only where a round proves more: the proximal bundle method of
    Lemaréchal and Kiwiel, with each example's known vertices for its bundle. Of a column far larger
    than the others (a Unix time) κ is larger by its square, or steps would end before any other
    weight has moved.
    """

    at: Array
    curvature: Array
    scale: float = STIFF

    @classmethod
    def of(cls, dual: Dual, at: Array, tau: Array | None) -> Centre:
        """A centre ``at`` some weights; of max-margin without a τ."""
        if tau is not None:
            return cls(at, _curvature(dual, tau))
        lam = dual.regulariser.lam
        size = squares(dual.features, dual.weigh(np.ones(dual.batch.size))) / lam
        typical = float(np.median(size[size > 0])) if size.any() else 1.0
        return cls(at, lam * np.maximum(size / (LARGER * typical), 1.0), MARGIN)

    def hold(self, iterate: Iterate) -> None:
        """Have an iterate step by R_t, without its constant."""
        own, kappa = iterate.dual.regulariser, self.scale * self.curvature
        lam = own.lam + kappa
        prior = (own.lam * own.prior + kappa * self.at) / lam
        iterate.regularise(replace(own, lam=lam, prior=prior))

    def follow(self, iterate: Iterate, lag: float, rest: float, number: int) -> None:
        """After a round c is θ. ``lag``: what θ ≠ ∇R*(r) adds to the ``rest`` of its gap."""
        if number >= HELD:
            self.at = iterate.x.theta.copy()
            if lag > MUCH * rest:
                self.scale = max(FASTER * self.scale, LOOSE)
            elif lag < LITTLE * rest:
                self.scale = min(SLOWER * self.scale, STIFF)
        if number and number % (OFTEN if number < EARLY else SELDOM) == 0:
            self.curvature = _curvature(iterate.dual, iterate.x.tau)

    def tree(self) -> Tree:
        return self.at, self.curvature, self.scale

    def recall(self, tree: Tree) -> None:
        self.at, self.curvature, self.scale = like(tree, self.tree())


def _curvature(dual: Dual, tau: Array) -> Array:
    return squares(dual.features, dual.weigh(np.maximum(tau * (1.0 - tau), 0.0)))


LAST = 10  # rounds whose answers are remembered: 160 bytes a coordinate at the peak
NEAR = 64  # examples of one structure that share their answers, at most
PASSES, WORTH = 10, 0.15  # passes a round at most; what the last gains of a round's own steps
RICH = 4  # passes for as many answers at hand as an example has parts, and at least one
# Vertices per part, above which an example takes no more of others: a mean needs one more vertex
# than it has dimensions, and the weight of those that are not needed is slow to go.
FULL = 2
MORE = 4  # pairs of steps per scoring, for a vertex per part: so the weight goes sooner


@dataclass
class Sharing:
    """Answers shared: what is best for one example is an outcome of all others of its structure.

    After a round's own steps every example takes, from the last answers for its kin and itself, the
    vertex that its slopes now ask for, and steps towards it; again while that gains. It costs no
    call. Structures whose data forbid different outcomes differ by their tags, so kin have one
    polytope.
    """

    kin: list[Ints]
    answers: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, batch: Batch[Any]) -> Sharing | None:
        """None where nothing is to be gained: no kin, or solvers of the library's own.

        They answer so quickly that to look at others' answers takes longer than to ask.
        """
        groups = [members for one, members in batch.groups() if one.default_oracle is None]
        kin = [part for own in groups for part in np.array_split(own, -(-len(own) // NEAR))]
        return cls(kin) if any(len(members) > 1 for members in kin) else None

    def take(self, iterate: Iterate, vertices: Array, gained: float, number: int) -> None:
        """Step towards others' answers, after steps towards ``vertices`` have ``gained``."""
        self.answers = [*self.answers, vertices][-LAST:]
        dual, x = iterate.dual, iterate.x
        most = FULL * np.diff(dual.batch.offsets)
        at_hand = LAST * sum(len(members) ** 2 for members in self.kin) / dual.batch.size
        for _ in range(int(np.clip(RICH * at_hand, 1, PASSES))):
            score = dual.features.potentials(x.theta) + x.smooth + x.rough
            found, gain = self.best(dual.batch, score, x.tau)
            order = np.flatnonzero((gain > 0.0) & (x.known < most))
            if iterate.towards(order, found, number) < WORTH * gained:
                return

    def best(self, batch: Batch[Any], score: Array, tau: Array) -> tuple[Array, Array]:
        """Return the known answer that is best for each example, and by how much beyond τ."""
        found, gain = np.zeros(len(score)), np.zeros(len(batch.which))
        for members in self.kin:
            place, count = batch.index(members), len(members)
            own = score[place].reshape(count, -1)
            rows = np.concatenate([one[place] for one in self.answers]).reshape(-1, own.shape[1])
            worth = own @ rows.T
            best = worth.argmax(axis=1)
            here = (own * tau[place].reshape(count, -1)).sum(axis=1)
            gain[members] = np.take_along_axis(worth, best[:, None], axis=1)[:, 0] - here
            found[place] = rows[best].ravel()
        return found, gain
