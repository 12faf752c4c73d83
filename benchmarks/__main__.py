"""python -m benchmarks NAME|all [--quick] [--json | --markdown] [--against FOLDER]."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import benchmarks

Row = dict[str, Any]
KEYS = ("benchmark", "workload", "quantity", "ours", "peer", "peer_name", "ratio", "target", "met")
WIDTHS = (11, 44, 34, 10, 10, 26, 8, 18, 4)
TURNS = 5
LIBRARIES = ("numpy", "scipy")


def names() -> list[str]:
    """Every benchmark: a module of this package with ``run(quick) -> Iterable[dict]``."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def results(
    name: str, quick: bool, against: str | None = None, turns: int = TURNS
) -> Iterator[Row]:
    """The rows of one benchmark; one row that says so where a peer is not installed."""
    if against is not None:
        yield from _beside(name, quick, against, turns)
        return
    try:
        yield from importlib.import_module(f"benchmarks.{name}").run(quick)
    except ModuleNotFoundError as absent:
        if (absent.name or "").split(".")[0] in ("mlestruct", "mlestruct_oracles", "benchmarks"):
            raise
        yield {"benchmark": name, "workload": f"skipped: {absent.name} is not installed"}


def _beside(name: str, quick: bool, folder: str, turns: int) -> Iterator[Row]:
    """Of all benchmarks those that the other folder has; one that fails stops no other."""
    from benchmarks._against import Failed, against

    if not (Path(folder) / "benchmarks" / f"{name}.py").exists():
        yield {"benchmark": name, "workload": f"skipped: {Path(folder).name} has no such benchmark"}
        return
    try:
        yield from against(name, quick, Path(folder), turns)
    except Failed as error:
        yield {"benchmark": name, "workload": f"failed: {error}", "met": not error.ours}


def line(row: Row) -> str:
    """One row of the table, numbers to four digits."""
    cells = (_short(row.get(key)).ljust(width) for key, width in zip(KEYS, WIDTHS, strict=True))
    return " ".join(cells).rstrip()


def cells(row: Row) -> str:
    """One row of a Markdown table, without the benchmark's name."""
    return "| " + " | ".join(_short(row.get(key)).replace("|", "\\|") for key in KEYS[1:]) + " |"


def section(name: str, command: str) -> str:
    """Heading, what is measured, when and with what, and the table's head, in Markdown."""
    about = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").split("\n\n")[0]
    installed = ", ".join(f"{package} {version(package)}" for package in LIBRARIES)
    place = f"Python {platform.python_version()}, {installed}, {os.cpu_count()} cores"
    head = "| " + " | ".join(KEYS[1:]) + " |\n" + "|---" * len(KEYS[1:]) + "|"
    return f"\n## {name}\n\n{about}\n\n`{command}`, {date.today()}, {place}.\n\n{head}"


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 when a stated target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=[*names(), "all"])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller budgets")
    parser.add_argument("--against", metavar="FOLDER", help="beside another checkout's, in turn")
    parser.add_argument("--turns", type=int, default=TURNS, help="of --against, for its medians")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per line")
    form.add_argument("--markdown", action="store_true", help="sections for docs/benchmarks.md")
    options = parser.parse_args(arguments)
    show = cells if options.markdown else line
    if options.json:
        show = _json
    elif not options.markdown:
        print(line({key: key for key in KEYS}))
    missed = 0
    for name in names() if options.name == "all" else [options.name]:
        if options.markdown:
            flags = " --quick" * options.quick
            flags += f" --against {Path(options.against).name}" if options.against else ""
            print(section(name, f"python -m benchmarks {name}{flags}"))
        for row in results(name, options.quick, options.against, options.turns):
            missed += row.get("met") is False
            print(show(row), flush=True)
    return 1 if missed else 0


def _json(row: Row) -> str:
    return json.dumps({key: row.get(key) for key in KEYS})


if __name__ == "__main__":
    sys.exit(main())
