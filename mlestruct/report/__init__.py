"""report.html: one page that opens anywhere and needs nothing else."""

from mlestruct.report.roommates import Report

__all__ = ["Report"]
