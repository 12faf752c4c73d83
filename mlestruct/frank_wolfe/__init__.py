"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.frank_wolfe.bcfw import BCFW as BCFW
    from mlestruct.frank_wolfe.rounds import FrankWolfe as FrankWolfe
    from mlestruct.frank_wolfe.state import Cost as Cost
    from mlestruct.frank_wolfe.state import State as State
    from mlestruct.frank_wolfe.state import noted as noted

__all__ = [
    "BCFW",
    "Cost",
    "FrankWolfe",
    "State",
    "noted",
]

__getattr__ = lazily(
    __name__,
    {
        "BCFW": "frank_wolfe.bcfw",
        "Cost": "frank_wolfe.state",
        "FrankWolfe": "frank_wolfe.rounds",
        "State": "frank_wolfe.state",
        "noted": "frank_wolfe.state",
    },
)
