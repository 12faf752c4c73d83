"""Tables of any make, files among them, as named columns that know where each cell stands."""

from mlestruct.tables.frames import Column, Columns, Table, missing
from mlestruct.tables.reading import read, sheets, table
from mlestruct.tables.writing import write_csv

__all__ = ["Column", "Columns", "Table", "missing", "read", "sheets", "table", "write_csv"]
