"""The most memory a process has held; what the kernel tells of a child may be its parent's."""

from __future__ import annotations

import resource
from pathlib import Path


def peak() -> float:
    """The most memory this process has held, in GB; its parent's is not counted."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9
