"""Generated examples of real-use sizes, documented and seedable; and examples kept in files."""

from mlestruct.data.examples import Examples, grids, landmarks, routes, sequences
from mlestruct.data.shipped import shipped
from mlestruct.data.stored import Stored
from mlestruct.data.students import Roommates, Taste, roommates

__all__ = [
    "Examples",
    "Roommates",
    "Stored",
    "Taste",
    "grids",
    "landmarks",
    "roommates",
    "routes",
    "sequences",
    "shipped",
]
