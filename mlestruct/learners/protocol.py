"""What the front door asks of every learner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.frank_wolfe import State
from mlestruct.learners.convex import Model


class Learns(Protocol):
    """A name, and a model per regulariser; ``through`` may watch the rounds."""

    @property
    def name(self) -> str: ...

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        through: Callable[[Iterator[State]], Iterator[State]] = iter,
    ) -> Iterator[Model]: ...
