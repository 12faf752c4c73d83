"""SkipChainModel: a sequence whose positions may also be tied at a distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any, Literal

import scipy.sparse as sp

from mlestruct.estimators.sequence import SequenceModel, plain
from mlestruct.readers import Attributes
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.shapes import skip_chain

Pairs = Iterable[tuple[int, int]]


def capitalised_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of equal words of two letters or more that begin with a capital; no neighbours.

    >>> capitalised_pairs(["Mr", "Green", "met", "Mrs", "Green", "Green"])
    [(1, 4), (1, 5)]
    """
    places: dict[str, list[int]] = {}
    for i, word in enumerate(words):
        if len(word) > 1 and word[0].isupper():
            places.setdefault(word, []).append(i)
    found = chain.from_iterable(combinations(same, 2) for same in places.values())
    return [(i, j) for i, j in found if j > i + 1]


@dataclass(eq=False, repr=False)
class SkipChainModel(SequenceModel):
    """Sequences with extra ties: X and y as :class:`SequenceModel` takes them.

    ``skips(x)`` lists pairs of positions that are not neighbours: their labels are tied like
    those of neighbours, with weights of their own. ``edges(x, i, j)`` gives the tie of positions i
    and j a dict of attributes (4-cliques of two labels and two inputs); without it all ties of a
    kind have the same weights (2-cliques). Skips make cycles: only ``exact_mle`` is exact.
    Every weight is kept by default. Other settings and fitted attributes are those of
    :class:`SequenceModel`.

    >>> X = [["Green", "met", "Green"], ["it", "is", "Green"]]
    >>> model = SkipChainModel(capitalised_pairs, learner="lbp")
    >>> model = model.fit([[{"word": w} for w in x] for x in X], [[1, 0, 1], [0, 0, 1]])
    """

    weights: Literal["all", "seen"] | None = field(default="all", kw_only=True)
    skips: Callable[[Any], Pairs]
    edges: Callable[[Any, int, int], Any] | None = None

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """The labels, and the dictionaries of both kinds of attributes."""
        super().prepare(X, y)
        self.ties_ = Attributes.of([list(self._ties(x)) for x in X])

    def structures(self, X: Sequence[Any]) -> list[FactorGraph]:
        states, rules, found = len(self.classes_), self._rules, []
        for m, x in enumerate(X):
            graph = skip_chain(self.nodes_of(x), states, self._skips(plain(x)))
            found.append(self._held(rules.applied(graph), x, m))
        return found

    def ties(self, X: Sequence[Any]) -> sp.csr_array:
        return self.ties_.stack([list(self._ties(x)) for x in X])

    def _skips(self, x: Any) -> Pairs:
        pairs = self.skips(x)
        if not isinstance(pairs, Iterable):
            raise ValueError(f"skips gave {pairs!r} for a sequence; expected pairs of positions")
        return pairs

    def _ties(self, x: Any) -> Iterator[dict[str, Any]]:
        """The attributes of every tie, in the structure's order."""
        steps = [(i, i + 1) for i in range(self.nodes_of(x) - 1)]
        for kind, pairs in (("chain", steps), ("skip", self._skips(x))):
            for i, j in pairs:
                own = {} if self.edges is None else {f"{kind} with": self.edges(x, i, j)}
                yield {kind: True, **own}

    def tie_names(self) -> list[str]:
        return [f"{name}: " for name in self.ties_.names]

    def stored(self) -> dict[str, Any]:
        return {**super().stored(), "ties_": self.ties_.packed()}

    def restore(self, learned: dict[str, Any]) -> None:
        super().restore(learned)
        self.ties_ = Attributes.unpacked(learned["ties_"])
