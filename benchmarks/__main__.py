"""python -m benchmarks NAME|all [--quick] [--json]: run benchmarks and print a table."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import benchmarks

KEYS = ("benchmark", "workload", "quantity", "ours", "peer", "peer_name", "ratio", "target", "met")
WIDTHS = (11, 44, 34, 10, 10, 26, 8, 18, 4)


def names() -> list[str]:
    """Every benchmark: a module of this package with ``run(quick) -> Iterable[dict]``."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def results(name: str, quick: bool) -> Iterator[dict[str, Any]]:
    """The rows of one benchmark; one row that says so where a peer is not installed."""
    try:
        yield from importlib.import_module(f"benchmarks.{name}").run(quick)
    except ModuleNotFoundError as absent:
        if (absent.name or "").split(".")[0] in ("mlestruct", "mlestruct_oracles", "benchmarks"):
            raise
        yield {"benchmark": name, "workload": f"skipped: {absent.name} is not installed"}


def line(row: dict[str, Any]) -> str:
    """One row of the table, numbers to four digits."""
    cells = (_short(row.get(key)).ljust(width) for key, width in zip(KEYS, WIDTHS, strict=True))
    return " ".join(cells).rstrip()


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
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args(arguments)
    missed = 0
    if not options.json:
        print(line({key: key for key in KEYS}))
    for name in names() if options.name == "all" else [options.name]:
        for row in results(name, options.quick):
            missed += row.get("met") is False
            print(json.dumps(row) if options.json else line(row), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
