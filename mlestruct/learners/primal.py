"""What every primal learner shares: L-BFGS on an objective of the weights, and Fenchel's gap.

Then these learners: maximum likelihood by exact sums or by loopy messages, and pseudo-likelihood,
which takes every variable given its neighbours' observed states and needs no inference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlestruct.engine import engine_of
from mlestruct.features import Features
from mlestruct.features.tied import weighed
from mlestruct.inference.choose import DEFAULT, Inference, Propagation, Summed
from mlestruct.inference.elimination import MEMORY
from mlestruct.inference.exact import ExactSums
from mlestruct.learners.base import Learns, Start, check_problem, ridge_of
from mlestruct.learning.dual import Certificate
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.learning.loop import Found, Loop
from mlestruct.learning.minimise import LBFGS, descents, minimise
from mlestruct.learning.problem import (
    Difference,
    Head,
    LikelihoodPart,
    Objective,
    ObjectivePart,
    Part,
    Problem,
    Surrogate,
    Values,
    places,
)
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import HULL
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.batch import Batch, pinned
from mlestruct.structures.entropy import Rho
from mlestruct.structures.graph import FactorGraph, only_graphs

Doubt = Callable[[int], str]
"""Why the objective proves nothing, with inference stalled on so many examples."""
Heads = Callable[[Batch[Any], Features], Mapping[str, Head]]


def scored(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """One score per coordinate, and the batch's bias."""
    return {"score": Head(features, batch.bias)}


@dataclass(frozen=True)
class Primal(Learns):
    """min over θ of R(θ) + Σ w_m ℓ_m(θ), by L-BFGS with bounds, λ per group and l1.

    The gap is Fenchel's for R: it bounds the error of a convex objective whose gradient is exact.
    Elsewhere ``doubt`` says why nothing is certified. Descents are begun anew ``restarts`` times at
    most; ``steps`` makes others, of a part: :func:`by_slopes` where the gradient is
    not the value's own. θ holds the weights of all ``heads``,
    one after the other, and starts where ``begin`` says (default: the regulariser's optimum). Of
    ``solver`` it takes ``tol``, ``rounds``, ``seconds``, ``workers`` and ``engine``.
    """

    name: str
    objective: Callable[[Batch[Any]], Objective | Surrogate]
    polytope: str
    bound: str
    regulariser: float | Regulariser = 1.0
    solver: FrankWolfe = field(default=FrankWolfe())
    doubt: Doubt | None = None
    restarts: int = 0
    steps: Callable[[Part], Callable[..., LBFGS]] | None = None
    heads: Heads = scored
    begin: Callable[[Batch[Any], Features], Array] | None = None
    inference: Inference = DEFAULT
    """What its models predict with."""
    partly: Literal["", "summed", "seen"] = ""
    """How it learns from outcomes of which a part was seen, if it does: ``summed`` over the rest,
    ℓ being log Z less its observed score; or its objective makes do with the tables ``seen``."""
    dear: bool = True
    """Whether an evaluation takes so long that L-BFGS may keep more steps to need fewer."""

    def run(self, batch: Batch[Any], features: Features, loop: Loop, start: Start) -> Found:
        """By descent; of partly seen outcomes on all less those that agree with what was seen."""
        check_problem(self.name, batch, features, partly=self.partly != "")
        batch = only_seen(batch) if self.partly == "seen" else batch
        heads, objective = self.heads(batch, features), self.objective(batch)
        ridge = _ridge(self.regulariser, heads)

        def part_of(one: Batch[Any]) -> Part:
            of = self.objective(one) if batch.partly else objective
            if isinstance(of, Surrogate):
                bias = np.broadcast_to(heads["score"].bias, batch.size)
                known = heads["score"].features
                return LikelihoodPart(batch=one, features=known, bias=bias, routine=of.routine)
            return ObjectivePart(batch=one, objective=of, heads=heads)

        part = part_of(batch)
        if batch.partly:
            more, less = (replace(b, target=np.zeros(b.size)) for b in (batch, pinned(batch)))
            part = Difference(batch=batch, more=part_of(more), less=part_of(less))
        alone = list(heads) == ["score"] and not heads["score"].exponential
        rows = heads["score"].features if alone else None  # entropies are of one kind
        kind = LBFGS if self.steps is None else self.steps(part)
        steps = descents(batch, rows, ridge, dear=self.dear, kind=kind)
        engine = engine_of(self.solver.engine, self.solver.workers)
        problem = PrimalProblem(part, ridge, engine, steps, restarts=self.restarts)
        problem.learner, problem.partly = self, batch.partly
        problem.others = {name: one for name, one in places(heads).items() if name != "score"}
        if isinstance(start, Found):
            start = start.theta
        elif start is None and self.begin is not None and loop.state is None:
            start = self.begin(batch, features)
        return minimise(problem, loop, start)

    def of_seen(self, tol: float) -> Learns:
        """The learner itself where its objective knows what to do; else it is refused."""
        summed = self.partly == "summed" and self.steps is None
        return self if summed or self.partly == "seen" else super().of_seen(tol)


class PrimalProblem(Problem):
    """The sum of a primal learner's objective, of which nothing but Fenchel's gap is known."""

    learner: Primal
    partly: bool

    def claim(self, value: float, gap: float) -> Certificate:
        doubt, polytope, bound = self.learner.doubt, self.learner.polytope, self.learner.bound
        doubts = ["with labels missing it is not convex"] if self.partly else []
        doubts += [] if doubt is None else [doubt(self.stalled)]
        if not doubts:
            return Certificate(gap, 0.0, -value, polytope, bound)
        return Certificate(np.inf, 0.0, -value, polytope, bound, "; ".join(doubts))


def _ridge(given: float | Regulariser, heads: Mapping[str, Head]) -> Regulariser:
    """The regulariser of all heads; one for the scores alone gives others its mean λ."""
    each = {name: head.features.d for name, head in heads.items()}
    total = sum(each.values())
    if not isinstance(given, Regulariser) or len(given) == total or len(given) != each["score"]:
        return ridge_of(given, total)
    more = Regulariser.of(total - len(given), float(given.lam.mean()))
    parts = zip(astuple(given), astuple(more), strict=True)
    return Regulariser(*(np.concatenate(pair) for pair in parts))


def only_seen(batch: Batch[Any]) -> Batch[Any]:
    """Labelled graphs whose tables are 0 in the target where a variable of theirs was not seen.

    A label that is known to be one of several was not.
    """
    if batch.target is None or not batch.partly:
        return batch
    only_graphs(batch.structures, "an objective of what was seen")
    target = np.nan_to_num(batch.target)
    for structure, members in batch.groups():
        entry, node, _ = structure.below
        order = np.bincount(entry, minlength=structure.size)
        for m in members:
            own = target[batch.coordinates(m)]
            met = np.bincount(entry, weights=own[node], minlength=structure.size)
            own[order > 0] = (met == order)[order > 0]
    return replace(batch, target=target)


def refuse(name: str, route: str, **unused: Any) -> None:
    """A ValueError for settings that a primal learner would not heed."""
    for setting, value in unused.items():
        if value is not None:
            raise ValueError(f"{name} has no use for {setting}={value!r}")
    if route not in ("auto", "direct"):
        raise ValueError(f"{name} has a direct route only, not route={route!r}")


def exact_mle(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    memory: float = MEMORY,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ − log Z(θ, x_m)] − R(θ), log Z exact; a ValueError says what is too wide.

    ``memory`` in GiB bounds the tables of one structure; ``settings`` are those of
    :class:`Primal`.
    """
    refuse("exact_mle", route, rho=rho, oracle=oracle)
    words = (HULL, "exact (every outcome is summed)")
    sums, recipe = ExactSums(memory), Summed(memory)
    ends = {"inference": recipe, "partly": "summed", **settings}
    return Primal("exact_mle", lambda batch: Surrogate(sums), *words, **ends)


def lbp(
    rho: Rho = None,
    oracle: Any = None,
    route: str = "auto",
    restarts: int = 10,
    **settings: Any,
) -> Primal:
    """Σ_m [⟨θ, φ_m⟩ + F_Bethe at belief propagation's fixed point] − R(θ): a double loop.

    A ``rho`` other than 1, the default, reweights messages. Where messages do not converge in
    ``sweeps`` sweeps, or jump between fixed points, values and gradients are those of no function:
    L-BFGS then stops, and begins again, at most ``restarts`` times, with messages that start cold
    at every evaluation. ``settings`` are those of :class:`Primal`, and ``schedule``, ``damping``,
    ``sweeps`` and ``residual`` of :class:`mlestruct.inference.choose.Propagation`.
    """
    refuse("lbp", route, oracle=oracle)
    sent = {f.name: settings.pop(f.name) for f in fields(Propagation) if f.name in settings}
    recipe = Propagation(1.0 if rho is None else rho, **sent)

    def objective(batch: Batch[Any]) -> Surrogate:
        return Surrogate(recipe.routine(batch))

    def doubt(stalled: int) -> str:
        return f"fixed points of belief propagation bound nothing ({stalled} examples had none)"

    words = ("local polytope", "none (belief propagation)")

    def heads(batch: Batch[Any], features: Features) -> dict[str, Head]:
        return scored(*weighed(batch, features))

    ends: dict[str, Any] = {"restarts": restarts, "inference": recipe, "partly": "summed"}
    return Primal("lbp", objective, *words, doubt=doubt, heads=heads, **{**ends, **settings})


class Conditionals(NamedTuple):
    """Scores of all states of the kept variables given the others: G @ scores."""

    G: sp.csr_array
    start: Ints
    table: Ints
    """Every state's place among the kept variables."""
    weight: Array
    observed: Array
    closed: NDArray[np.bool_]
    """Coordinates that the structures forbid."""


def by_slopes(part: Part) -> Callable[..., LBFGS]:
    """Steps that are judged by slopes alone, for ``steps`` of a learner."""
    return partial(LBFGS, slopes=True)


@dataclass(frozen=True)
class PseudoLikelihood(Objective):
    """−Σ_m w_m Σ_i log p(y_i | the rest) for labelled graphs with factors of any order.

    A variable is unobserved where its table in the batch's target is no vertex; terms that hold
    an unobserved variable are omitted. O(Σ table sizes · order) once, then O(Σ degree · states).
    """

    def __call__(
        self, batch: Batch[Any], heads: Mapping[str, Array], warm: Any, tol: float
    ) -> Values:
        parts: Conditionals = conditionals(batch) if warm is None else warm
        score = np.where(parts.closed, -np.inf, heads["score"])
        given = parts.G @ score
        if not len(given):
            return Values(0.0, {"score": np.zeros(batch.size)}, None, parts)
        top = np.maximum.reduceat(given, parts.start)
        p = np.exp(given - top[parts.table])
        total = np.add.reduceat(p, parts.start)
        reached = given[parts.observed > 0]
        value = float(parts.weight[parts.start] @ (top + np.log(total) - reached))
        slope = parts.weight * (p / total[parts.table] - parts.observed)
        return Values(value, {"score": parts.G.T @ slope}, None, parts)


def conditionals(batch: Batch[Any]) -> Conditionals:
    """Which coordinates add up to each state's score, given the observed states around it."""
    assert batch.target is not None
    only_graphs(batch.structures, "pseudo-likelihood")
    rows, columns, states = [], [], []
    closed = np.zeros(batch.size, dtype=bool)
    for structure, members in batch.groups():
        for m in members:
            part, first = batch.coordinates(int(m)), batch.offsets[m]
            at, node, kept = _of(structure, batch.target[part])
            rows.append(first + node)
            columns.append(first + at)
            states.append(first + kept)
            closed[part] = structure.fixed == 0
    own = np.sort(np.concatenate(states))
    place = np.full(batch.size, -1)
    place[own] = np.arange(len(own))
    where = (place[np.concatenate(rows)], np.concatenate(columns))
    G = sp.csr_array((np.ones(len(where[0])), where), shape=(len(own), batch.size))
    start, table = _tables(batch, own)
    weight, nodes = batch.weights[own], batch.counts
    weight = weight if nodes is None else weight * nodes[own]
    return Conditionals(G, start, table, weight, batch.target[own], closed)


def _of(graph: FactorGraph, target: Array) -> tuple[Ints, Ints, Ints]:
    """(coordinate, state whose score it adds to) pairs, and the states of the kept variables."""
    first, n = int(graph.node_start[-1]), graph.n_nodes
    sure = np.bincount(graph.table_of[:first], weights=target[:first] == 1, minlength=n) == 1
    entry, node, slot = graph.below
    arity = np.diff(graph.scope_start)
    seen = np.bincount(np.repeat(np.arange(len(arity)), arity), ~sure[graph.scope], len(arity)) == 0
    kept = sure.copy()
    kept[graph.scope[np.repeat(~seen, arity)]] = False
    wrong = (target[node] != 1).astype(float)
    others = np.bincount(entry, weights=wrong, minlength=graph.size)[entry] - wrong
    use = (others == 0) & kept[graph.scope[slot]]
    own = np.flatnonzero(kept[graph.table_of[:first]])
    return np.concatenate([own, entry[use]]), np.concatenate([own, node[use]]), own


def _tables(batch: Batch[Any], own: Ints) -> tuple[Ints, Ints]:
    """Where each variable's states begin among ``own``, and the variable of each state."""
    if not len(own):
        return own, own
    table = np.concatenate([batch.structure(m).table_of for m in range(len(batch))])
    new = (np.diff(batch.owner[own]) != 0) | (np.diff(table[own]) != 0)
    start = np.flatnonzero(np.r_[True, new])
    return start, np.cumsum(np.r_[False, new])


def _heads(batch: Batch[Any], features: Features) -> dict[str, Head]:
    """Scores, where there is a term to learn from."""
    only_graphs(batch.structures, "pseudo-likelihood")
    assert batch.target is not None
    targets = (batch.target[batch.coordinates(m)] for m in range(len(batch)))
    if not any(len(_of(batch.structure(m), one)[2]) for m, one in enumerate(targets)):
        raise ValueError(
            "no label was seen together with those of all its neighbours, which is what "
            "pseudo-likelihood learns from: use mle_struct, or leave out what was not "
            "seen (unseen='left_out', where labels are missing)"
        )
    return scored(batch, features)


def pseudo_likelihood(
    rho: Rho = None, oracle: Any = None, route: str = "auto", **settings: Any
) -> Primal:
    """Σ_m Σ_i log p(y_i | the rest; θ) − R(θ): consistent where the model is true, and fast.

    Where ties are strong the weights lean on neighbours' labels, which a prediction does not have,
    and ``predict`` by ``map`` may smooth away more than it should, without a warning: compare with
    ``decision="expected"``, or learn by ``mle_struct`` or ``piecewise``.
    It asks no oracle and has no entropy, so it refuses both; ``settings`` are those of
    :class:`Primal`. Where labels are missing, terms of a variable that was not seen or is next to
    one are left out.
    """
    refuse("pseudo_likelihood", route, rho=rho, oracle=oracle)
    words = ("pseudo-likelihood", "not used")
    ends: dict[str, Any] = {"heads": _heads, "partly": "seen", "dear": False, **settings}
    return Primal("pseudo_likelihood", lambda batch: PseudoLikelihood(), *words, **ends)
