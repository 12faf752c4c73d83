"""Where the shards of a fit live: in this process, in others, on other machines."""

from mlestruct.engine.choose import engine_of
from mlestruct.engine.local import Local, Serial, Threads
from mlestruct.engine.protocol import Engine, Maker, Running, Shard, Tree

__all__ = [
    "Engine",
    "Local",
    "Maker",
    "Running",
    "Serial",
    "Shard",
    "Threads",
    "Tree",
    "engine_of",
]
