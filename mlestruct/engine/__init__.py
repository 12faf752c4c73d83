"""Where the shards of a fit live: in this process, in others, on other machines."""

from mlestruct.engine.choose import engine_of
from mlestruct.engine.dask import Dask
from mlestruct.engine.local import Local, Serial, Threads
from mlestruct.engine.processes import Processes
from mlestruct.engine.protocol import Engine, Maker, Running, Shard, Tree

__all__ = [
    "Dask",
    "Engine",
    "Local",
    "Maker",
    "Processes",
    "Running",
    "Serial",
    "Shard",
    "Threads",
    "Tree",
    "engine_of",
]
