"""Reweighted sum-product: maximises ⟨score, τ⟩ + H(τ) over the local polytope by messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numba as nb
import numpy as np

from mlestruct.batch import Batch
from mlestruct.entropy import Entropy
from mlestruct.errors import Infeasible
from mlestruct.inference import convergent
from mlestruct.inference.feasible import fit_all, value
from mlestruct.inference.log_odds import RANGE, pair_tables, ratios, run_pairs
from mlestruct.inference.message_kernels import run, tables
from mlestruct.inference.message_plan import Pairs, Plan, pairs, plan
from mlestruct.inference.messages import Beliefs
from mlestruct.structures.base import Array, Ints
from mlestruct.structures.graph import FactorGraph

SCHEDULES = ("sequential", "flooding", "residual")
LEAST = 1e-3  # counting numbers below this make messages crawl: Frank-Wolfe serves them


class Ready(NamedTuple):
    """What one structure with its counting numbers needs in every call."""

    plan: Plan
    pairs: Pairs | None
    coefficient: Array
    counting: Array


class Messages(NamedTuple):
    """Messages and log-beliefs of one group of equal structures, for the next call."""

    message: Array
    belief: Array
    residual: Array
    sweeps: Ints


@dataclass(frozen=True)
class SumProduct:
    """Any factor graph, any counting numbers with c_α > 0 and c_i + Σ c_α > 0.

    ``schedule``: ``sequential`` (node after node, forwards and backwards), ``flooding`` (all at
    once) or ``residual`` (nodes whose neighbours hardly moved wait). Sweeps stop when no
    log-belief moves by more than ``tol``; damping starts at ``damping`` and grows where the
    residual stalls. Each τ is feasible, and ``log_z`` the surrogate's value there: never above
    its maximum, and short of it by the square of the residual. Where messages do not converge,
    and ``takeover`` allows it, :func:`mlestruct.inference.convergent.ascend` goes on from their
    τ. O(Σ table sizes · order) per sweep.
    """

    counting: dict[FactorGraph, Array] = field(repr=False)
    schedule: Literal["sequential", "flooding", "residual"] = "sequential"
    damping: float = 0.0
    tol: float = 1e-10
    sweeps: int = 1000
    takeover: bool = True
    _ready: dict[FactorGraph, Ready] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is {self.schedule!r}; it must be one of {SCHEDULES}")
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping is {self.damping}; it must be at least 0 and below 1")

    @classmethod
    def of(cls, entropy: Entropy, **settings: Any) -> SumProduct:
        """For this entropy, concave or not; with cycles at ρ = 1 this is belief propagation."""
        counting = dict(zip(entropy.batch.structures, entropy.counting, strict=True))
        for structure, numbers in counting.items():
            _refuse(structure, numbers)
        takeover = settings.pop("takeover", True) and entropy.concave
        return cls(counting, takeover=takeover, **settings)

    @classmethod
    def serve(cls, entropy: Entropy) -> SumProduct | None:
        """Factor graphs with a concave entropy, nothing fixed, factors counting at least 0.001.

        Where messages stall, the repair of τ knows no forbidden entries: those are Frank-Wolfe's.
        """
        for structure, numbers in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not isinstance(structure, FactorGraph) or not entropy.concave:
                return None
            if (numbers[structure.n_nodes :] < LEAST).any() or (structure.fixed >= 0).any():
                return None
        return cls.of(entropy)

    def ready(self, structure: FactorGraph) -> Ready:
        """Compiled once per structure."""
        if structure not in self._ready:
            numbers = self.counting[structure]
            full = plan(structure, numbers)
            coefficient = np.ascontiguousarray(numbers[structure.table_of])
            self._ready[structure] = Ready(full, pairs(full), coefficient, numbers)
        return self._ready[structure]

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Starts from the messages of the call whose ``warm`` is given."""
        tau, log_z = np.empty(batch.size), np.empty(len(batch))
        kept = {}
        for structure, members in batch.groups():
            ready = self.ready(structure)
            state = _start(ready.plan, len(members), None if warm is None else warm.get(structure))
            part = np.empty(len(members))
            schedule = SCHEDULES.index(self.schedule)
            how = (schedule, self.damping, self.tol, self.sweeps)
            offsets = batch.offsets[members]
            fixed = (ready.coefficient, ready.plan, ready.pairs)
            _solve(offsets, scores, how, tau, part, *state, *fixed)
            kept[structure] = state
            log_z[members] = part
            if self.takeover:
                for m in members[state.residual > self.tol]:
                    here = batch.coordinates(m)
                    tau[here], log_z[m] = convergent.ascend(
                        structure, ready.plan, ready.coefficient, scores[here], tau[here]
                    )
        if not np.isfinite(log_z).all():
            m = int(np.flatnonzero(~np.isfinite(log_z))[0])
            raise Infeasible(f"example {m}: no locally consistent point has a finite score")
        return Beliefs(log_z, tau, kept)


def _refuse(structure: Any, counting: Array) -> None:
    if not isinstance(structure, FactorGraph):
        raise ValueError(f"sum-product runs on factor graphs, not on {type(structure).__name__}")
    factors = counting[structure.n_nodes :]
    if (factors <= 0).any():
        f = int(np.argmin(factors))
        raise ValueError(f"factor {f} counts {factors[f]:g}; sum-product needs it positive")


def _start(plan: Plan, count: int, warm: Messages | None) -> Messages:
    """Uniform messages, or copies of the last ones."""
    if warm is not None and len(warm.message) == count:
        kept = (warm.residual.copy(), warm.sweeps.copy())
        return Messages(warm.message.copy(), warm.belief.copy(), *kept)
    message = np.zeros((count, int(plan.place[-1])))
    belief = np.zeros((count, int(plan.node_start[-1])))
    return Messages(message, belief, np.zeros(count), np.zeros(count, dtype=np.int64))


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _solve(
    offsets: Any, scores: Any, how: Any, tau: Any, log_z: Any,
    message: Any, belief: Any, residual: Any, sweeps: Any, coefficient: Any, plan: Any, pairs: Any,
) -> None:  # fmt: skip
    size, n, widest = plan.table_start[-1], len(plan.node_start) - 1, 1
    for f in range(len(plan.counts)):
        here = plan.place[plan.scope_start[f + 1]] - plan.place[plan.scope_start[f]]
        widest = max(widest, here)
    most = 1
    for i in range(n):
        most = max(most, plan.node_start[i + 1] - plan.node_start[i])
    gauge, table = np.empty(widest + 2 * most), np.empty(size - plan.table_start[0])
    ratio = np.empty((len(plan.around), 4))
    for m in range(len(offsets)):
        score = scores[offsets[m] : offsets[m] + size]
        out = tau[offsets[m] : offsets[m] + size]
        narrow = False
        if pairs is not None:  # noqa: SIM102 (a type to the compiler)
            if ratios(score, ratio, pairs) <= RANGE:
                narrow = True
                # the same memory holds one log-odds where the general kernel holds two logs
                some, odds = message[m, : len(plan.around)], belief[m, :n]
                sweeps[m], residual[m] = run_pairs(  # type: ignore[call-arg]
                    score, *how, some, odds, ratio, plan.whole, pairs
                )
                pair_tables(some, odds, ratio, out, plan.table_start[0], pairs)
        if not narrow:
            sweeps[m], residual[m] = run(  # type: ignore[call-arg]  # mypy miscounts *how
                score, *how, message[m], belief[m], gauge, table, plan
            )
            tables(score, message[m], belief[m], gauge, out, plan)
        fit_all(out, plan)
        log_z[m] = value(score, out, coefficient)
