"""Answers shared: what is best for one example is an outcome of all others of its structure.

After a round's own steps every example takes, from the last answers for its kin and itself, the
vertex that its slopes now ask for, and steps towards it; again while that gains. It costs no call.
Structures whose data forbid different outcomes differ by their tags, so kin have one polytope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlestruct.frank_wolfe.active_set import Iterate
from mlestruct.native._door import AnswerKin, KnownAnswers, best_of_kin
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.trees import Tree, like

LAST = 10  # rounds whose answers are remembered: 160 bytes a coordinate at the peak
NEAR = 64  # of its kin that an example looks at, at most
PASSES, WORTH = 10, 0.15  # passes a round at most; what the last gains of a round's own steps
RICH = 4  # passes for as many answers at hand as an example has parts, and at least one
LONGEST = 32  # rounds left out at most, after one in which not even the first pass gained that
# Vertices per part, above which an example takes no more of others: a mean needs one more vertex
# than it has dimensions, and the weight of those that are not needed is slow to go.
FULL = 2
MORE = 4  # pairs of steps per scoring, for a vertex per part: so the weight goes sooner


@dataclass
class Sharing:
    """The last answers; how long sharing pauses, and paused the last time."""

    kin: AnswerKin
    answers: list[Array] = field(default_factory=list)
    wait: int = 0
    pause: int = 0

    @classmethod
    def of(cls, batch: Batch[Any]) -> Sharing | None:
        """None where nothing is to be gained: no kin, or solvers of the library's own.

        They answer so quickly that to look at others' answers takes longer than to ask.
        """
        groups = [members for one, members in batch.groups() if one.default_oracle is None]
        if not any(len(members) > 1 for members in groups):
            return None
        first, size, place = np.zeros((3, len(batch)), dtype=np.int64)
        begin = 0
        for members in groups:
            first[members], size[members] = begin, len(members)
            place[members] = np.arange(len(members))
            begin += len(members)
        sizes = len(batch), begin, NEAR
        return cls(AnswerKin(*sizes, batch.offsets, np.concatenate(groups), first, size, place))

    def take(
        self, iterate: Iterate, vertices: Array, gained: float, steps: Callable[..., float]
    ) -> None:
        """``steps`` towards others' answers, after those towards ``vertices`` have ``gained``."""
        self.answers = [*self.answers, vertices][-LAST:]
        if self.wait:
            self.wait -= 1
            return
        dual, x = iterate.dual, iterate.x
        atoms: Any = iterate.atoms
        known, most = _rows(dual.batch, self.answers), FULL * np.diff(dual.batch.offsets)
        at_hand = LAST * np.minimum(self.kin.size, NEAR).sum() / dual.batch.size
        for number in range(int(np.clip(RICH * at_hand, 1, PASSES))):
            score = dual.features.potentials(x.theta) + x.smooth + x.rough
            found, gain = np.zeros(len(score)), np.zeros(len(dual.batch))
            best_of_kin(self.kin, known, score, x.tau, found, gain)
            order = np.flatnonzero((gain > 0.0) & (atoms.known < most))
            if steps(order, found) < WORTH * gained:
                if number == 0:
                    self.wait = self.pause = min(2 * self.pause + 1, LONGEST)
                return
            self.pause = 0

    def tree(self) -> Tree:
        return tuple(self.answers), self.wait, self.pause

    @classmethod
    def recalled(cls, batch: Batch[Any], tree: Tree) -> Sharing:
        """As an earlier run left it."""
        answers, wait, pause = tree
        like((wait, pause), (0, 0))
        own = cls.of(batch)
        if own is None:
            raise ValueError("answers of another problem")
        return cls(own.kin, [like(one, batch.bias) for one in answers], wait, pause)


def _rows(batch: Batch[Any], answers: list[Array]) -> KnownAnswers:
    flat = np.concatenate(answers)
    where = np.flatnonzero(flat != 0)  # of floats themselves it is ten times slower
    edges = (np.arange(len(answers))[:, None] * batch.size + batch.offsets[:-1]).ravel()
    start = np.searchsorted(where, np.append(edges, len(flat)))
    rows = len(start) - 1
    return KnownAnswers(rows, len(where), start, where % batch.size, flat[where])
