"""What the papers' scripts share: arguments, tables on the terminal or in JSON, figures."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """How an experiment is to run: where data lie, whether briefly, where figures go.

    ``keep`` is a file of parts of long tables, such as folds. Those in it are not run again; with
    ``cut`` no other is run either, so that a run that was cut has a table too.
    """

    folder: Path | None = None
    quick: bool = False
    plot: Path | None = None
    keep: Path | None = None
    cut: bool = False

    @cached_property
    def parts(self) -> dict[str, Row]:
        """Those that are known, by name."""
        known = self.keep.read_text("utf-8") if self.keep and self.keep.exists() else ""
        return {row.pop("part"): row for row in map(json.loads, known.splitlines())}

    def once(self, name: str, run: Callable[[], Row]) -> Row | None:
        """A part by its name: as it is known, or found now, told on stderr and kept."""
        name = f"{name}, quick" if self.quick else name
        if name not in self.parts and not self.cut:
            part = self.parts[name] = run()
            told = [f"{k} {_short(v)}" for k, v in part.items() if not isinstance(v, list)]
            print(name, *told, sep=", ", file=sys.stderr, flush=True)
            if self.keep is not None:
                with self.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"part": name, **part}) + "\n")
        return self.parts.get(name)

    def data(self, *names: str) -> Path:
        """The folder of a data set that cannot be shipped: the first of these names there is."""
        for name in names:
            if self.folder is not None and (self.folder / name).is_dir():
                return self.folder / name
        raise FileNotFoundError(
            f"no folder {' or '.join(names)} under {self.folder}: give its parent by --data or "
            "MLESTRUCT_DATA (docs/papers/index.md says where each data set comes from)"
        )

    def save(self, figure: Any, name: str) -> None:
        """Write a matplotlib figure where ``--plot`` says, if it does."""
        if self.plot is not None:
            self.plot.mkdir(parents=True, exist_ok=True)
            figure.savefig(self.plot / f"{name}.png", dpi=120, bbox_inches="tight")


Experiment = Callable[[Setting], Iterable[Row]]


def main(
    program: str, experiments: Mapping[str, Experiment], arguments: Sequence[str] | None = None
) -> int:
    """Run one experiment, or all; rows appear as they are found."""
    parser = argparse.ArgumentParser(prog=f"python -m papers.{program}")
    parser.add_argument("experiment", choices=[*experiments, "all"])
    parser.add_argument("--data", type=Path, default=_environment(), help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="seconds: small sizes, few repeats")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write figures there")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where parts are kept")
    parser.add_argument("--cut", action="store_true", help="only the parts kept there")
    given = parser.parse_args(arguments)
    setting = Setting(given.data, given.quick, given.plot, given.keep, given.cut)
    for name in experiments if given.experiment == "all" else [given.experiment]:
        header: list[str] = []
        try:
            for row in experiments[name](setting):
                header = show(row, header, given.json)
        except FileNotFoundError as error:
            print(f"papers.{program} {name}: {error}", file=sys.stderr)
            if given.experiment != "all":
                return 2
    return 0


def show(row: Row, header: list[str], as_json: bool) -> list[str]:
    """Print a row; the header again whenever the columns change. What is not finite is null."""
    row = {name: value if _finite(value) else None for name, value in row.items()}
    if as_json:
        print(json.dumps(row, allow_nan=False), flush=True)
        return header
    columns = list(row)
    if columns != header:
        print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    print(f"| {' | '.join(_short(value) for value in row.values())} |", flush=True)
    return columns


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or isfinite(value)


def _short(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _environment() -> Path | None:
    given = os.environ.get("MLESTRUCT_DATA")
    return Path(given) if given else None
