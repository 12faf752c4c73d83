"""Tables of any make, files among them, as named columns that know where each cell stands."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.tables.frames import Column as Column
    from mlestruct.tables.frames import Columns as Columns
    from mlestruct.tables.frames import Table as Table
    from mlestruct.tables.frames import missing as missing
    from mlestruct.tables.frames import table as table
    from mlestruct.tables.reading import read as read
    from mlestruct.tables.reading import sheets as sheets
    from mlestruct.tables.separated import write_csv as write_csv

__getattr__, __all__ = lazily(__name__)
