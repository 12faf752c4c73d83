"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from mlestruct.frank_wolfe.rounds import Cost, FrankWolfe, State

__all__ = ["Cost", "FrankWolfe", "State"]
