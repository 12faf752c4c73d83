"""Predictions of a model: the best outcome, and the probability of every part of one."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.inference.decoding import Decoded as Decoded
    from mlestruct.inference.decoding import decode as decode
    from mlestruct.inference.predict import Marginals as Marginals
    from mlestruct.inference.predict import best as best
    from mlestruct.inference.predict import marginals as marginals

__getattr__, __all__ = lazily(__name__)
