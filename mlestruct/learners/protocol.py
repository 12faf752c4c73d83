"""What the front door asks of every learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from mlestruct.batch import Batch
from mlestruct.features import Features
from mlestruct.inference.choose import Inference
from mlestruct.learners.model import Model, Through


class Learns(Protocol):
    """A name, a model per regulariser, and the inference it keeps; ``through`` may watch."""

    @property
    def name(self) -> str: ...

    @property
    def inference(self) -> Inference: ...

    def path(
        self,
        batch: Batch[Any],
        features: Features,
        regularisers: Sequence[Any],
        through: Through = iter,
    ) -> Iterator[Model]: ...
