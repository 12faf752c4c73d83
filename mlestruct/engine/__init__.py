"""Where the parts of a fit are asked: in this process, on its threads, or by Dask's workers."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.engine.dask import Dask as Dask
    from mlestruct.engine.local import Engine as Engine
    from mlestruct.engine.local import Serial as Serial
    from mlestruct.engine.local import Threads as Threads
    from mlestruct.engine.local import engine_of as engine_of

__getattr__, __all__ = lazily(__name__)
