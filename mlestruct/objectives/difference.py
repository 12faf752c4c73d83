"""A sum over examples less another: log Z, and log Z of what agrees with what was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlestruct.engine import Shard
from mlestruct.objectives.base import EvaluationPoint, ShardValue, Share
from mlestruct.trees import Tree


class Difference:
    """One shard's value less another's, at the same θ."""

    def __init__(self, more: Shard, less: Shard) -> None:
        self.more, self.less = more, less

    def __call__(self, question: EvaluationPoint) -> ShardValue:
        more, less = self.more(question), self.less(question)
        slope = more.gradient - less.gradient
        return ShardValue(more.value - less.value, slope, more.stalled + less.stalled)

    def memory(self) -> Tree:
        return self.more.memory(), self.less.memory()

    def remember(self, tree: Tree) -> None:
        more, less = (None, None) if tree is None else tree
        self.more.remember(more)
        self.less.remember(less)


@dataclass(frozen=True)
class Differences:
    """Makes one shard of a difference, of what makes either; both have the same examples."""

    more: Share
    less: Share

    @property
    def first(self) -> int:
        return self.more.first

    def __call__(self) -> Difference:
        return Difference(self.more(), self.less())

    def halves(self, question: Any) -> list[tuple[Differences, Any]]:
        """Makers of the two halves, each with the question."""
        both = (share.halves(question) for share in (self.more, self.less))
        return [(Differences(a, b), question) for (a, _), (b, _) in zip(*both, strict=True)]


def difference(more: Share, less: Share) -> list[Differences]:
    """A maker per shard of the first less the second, each given as all examples as one."""
    return [Differences(share, replace(less, members=share.members)) for share in more.split()]
