"""Tables of any make, files among them, as named columns that know where each cell stands."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.roommates.frames import Column as Column
    from mlestruct.roommates.frames import Columns as Columns
    from mlestruct.roommates.frames import Table as Table
    from mlestruct.roommates.frames import missing as missing
    from mlestruct.roommates.frames import table as table
    from mlestruct.roommates.reading import read as read
    from mlestruct.roommates.reading import sheets as sheets
    from mlestruct.roommates.reading import write_csv as write_csv

__getattr__, __all__ = lazily(__name__)
