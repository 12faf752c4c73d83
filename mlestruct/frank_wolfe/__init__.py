"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.frank_wolfe.bcfw import BCFW as BCFW
    from mlestruct.frank_wolfe.rounds import FrankWolfe as FrankWolfe

__all__ = [
    "BCFW",
    "FrankWolfe",
]

__getattr__ = lazily(
    __name__,
    {
        "BCFW": "frank_wolfe.bcfw",
        "FrankWolfe": "frank_wolfe.rounds",
    },
)
