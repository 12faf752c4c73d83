"""Frank-Wolfe and block-coordinate Frank-Wolfe over any oracle, every round certified."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.frank_wolfe.settings import BCFW as BCFW
    from mlestruct.frank_wolfe.settings import FrankWolfe as FrankWolfe

__getattr__, __all__ = lazily(__name__)
