"""What takes long is told beforehand to whoever sits at the screen, and to nobody else."""

from __future__ import annotations

import sys

from mlestruct.kernels import watched

WORTH_SAYING = 2.0  # seconds


def tell(what: str, seconds: float) -> None:
    """Say ``what`` is done now, where it takes so many seconds that somebody would wonder."""
    if seconds > WORTH_SAYING and watched():
        sys.stderr.write(f"mlestruct: {what}, about {seconds:.2g} s\n")
        sys.stderr.flush()
