"""Recomputes reference cases and reports every quantity in a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mlestruct.data import shipped
from tests.reference.cases import Case, Fields, Malformed, Place, load
from tests.reference.compare import NOT_ATTAINED, brief, difference, plain

NOT_IMPLEMENTED = "not implemented"
VERDICTS = ("passed", "failed", NOT_IMPLEMENTED)


@dataclass(frozen=True)
class Got:
    """A computed quantity; ``within`` is what its certificate leaves open, absolutely."""

    place: Place
    value: Any
    within: float = 0.0
    note: str = ""


Run = Callable[[Fields, Fields], Iterable[Got]]

# kind → (module of this package : function, names in `expected` that are part of the question)
KINDS: dict[str, tuple[str, frozenset[str]]] = {
    "grid_inference": ("factor_graphs:grid_inference", frozenset()),
    "factor_graph_inference": (
        "factor_graphs:factor_graph_inference",
        frozenset({"name", "rho", "w_node", "w_factor"}),
    ),
    "frustrated_cycle": ("factor_graphs:frustrated_cycle", frozenset()),
    "edge_appearance": ("factor_graphs:edge_appearance_case", frozenset()),
    "ising_grid": ("factor_graphs:ising_grid", frozenset()),
    "permanent": ("matchings:permanent", frozenset({"rho"})),
    "permanent_vertex_optimum": ("matchings:vertex_optimum", frozenset()),
    "permanent_all_ones": ("matchings:all_ones", frozenset()),
    "partial_bipartite_inference": ("matchings:partial_bipartite", frozenset({"rho"})),
    "perfect_matching_inference": ("matchings:perfect_matching", frozenset({"rho"})),
    "matching_polytopes": ("matchings:polytopes", frozenset()),
    "mle_dual": ("learning:mle_dual", frozenset()),
    "fw_first_step": ("learning:first_step", frozenset()),
    "ssvm": ("learning:ssvm_case", frozenset({"T"})),
    "mle_grid": ("learning:mle_grid", frozenset({"rho", "lam"})),
    "mle_bipartite": ("learning:mle_bipartite", frozenset({"lam", "hypertree_rho"})),
    "mle_matching": ("learning:mle_matching", frozenset({"rho"})),
    "camel_worked_example": ("camel:worked_example", frozenset()),
    "camel": ("camel:camel", frozenset({"sigma2"})),
    "trw_surrogate": ("trw:trw_surrogate", frozenset({"rho", "lambda_n"})),
    "blse": ("trw:blse", frozenset()),
    "implicit": ("fitting:implicit", frozenset({"observed_nodes"})),
    "procedural": ("fitting:procedural", frozenset()),
    "belief_optimisation": ("contrastive:pairs", frozenset({"W", "qi", "qj"})),
    "contrastive": ("contrastive:contrastive", frozenset()),
    "contrastive_learning": ("contrastive:learning", frozenset({"observed_first_three"})),
}


@dataclass(frozen=True)
class Line:
    """One quantity of one case: expected, got, the scaled error, and the verdict."""

    case: str
    kind: str
    quantity: str
    expected: Any
    got: Any
    error: float | None
    tolerance: float | None
    verdict: str
    note: str

    def __str__(self) -> str:
        if self.verdict == NOT_IMPLEMENTED:
            return f"{self.case}  {self.quantity or self.kind}  {NOT_IMPLEMENTED}"
        error = "-" if self.error is None else f"{self.error:.1e}"
        note = f"  {self.note}" if self.note else ""
        return (
            f"{self.case}  {self.quantity}  expected {brief(self.expected)}  "
            f"got {brief(self.got)}  error {error}  {self.verdict}{note}"
        )

    def as_json(self) -> str:
        fields = {name: plain(value) for name, value in asdict(self).items()}
        return json.dumps(fields, ensure_ascii=False, allow_nan=False)


def check(case: Case) -> Iterator[Line]:
    """Every expected quantity of a case, compared or listed as not implemented."""
    if case.kind not in KINDS:
        yield _missing(case, "")
        return
    function, parameters = KINDS[case.kind]
    wanted = {place: value for place, value in case.quantities() if place[-1] not in parameters}
    informational = {place for place in wanted if case.tolerance_at(place) is None}
    try:
        for got in _load(function)(case.inputs, case.expected):
            if got.place in informational:
                continue
            if got.place not in wanted:
                raise Malformed(f"case {case.name!r}: expected lacks {_name(got.place)!r}")
            yield _compared(case, got, wanted.pop(got.place))
    except Malformed:
        raise
    except Exception as error:  # whatever a case makes the library do is that case's verdict
        yield Line(
            case.name, case.kind, "", None, None, None, None, "failed",
            f"{type(error).__name__}: {error}",
        )  # fmt: skip
        return
    for place in wanted:
        if place not in informational:
            yield _missing(case, _name(place))


def _load(function: str) -> Run:
    module, name = function.split(":")
    run: Run = getattr(import_module(f"tests.reference.{module}"), name)
    return run


def _compared(case: Case, got: Got, expected: Any) -> Line:
    tolerance = case.tolerance_at(got.place)
    assert tolerance is not None
    found = difference(expected, got.value)
    notes = [note for note in (found.why, got.note) if note]
    passed = found.error <= tolerance
    if not passed and found.error <= tolerance + got.within:
        passed = True
        notes.insert(0, f"beyond the tolerance {tolerance:g}")
    return Line(
        case.name,
        case.kind,
        _name(got.place),
        expected,
        got.value,
        None if expected == NOT_ATTAINED else found.error,
        tolerance,
        "passed" if passed else "failed",
        "; ".join(notes),
    )


def _missing(case: Case, quantity: str) -> Line:
    return Line(case.name, case.kind, quantity, None, None, None, None, NOT_IMPLEMENTED, "")


def _name(place: Place) -> str:
    return ".".join(map(str, place))


def default_paths() -> list[Path]:
    """The reference cases that ship with the library."""
    return [shipped("cases.json")]


def main(paths: Sequence[str | Path] = (), as_json: bool = False, strict: bool = False) -> int:
    """Prints a line per quantity, then `N passed, M failed`; 0 when nothing failed, else 1.

    With ``as_json`` every line on the output is an object, and the sum goes to the error stream.
    With ``strict`` what is not implemented counts as failed.
    """
    count = dict.fromkeys(VERDICTS, 0)
    files = [load(Path(path)) for path in (paths or default_paths())]
    for line in (line for cases in files for case in cases for line in check(case)):
        count[line.verdict] += 1
        sys.stdout.write((line.as_json() if as_json else str(line)) + "\n")
        sys.stdout.flush()
    passed, failed, skipped = (count[verdict] for verdict in VERDICTS)
    if strict:
        failed, skipped = failed + skipped, 0
    total = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    (sys.stderr if as_json else sys.stdout).write(total + "\n")
    return 1 if failed else 0
