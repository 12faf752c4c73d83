"""Bad inputs at every door of the library."""

from __future__ import annotations

from benchmarks._faults import bad_doors, bad_parts
from benchmarks._faults.refusal import Bad

TABLES = (
    bad_parts.structures,
    bad_parts.outcomes,
    bad_parts.batches,
    bad_parts.scores,
    bad_parts.impossible,
    bad_parts.features,
    bad_parts.settings,
    bad_doors.matchings,
    bad_doors.grids,
    bad_doors.sequences,
    bad_doors.joint,
    bad_doors.roommates,
    bad_doors.judgements,
    bad_doors.tables,
)


def cases() -> list[Bad]:
    """Every row of every table."""
    return [case for rows in TABLES for case in rows()]
