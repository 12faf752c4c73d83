"""The seam to every place where shards of the examples can live and work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Tree = Any
"""None, numbers, text, arrays, and tuples, lists or dictionaries of trees."""


class Shard(Protocol):
    """A share of the examples, asked again and again where it lives.

    Interface: calling it with a question → its answer; ``memory()`` → what later answers depend
    on besides their questions, as a tree, None where that is nothing; ``remember(tree)`` goes on
    from there. Asked the same from the same memory, it answers the same bits.
    """

    def __call__(self, question: Any, /) -> Any: ...
    def memory(self) -> Tree: ...
    def remember(self, tree: Tree) -> None: ...


Maker = Callable[[], Shard]
"""Makes a shard where it is to live; Dask's workers are sent its pickle.

It may have ``halves(question)`` and ``first``, by which the example that costs workers is found.
"""


class Running(Protocol):
    """Started shards. Answers come in the shards' order, so sums have the same bits anywhere.

    Interface: ``len`` is the number of shards; ``round(questions)`` asks each its question;
    ``memory()`` and ``remember`` are the shards' own, one tree each; ``close()`` releases them.
    """

    def __len__(self) -> int: ...
    def round(self, questions: Sequence[Any]) -> list[Any]: ...
    def memory(self) -> list[Tree]: ...
    def remember(self, trees: Sequence[Tree]) -> None: ...
    def close(self) -> None: ...


class Engine(Protocol):
    """Where shards run. Their number is the data's business, never the number of workers."""

    def start(self, makers: Sequence[Maker]) -> Running: ...
