"""Reweighted sum-product: maximises ⟨score, τ⟩ + H(τ) over the local polytope by messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from mlestruct.errors import Infeasible, Unserved
from mlestruct.inference.layouts import boxes, plan, special
from mlestruct.inference.message_bounds import bounds
from mlestruct.inference.newton import settle
from mlestruct.inference.routine import Beliefs, Routine
from mlestruct.limits import late, parts, turns
from mlestruct.native._door import (
    BinaryMessages,
    MessageExamples,
    MessageGraph,
    MessageResults,
    MessageSchedule,
    MessageState,
    PairMessages,
    fit_tables,
    send_messages,
)
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints, as_numbers, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.graph import FactorGraph

LOCAL = "local polytope"
SCHEDULES = ("sequential", "flooding", "residual")
STALLED = 1e-7  # a residual that costs less than rounding, its square, is no reason to take over
HUGE = 100_000  # messages: beyond, Newton's systems would take gigabytes
PATIENCE = 64  # times the sweeps of a run is the longest there
CREEP = 1e-7  # what messages that hardly move may still leave, relative to the value
SURE = 1e-12  # relative: a bound so near leaves nothing that Newton's steps could gain
LEAST = 1e-3  # counting numbers below this make messages crawl: Frank-Wolfe serves them


class CompiledMessages(NamedTuple):
    """What one structure with its counting numbers needs in every call."""

    plan: MessageGraph
    pairs: PairMessages | None
    binary: BinaryMessages | None
    counting: Array


class WarmMessages(NamedTuple):
    """Messages and log-beliefs of one group of equal structures, for the next call."""

    message: Array
    belief: Array
    residual: Array
    sweeps: Ints

    @classmethod
    def cold(cls, plan: MessageGraph, count: int) -> WarmMessages:
        """Uniform messages."""
        message = np.zeros((count, int(plan.place[-1])))
        belief = np.zeros((count, int(plan.node_start[-1])))
        return cls(message, belief, np.zeros(count), np.zeros(count, dtype=np.int64))

    def at(self, rows: Ints | slice) -> WarmMessages:
        """Those of some examples: copies by number, by a slice written to where they are."""
        return WarmMessages._make(kept[rows] for kept in self)

    def put(self, rows: Ints, others: WarmMessages) -> None:
        """Others' in their place."""
        for known, fresh in zip(self, others, strict=True):
            known[rows] = fresh


@dataclass(frozen=True)
class SumProduct(Routine):
    """Any factor graph, any counting numbers with c_α > 0 and c_i + Σ c_α > 0.

    ``schedule``: ``sequential`` (node after node, forwards and backwards), ``flooding`` (all at
    once) or ``residual`` (nodes whose neighbours hardly moved wait). Sweeps stop when no
    log-belief moves by more than ``residual``; damping starts at ``damping`` and grows where the
    residual stalls. Each τ is feasible, and ``log_z`` the surrogate's value there: never above
    its maximum, and short of it by the square of the residual. Where messages do not converge,
    and ``takeover`` allows it, :func:`.newton.settle` goes on. O(Σ table sizes · order) per sweep.
    """

    counting: dict[FactorGraph, bytes] = field(repr=False)
    schedule: Literal["sequential", "flooding", "residual"] = "sequential"
    damping: float = 0.0
    residual: float = 1e-10
    sweeps: int = 1000
    takeover: bool = True
    first = 1e-3  # messages take it; matchings at ρ = 1 do not
    polytope = LOCAL

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is {self.schedule!r}; it must be one of {SCHEDULES}")
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping is {self.damping}; it must be at least 0 and below 1")

    @classmethod
    def of(cls, entropy: Entropy, **settings: Any) -> SumProduct:
        """For this entropy, concave or not; with cycles at ρ = 1 this is belief propagation."""
        counting = dict[FactorGraph, bytes]()
        for structure, numbers in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not isinstance(structure, FactorGraph):
                kind = type(structure).__name__
                raise Unserved(f"sum-product runs on factor graphs, not on {kind}")
            factors = numbers[structure.n_nodes :]
            if (factors <= 0).any():
                f = int(np.argmin(factors))
                raise Unserved(f"factor {f} counts {factors[f]:g}; sum-product needs it positive")
            counting[structure] = numbers.tobytes()
        takeover = settings.pop("takeover", True) and entropy.concave
        return cls(counting, takeover=takeover, **settings)

    @classmethod
    def serve(cls, entropy: Entropy) -> SumProduct | None:
        """Factor graphs with a concave entropy and factors that count at least 0.001.

        States may be fixed; configurations forbidden by themselves are Frank-Wolfe's, since the
        repair of τ does not know them.
        """
        for structure, numbers in zip(entropy.batch.structures, entropy.counting, strict=True):
            if not isinstance(structure, FactorGraph) or not entropy.concave:
                return None
            if (numbers[structure.n_nodes :] < LEAST).any():
                return None
        found = cls.of(entropy)
        shut = [s for s in found.counting if (s.fixed >= 0).any()]
        plans = ((s, compiled(s, found.counting[s]).plan) for s in shut)
        return found if all(boxes(*one) for one in plans) else None

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Starts from the messages of the call whose ``warm`` is given."""
        scores = as_numbers(scores, "scores", batch.size)
        tau, log_z, messages = np.empty(batch.size), np.empty(len(batch)), {}
        for structure, members in batch.groups():
            ready = compiled(structure, self.counting[structure])
            known = None if warm is None else warm.get(structure)
            state = WarmMessages.cold(ready.plan, len(members))
            if known is not None and len(known.message) == len(members):
                state = WarmMessages._make(numbers.copy() for numbers in known)
            at, value = batch.offsets[members], np.empty(len(members))
            most = turns(self.sweeps, len(at) * structure.size)
            for some in parts(len(members)):
                value[some] = self._send(ready, at[some], scores, tau, state.at(some), most)
            # Messages that stand still while tables disagree with nodes all the same: of large
            # scores a sum keeps the largest term alone, and what would move messages is lost.
            stuck = (state.residual > max(self.residual, STALLED)) & (state.sweeps < self.sweeps)
            lost = np.flatnonzero(stuck)
            if warm is not None and len(lost) and not late():
                cold = WarmMessages.cold(ready.plan, len(lost))
                value[lost] = self._send(ready, at[lost], scores, tau, cold, most)
                state.put(lost, cold)
            if self.takeover:
                self._take_over(structure, at, scores, tau, state, value)
            messages[structure], log_z[members] = state, value
        if not np.isfinite(log_z).all():
            m = int(np.flatnonzero(~np.isfinite(log_z))[0])
            raise Infeasible(f"example {m}: no locally consistent point has a finite score")
        return Beliefs(log_z, tau, messages)

    def _send(
        self,
        ready: CompiledMessages,
        at: Ints,
        scores: Array,
        tau: Array,
        state: WarmMessages,
        most: int,
    ) -> Array:
        """At ``most`` so many sweeps from these messages, which change: log Z of every example."""
        log_z, schedule = np.empty(len(at)), SCHEDULES.index(self.schedule)
        how = MessageSchedule(schedule, self.damping, self.residual, most)
        examples = MessageExamples(len(at), len(scores), at, scores)
        results = MessageResults(len(at), len(tau), tau, log_z)
        (count, messages), beliefs = state.message.shape, state.belief.shape[1]
        native = MessageState(count, messages, beliefs, *state)
        send_messages(*ready[:3], examples, how, native, results)
        return log_z

    def _take_over(
        self,
        structure: FactorGraph,
        at: Ints,
        scores: Array,
        tau: Array,
        state: WarmMessages,
        value: Array,
    ) -> None:
        """Go on, in place, where sweeps ended before the messages did, and that matters.

        By Newton's method; on huge graphs by twice as many sweeps, as long as that halves what
        they lack.
        """
        ready, longer = compiled(structure, self.counting[structure]), self
        stalled = state.residual > max(self.residual, STALLED)
        moving = (state.residual > self.residual) & ~stalled  # many small moves add up
        if not (moving | stalled).any():
            return
        room = (self._bounds(structure, at, scores, state) - value) / (1.0 + np.abs(value))
        slow = np.flatnonzero((stalled & ~(room <= SURE)) | (moving & (room > CREEP)))
        huge = ready.plan.place[-1] > HUGE
        while huge and len(slow) and longer.sweeps < PATIENCE * self.sweeps and not late():
            longer, fresh = replace(longer, sweeps=2 * longer.sweeps), state.at(slow)
            most = turns(longer.sweeps, len(slow) * structure.size)
            value[slow] = longer._send(ready, at[slow], scores, tau, fresh, most)
            halved = fresh.residual <= state.residual[slow] / 2
            state.put(slow, fresh)
            slow = slow[halved & (fresh.residual > self.residual)]
        if huge or not boxes(structure, ready.plan):
            return
        for k in slow:
            if late():
                return
            here, one = slice(at[k], at[k] + structure.size), state.at(slice(k, k + 1))
            value[k] = _settled(ready, structure, scores[here], tau[here], one, value[k])

    def stalled(self, warm: dict[FactorGraph, WarmMessages]) -> int:
        """Examples whose messages still moved when their sweeps were spent."""
        return sum(int((state.residual > self.residual).sum()) for state in warm.values())

    def pack(self, warm: dict[FactorGraph, WarmMessages]) -> Tree:
        return [tuple(state) for state in warm.values()]

    def unpack(self, batch: Batch[FactorGraph], tree: Tree) -> dict[FactorGraph, WarmMessages]:
        cold = {}
        for structure, members in batch.groups():
            plan = compiled(structure, self.counting[structure]).plan
            cold[structure] = WarmMessages.cold(plan, len(members))
        known = zip(cold, like(tree, self.pack(cold)), strict=True)
        return {structure: WarmMessages(*arrays) for structure, arrays in known}

    def coarser(self, tol: float) -> SumProduct:
        """Newton does not go on then: that costs more than a rough value is worth."""
        if tol <= self.residual:
            return self
        return replace(self, residual=min(tol, 1e-3), takeover=False)

    def rough(self) -> SumProduct:
        """Without Newton's going on: a proof by messages does not gain from that."""
        return replace(self, takeover=False) if self.takeover else self

    def above(
        self, batch: Batch[FactorGraph], scores: Array, warm: Any, value: Array | None = None
    ) -> Array:
        """Each surrogate log Z is at most this, at any messages: ``warm`` of a call at ``scores``.

        First-order in what they lack of convergence, as ``log_z`` is not. O(Σ tables · order).
        """
        scores, out = as_numbers(scores, "scores", batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            at = batch.offsets[members]
            out[members] = self._bounds(structure, at, scores, warm[structure])
        return out

    def _bounds(
        self, structure: FactorGraph, at: Ints, scores: Array, state: WarmMessages
    ) -> Array:
        ready = compiled(structure, self.counting[structure])
        paid = _paid(structure, self.counting[structure])
        score = scores[at[:, None] + np.arange(structure.size)]
        return bounds(structure, ready.plan, paid, score, state.message, state.belief)


@kept
def compiled(structure: FactorGraph, numbers: bytes) -> CompiledMessages:
    counting = np.frombuffer(numbers)
    full = plan(structure, counting)
    return CompiledMessages(full, *special(structure, full), counting)


@kept
def _paid(structure: FactorGraph, numbers: bytes) -> Array:
    """What every slot's factor pays towards its node's counting number."""
    paid = structure.payments(np.frombuffer(numbers))
    if paid is None:
        raise ValueError("the entropy is not provably concave, so messages prove no bound")
    return paid


def _settled(
    ready: CompiledMessages,
    structure: FactorGraph,
    score: Array,
    tau: Array,
    state: WarmMessages,
    value: float,
) -> float:
    """Go on from one example's sweeps by Newton's method, in place; return its log Z."""
    plan, start = ready.plan, (state.message[0], state.belief[0])
    message, belief, found, lacks = settle(structure, ready.counting, score, plan.open, start)
    fit_tables(plan, found)
    inside = found > 0
    some = found[inside]
    reached = float(score @ found - (plan.coefficient[inside] * some) @ np.log(some))
    if not reached > value - SURE * abs(value):
        return value
    state.message[0], state.belief[0] = message, belief
    state.residual[0], tau[:] = lacks, found
    return reached
