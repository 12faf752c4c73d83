"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from mlestruct.frank_wolfe.bcfw import BCFW
from mlestruct.frank_wolfe.rounds import FrankWolfe
from mlestruct.frank_wolfe.state import Cost, State, noted

__all__ = ["BCFW", "Cost", "FrankWolfe", "State", "noted"]
