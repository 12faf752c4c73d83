"""The fast route: objectives of θ, minimised by L-BFGS or small batches."""

from mlestruct.train.descents import descend, descend_slopes, evaluated
from mlestruct.train.direct import Direct, natural
from mlestruct.train.small_batches import SmallBatches

__all__ = ["Direct", "SmallBatches", "descend", "descend_slopes", "evaluated", "natural"]
