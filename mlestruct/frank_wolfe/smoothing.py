"""Where the oracle is asked: at (1−δ)τ + δu, and the rule for δ.

Slopes there look past coordinates that no vertex has reached yet but that matter little. At an
optimum δ alone opens a gap of up to δ · Σ|a|·view (a ≥ 0): half of the gap is allowed for it, so
that δ at least halves where nothing else is left.

Where some a < 0 the parts of rare views are shares of one another, and u hides them until δ is
below the view itself. So there every other question is asked with a finer δ, and where their bounds
are better on average δ falls for good, else it returns towards the rule: tried, not assumed.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from mlestruct.structures.entropy import Entropy
from mlestruct.trees import Tree

SHARE, MOST = 0.5, 0.3  # of the gap that is allowed for δ; δ itself at most
# A round without progress shrinks δ, unless that only raised the gap.
PROGRESS, SHRINK, GROWTH = 1e-5, 0.5, 1.5
TRIED, FINER, BACK = 3, 0.3, 1.4  # questions of either kind that are compared


def tries(entropy: Entropy) -> bool:
    """Whether a finer δ is worth trying."""
    return bool((entropy.a < 0).any() or (entropy.b < 0).any() or (entropy.mixed.a < 0).any())


@dataclass
class Smoothing:
    """δ of the rule, how much finer was found to be better, and what that is judged by.

    ``share`` is the δ to ask with. ``gap`` and ``objective`` are the last round's; ``plain`` and
    ``fine`` sum the bounds of questions asked with δ and with a finer one.
    """

    share: float = 0.0
    rule: float = 0.0
    factor: float = 1.0
    objective: float = float("inf")
    gap: float = float("inf")
    plain: float = 0.0
    fine: float = 0.0
    asked: int = 0

    def follow(self, gap: float, mass: float, objective: float, tried: bool) -> None:
        """After a round of this gap; ``mass`` is its vertices' Σ|a|·view."""
        stalled = self.objective - objective < PROGRESS * gap and gap <= 1.01 * self.gap
        change = SHRINK if stalled else GROWTH
        most = min(change * self.rule, MOST) if self.rule > 0.0 else MOST
        self.rule = min(SHARE * max(gap, 0.0) / max(mass, 1e-300), most)
        self.objective, self.gap = objective, gap
        if tried:
            self._compare(gap - objective)
        self.share = self.rule * self.factor * (FINER if self.asked % 2 else 1.0)

    def _compare(self, bound: float) -> None:
        if self.asked % 2:
            self.fine += bound
        else:
            self.plain += bound
        self.asked += 1
        if self.asked == 2 * TRIED:
            better = self.fine < self.plain
            self.factor = FINER * self.factor if better else min(BACK * self.factor, 1.0)
            self.plain, self.fine, self.asked = 0.0, 0.0, 0

    def tree(self) -> Tree:
        return astuple(self)
