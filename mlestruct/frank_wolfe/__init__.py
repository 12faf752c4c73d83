"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from mlestruct.frank_wolfe.rounds import FrankWolfe
from mlestruct.frank_wolfe.state import Cost, State, noted

__all__ = ["Cost", "FrankWolfe", "State", "noted"]
