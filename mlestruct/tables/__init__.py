"""Tables of any make, files among them, as named columns that know where each cell stands."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily
from mlestruct.tables.frames import Column, Columns, Table, missing, table

if TYPE_CHECKING:
    from mlestruct.tables.reading import read as read
    from mlestruct.tables.reading import sheets as sheets
    from mlestruct.tables.writing import write_csv as write_csv

__getattr__, _later = lazily(
    __name__, {"tables.reading": "read sheets", "tables.writing": "write_csv"}
)
__all__ = ["Column", "Columns", "Table", "missing", "table", *_later]
