"""Generated examples of real-use sizes, documented and seedable."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.data.examples import Examples as Examples
    from mlestruct.data.examples import grids as grids
    from mlestruct.data.examples import landmarks as landmarks
    from mlestruct.data.examples import routes as routes
    from mlestruct.data.examples import sequences as sequences
    from mlestruct.roommates.students import Roommates as Roommates
    from mlestruct.roommates.students import Taste as Taste
    from mlestruct.roommates.students import roommates as roommates
    from mlestruct.roommates.students import shipped as shipped

__getattr__, __all__ = lazily(__name__)
