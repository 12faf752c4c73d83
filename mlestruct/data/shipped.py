"""Where the files of ``datasets/`` are: in the wheel, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path:
    """The path of a file that ships with the library."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_datasets", package.parent / "datasets"):
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"this installation lacks datasets/{name}")
