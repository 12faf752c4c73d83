"""The fast route: objectives of θ, minimised by L-BFGS or small batches."""

from mlestruct.train.descents import descend, descend_slopes
from mlestruct.train.direct import direct, natural
from mlestruct.train.proofs import prover
from mlestruct.train.small_batches import SmallBatches
from mlestruct.train.streamed import Reader, Source, stream

__all__ = [
    "Reader",
    "SmallBatches",
    "Source",
    "descend",
    "descend_slopes",
    "direct",
    "natural",
    "prover",
    "stream",
]
