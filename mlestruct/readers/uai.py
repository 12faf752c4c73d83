"""Models and evidence in the format of the UAI inference competitions, and answers in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from mlestruct.errors import Infeasible
from mlestruct.files import content
from mlestruct.inference.decoding import decode
from mlestruct.inference.elimination import estimate
from mlestruct.inference.exact import exact
from mlestruct.inference.graph.sum_product import SumProduct
from mlestruct.structures.base import Array
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.graph import FactorGraph

TASKS = ("PR", "MAR", "MPE")
DIGITS = 18  # of a whole number
LARGEST = 1 << 24  # states of all variables: tables are as long as the file, these need not be
GIB, SECONDS = 1.0, 60.0  # beyond this estimate of exact inference, ``auto`` says no
EFFORT = 60.0  # CP-SAT's deterministic seconds for a best labelling
Method = Literal["auto", "exact", "trw", "bp"]


class UaiProblem(NamedTuple):
    """p(y) ∝ exp(constant + ⟨score, v(y)⟩) over the labellings of ``graph``."""

    graph: FactorGraph
    score: Array
    constant: float


@dataclass(frozen=True)
class UaiResult:
    """A result in the competition's format, and what kind of number it is."""

    text: str
    method: str


def read(path: str | Path, evidence: str | Path | None = None) -> UaiProblem:
    """Read a .uai file, and clamp it to an .evid file.

    Tables are C-order with the last variable fastest, as in the format. Factors over the same
    variables are multiplied into one, factors over one variable or none into scores and the
    constant, and entries of zero are forbidden.
    """
    cards, tables, constant = _multiply(_Tokens(Path(path)))
    scopes = [scope for scope in tables if len(scope) > 1]
    graph = FactorGraph(cards, scopes)
    score = np.zeros(graph.size)
    for i in range(len(cards)):
        if (i,) in tables:
            score[graph.node_start[i] : graph.node_start[i + 1]] = tables[(i,)]
    for f, scope in enumerate(scopes):
        score[graph.table_start[f] : graph.table_start[f + 1]] = tables[scope].ravel()
    barred = np.isneginf(score)
    if barred.any():
        fixed = np.where(barred, 0, -1).astype(np.int8)
        graph, score = FactorGraph(cards, scopes, fixed=fixed), np.where(barred, 0.0, score)
    if evidence is not None:
        graph = graph.clamp(read_evidence(evidence))
    return UaiProblem(graph, score, constant)


def read_evidence(path: str | Path) -> dict[int, int]:
    """Variable → state; a file with several samples is refused."""
    tokens = _Tokens(Path(path))
    numbers = [tokens.count_of(word) for word in tokens.words]
    if len(numbers) > 1 and numbers[0] == 1 and len(numbers) == 2 + 2 * numbers[1]:
        numbers = numbers[1:]  # the older format: how many samples, then each
    if not numbers or len(numbers) != 1 + 2 * numbers[0]:
        raise ValueError(f"{path}: evidence is a count and that many pairs of variable and state")
    return dict(zip(numbers[1::2], numbers[2::2], strict=True))


def infer(
    path: str | Path,
    task: str = "MAR",
    evidence: str | Path | None = None,
    method: Method = "auto",
) -> UaiResult:
    """PR (log₁₀ Z), MAR (marginals) or MPE (best labelling) of a file, in the format asked for.

    ``method``: ``exact``, ``trw`` (a bound from above on graphs of pairs), ``bp`` (neither a bound
    nor certain to converge); ``auto`` is exact where the estimate allows, and ``trw`` otherwise.
    MPE is the graph's own solver's, decoded where that answers with fractions within a budget that
    is counted; it says whether it is proven best.
    """
    if task not in TASKS:
        raise ValueError(f"task is {task!r}; it must be one of {', '.join(TASKS)}")
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(get_args(Method))}")
    problem = read(path, evidence)
    why = problem.graph.impossible()
    if why is not None:
        raise Infeasible(f"{path}: {why}")
    if task == "MPE":
        return _best(problem)
    log_z, tau, kind = _marginals(problem, method)
    if task == "PR":
        return UaiResult(f"PR\n{(log_z + problem.constant) / np.log(10):.10g}\n", kind)
    start, cards = problem.graph.node_start, problem.graph.cards
    parts = [str(len(cards))]
    for i, k in enumerate(cards):
        parts += [str(k), *(f"{p:.8g}" for p in tau[start[i] : start[i + 1]])]
    return UaiResult("MAR\n" + " ".join(parts) + "\n", kind)


def _best(problem: UaiProblem) -> UaiResult:
    batch = Batch.of(problem.graph, count=1)
    found = decode(batch, problem.score, effort=EFFORT)
    states = " ".join(str(int(state)) for state in found.outcomes[0])
    left = found.upper[0] - found.scores[0]
    kind = "proven best" if found.proven[0] else f"within {left:.3g} of the best"
    return UaiResult(f"MPE\n{problem.graph.n_nodes} {states}\n", kind)


def _marginals(problem: UaiProblem, method: Method) -> tuple[float, Array, str]:
    graph, score = problem.graph, problem.score
    if method in ("auto", "exact"):
        cost = estimate(graph)
        if method == "exact" or (cost.complete and cost.gib <= GIB and cost.seconds <= SECONDS):
            found = exact(graph, score)
            return found.log_z, found.tau, "exact"
    batch = Batch.of(graph, count=1)
    entropy = Entropy.of(batch, 1.0 if method == "bp" else None, allow_nonconvex=method == "bp")
    messages = SumProduct.of(entropy)
    log_z, tau, state = messages.many(batch, score)
    if method == "bp":
        left = state[graph].residual[0]
        return float(log_z[0]), tau, f"belief propagation, last change {left:.1e}: no bound"
    above = float(messages.above(batch, score, state)[0])
    return above, tau, f"reweighted sum-product: {entropy.bound}"


def _multiply(tokens: _Tokens) -> tuple[list[int], dict[tuple[int, ...], Array], float]:
    """Cards, one log-table for each set of variables, and the log of all constants."""
    kind = tokens.word()
    if kind not in ("MARKOV", "BAYES"):
        raise tokens.wrong(f"the file starts with {kind!r}, not MARKOV or BAYES")
    cards = [tokens.count() for _ in range(tokens.count())]
    if sum(cards) > LARGEST:
        raise tokens.wrong(f"{sum(cards)} states of all variables, at most {LARGEST} are read")
    scopes = [tuple(tokens.count() for _ in range(tokens.count())) for _ in range(tokens.count())]
    tables: dict[tuple[int, ...], Array] = {}
    constant = 0.0
    for f, scope in enumerate(scopes):
        if any(i >= len(cards) for i in scope) or len(set(scope)) < len(scope):
            raise tokens.wrong(f"factor {f} has scope {list(scope)} among {len(cards)} variables")
        shape = tuple(cards[i] for i in scope)
        log = tokens.logs(f, math.prod(shape)).reshape(shape)
        if not scope:
            constant += float(log)
            continue
        ordered = tuple(sorted(scope))
        log = log.transpose(np.argsort(scope))
        tables[ordered] = tables[ordered] + log if ordered in tables else log
    tokens.end()
    return cards, tables, constant


class _Tokens:
    """The words of a file, read one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.words: Iterator[str] = iter(content(path, "UAI file").decode("ascii").split())
        except UnicodeDecodeError as error:
            raise self.wrong(f"it is no plain text: {error}") from error

    def wrong(self, why: str) -> ValueError:
        return ValueError(f"{self.path}: {why}")

    def word(self) -> str:
        for word in self.words:
            return word
        raise self.wrong("the file ends too early")

    def count(self) -> int:
        return self.count_of(self.word())

    def count_of(self, word: str) -> int:
        if not word.isdigit() or len(word) > DIGITS:
            raise self.wrong(f"{word[:DIGITS]!r} stands where a whole number belongs")
        return int(word)

    def logs(self, factor: int, size: int) -> Array:
        """The logarithms of a table; its stated length is checked before anything is read."""
        stated = self.count()
        if stated != size:
            raise self.wrong(f"factor {factor} states {stated} entries, its variables have {size}")
        values = np.array([self._number(factor) for _ in range(size)])
        if not (np.isfinite(values) & (values >= 0)).all():
            raise self.wrong(f"factor {factor} has an entry that is negative or not finite")
        with np.errstate(divide="ignore"):
            return np.log(values)

    def _number(self, factor: int) -> float:
        word = self.word()
        try:
            return float(word)
        except ValueError:
            raise self.wrong(f"factor {factor} has the entry {word!r}") from None

    def end(self) -> None:
        for word in self.words:
            raise self.wrong(f"{word!r} is left over after the last table")
