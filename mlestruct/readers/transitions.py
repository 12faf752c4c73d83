"""Which tag may follow which: BIO, IOBES, or pairs of a user's own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.structures.base import Ints
from mlestruct.structures.graph import FactorGraph

SCHEMES = ("bio", "iobes")
Forbidden = str | Iterable[tuple[Any, Any]] | None


class ForbiddenTags(NamedTuple):
    """What no sequence of tags does: labels that begin none, end none, and pairs."""

    first: Ints
    last: Ints
    pairs: NDArray[np.bool_]
    labels: list[Any]

    @classmethod
    def of(cls, labels: Sequence[Any], forbidden: Forbidden) -> ForbiddenTags:
        """``forbidden`` is ``bio``, ``iobes``, or pairs (tag, next tag), None for the edge.

        >>> ForbiddenTags.of(["B-x", "I-x", "O"], "bio").pairs.tolist()
        [[False, False, False], [False, False, False], [False, True, False]]
        >>> ForbiddenTags.of(["a", "b"], [("a", "b"), (None, "b")]).first.tolist()
        [1]
        """
        states, edge = len(labels), len(labels)
        table = np.zeros((states + 1, states + 1), dtype=bool)
        if forbidden is None:
            pairs: Iterable[tuple[Any, Any]] = ()
        elif isinstance(forbidden, str):
            pairs = _scheme(forbidden, labels)
        else:
            pairs = _listed(forbidden)
        place = {None: edge} | {label: k for k, label in enumerate(labels)}
        for pair in pairs:
            a, b = pair
            if a in place and b in place:  # tags that training never saw are ruled out as it is
                table[place[a], place[b]] = True
        first, last = np.flatnonzero(table[edge, :states]), np.flatnonzero(table[:states, edge])
        return cls(first, last, table[:states, :states], list(labels))

    def __bool__(self) -> bool:
        return bool(len(self.first) or len(self.last) or self.pairs.any())

    def applied(self, graph: FactorGraph) -> FactorGraph:
        """A graph whose first factors join each position to the next, without what is forbidden."""
        if not self or graph.n_nodes == 0:
            return graph
        states, fixed = len(self.labels), graph.fixed.copy()
        fixed[graph.node_start[0] + self.first] = 0
        fixed[graph.node_start[-2] + self.last] = 0
        entries = np.flatnonzero(self.pairs.ravel())
        steps = graph.table_start[: graph.n_nodes - 1]
        fixed[np.add.outer(steps, entries)] = 0
        starts = zip(graph.scope_start[:-1], graph.scope_start[1:], strict=True)
        scopes = [tuple(graph.scope[a:b].tolist()) for a, b in starts]
        assert states == graph.cards[0]
        return FactorGraph(graph.cards, scopes, fixed=fixed)

    def broken(self, states: Ints) -> str | None:
        """The first place where a sequence does what is forbidden, in words; −1 is not known."""
        known = states >= 0
        if len(states) and known[0] and states[0] in self.first:
            return f"token 0 is {self.labels[states[0]]!r}, which may not come first"
        if len(states) and known[-1] and states[-1] in self.last:
            return (
                f"token {len(states) - 1} is {self.labels[states[-1]]!r}, which may not come last"
            )
        both = known[:-1] & known[1:]
        wrong = np.flatnonzero(both & self.pairs[states[:-1], states[1:]])
        if len(wrong) == 0:
            return None
        i = int(wrong[0])
        before, after = (self.labels[states[k]] for k in (i, i + 1))
        return f"token {i + 1} is {after!r}, which may not follow {before!r} (token {i})"


def doubt(labels: Sequence[Any], forbidden: Forbidden) -> str | None:
    """What makes rules look as if they meant other labels: tags that none of these is."""
    if forbidden is None:
        return None
    if isinstance(forbidden, str):
        marked = any(_split(label)[0] in ("B", "I", "E", "S") for label in labels)
        return None if marked else f"no label, {_few(labels)}, begins with 'B-' or 'I-'"
    named = dict.fromkeys(tag for pair in _listed(forbidden) for tag in pair if tag is not None)
    absent = [tag for tag in named if tag not in set(labels)]
    return f"no label of training is {_few(absent)}" if absent else None


def _few(tags: Sequence[Any]) -> str:
    return ", ".join(repr(tag) for tag in tags[:3]) + ", …" * (len(tags) > 3)


def _listed(pairs: Any) -> list[tuple[Any, Any]]:
    if not isinstance(pairs, Iterable):
        raise ValueError(f"constraints are {pairs!r}; expected pairs (tag, next tag)")
    if iter(pairs) is pairs:
        raise ValueError("constraints are an iterator, which is read only once; give a list")
    return [_pair(pair) for pair in pairs]


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, str) or not isinstance(pair, Iterable) or len(tuple(pair)) != 2:
        raise ValueError(f"constraints hold {pair!r}; expected pairs (tag, next tag)")
    a, b = pair
    if not (isinstance(a, Hashable) and isinstance(b, Hashable)):
        raise ValueError(f"constraints hold {pair!r}; a tag is text or a number")
    return a, b


def _scheme(name: str, labels: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The forbidden pairs of a tagging scheme.

    BIO: ``I-x`` follows only ``B-x`` and ``I-x``. IOBES besides: ``B-x`` and ``I-x`` go on, to
    ``I-x`` or ``E-x``, and ``E-x`` comes only there; ``S-x`` is an entity of one.
    """
    if name not in SCHEMES:
        raise ValueError(f"constraints is None, 'bio', 'iobes' or pairs of tags, not {name!r}")
    inside, opens = ("I", "E") if name == "iobes" else ("I",), ("B", "I")
    goes_on = opens if name == "iobes" else ()
    for a in (None, *labels):
        for b in (*labels, None):
            (mark, kind), (then, other) = _split(a), _split(b)
            same = mark in opens and kind == other
            if (then in inside and not same) or (mark in goes_on and not (then in inside and same)):
                yield a, b


def _split(label: Any) -> tuple[str, str]:
    mark, _, kind = str(label).partition("-")
    return ("", "") if label is None else (mark, kind)
