"""Generated examples of real-use sizes: documented models, seedable, nothing downloaded."""

from mlestruct.data.examples import Examples, grids, landmarks, routes, sequences
from mlestruct.data.shipped import shipped
from mlestruct.data.students import Roommates, Taste, roommates

__all__ = [
    "Examples",
    "Roommates",
    "Taste",
    "grids",
    "landmarks",
    "roommates",
    "routes",
    "sequences",
    "shipped",
]
