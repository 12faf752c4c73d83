"""Reweighted sum-product: maximises ⟨score, τ⟩ + H(τ) over the local polytope by messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.errors import Infeasible, Unserved
from mlestruct.inference.layouts import boxes, plan, special
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
    bound_messages,
    fit_tables,
    send_messages,
)
from mlestruct.storage.trees import Tree, like
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.batch import Batch
from mlestruct.structures.entropy import Entropy
from mlestruct.structures.graph import FactorGraph

LOCAL = "local polytope"
SCHEDULES = ("sequential", "flooding", "residual")
STALLED = 1e-7  # a residual that costs less than rounding, its square, is no reason to take over
APART, FAR = 1e-5, 10.0  # what marginals may differ by where messages stand, and of ``residual``
PATIENCE, LARGE = 64, 20_000  # times the sweeps of a run is the longest, beyond so many messages
HUGE = 100_000  # messages: beyond, Newton's systems would take gigabytes
NARROW = 150.0  # range of tables whose messages are log-odds, as in native/include/factors.h
CREEP = 1e-7  # what messages that hardly move may still leave, relative to the value
SURE = 1e-12  # relative: a bound so near leaves nothing that Newton's steps could gain
LEAST = 1e-3  # counting numbers below this make messages crawl: Frank-Wolfe serves them


class CompiledMessages(NamedTuple):
    """What one structure with its counting numbers needs in every call."""

    plan: MessageGraph
    special: BinaryMessages | PairMessages | None
    counting: Array

    def narrow(self, score: Array) -> bool:
        """Whether messages of these scores are kept as log-odds, where they may be."""
        plan, nodes = self.plan, self.plan.node_start[-1]
        start = plan.table_start[:-1] - nodes
        top, low = (f.reduceat(score[nodes:], start) for f in (np.maximum, np.minimum))
        return bool(((top - low) <= NARROW * plan.counts).all())

    def shares(self, structure: FactorGraph) -> Array:
        """What every slot's factor pays towards its node's counting number."""
        return _paid(structure, self.counting.tobytes())


class WarmMessages(NamedTuple):
    """Messages and log-beliefs of one group of equal structures, for the next call."""

    message: Array
    belief: Array
    residual: Array
    sweeps: Ints

    def at(self, rows: Ints | slice) -> WarmMessages:
        """Those of some examples: copies by number, by a slice written to where they are."""
        return WarmMessages._make(kept[rows] for kept in self)

    def native(self) -> MessageState:
        """Return the arrays as the kernels take them."""
        (count, messages), beliefs = self.message.shape, self.belief.shape[1]
        return MessageState(
            count, messages, beliefs, self.message, self.belief, self.residual, self.sweeps
        )

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

    counting: dict[FactorGraph, Array] = field(repr=False)
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
        counting = dict(zip(entropy.batch.structures, entropy.counting, strict=True))
        for structure, numbers in counting.items():
            _refuse(structure, numbers)
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
        return found if all(boxes(s, found.ready(s).plan) for s in shut) else None

    def ready(self, structure: FactorGraph) -> CompiledMessages:
        """With the numbers that are its own here."""
        return _compiled(structure, self.counting[structure].tobytes())

    def many(self, batch: Batch[FactorGraph], scores: Array, warm: Any = None) -> Beliefs:
        """Starts from the messages of the call whose ``warm`` is given."""
        scores = batch.vector(scores, "scores")
        tau, log_z = np.empty(batch.size), np.empty(len(batch))
        kept = {}
        for structure, members in batch.groups():
            ready = self.ready(structure)
            state = _start(ready.plan, len(members), None if warm is None else warm.get(structure))
            offsets = batch.offsets[members]
            part = np.empty(len(members))
            for some in parts(len(members)):
                now = state.at(some)
                part[some] = self._send(ready, offsets[some], scores, tau, now)
            lost = np.flatnonzero(self._astray(state))
            if warm is not None and len(lost) and not late():
                cold = _start(ready.plan, len(lost), None)
                part[lost] = self._send(ready, offsets[lost], scores, tau, cold)
                state.put(lost, cold)
            kept[structure] = state
            if self.takeover:
                for k in self._patiently(structure, offsets, scores, tau, state, part):
                    if late():
                        break
                    here = batch.coordinates(members[k])
                    one = state.at(slice(k, k + 1))
                    part[k] = self._settle(structure, scores[here], tau[here], one, part[k])
            log_z[members] = part
        if not np.isfinite(log_z).all():
            m = int(np.flatnonzero(~np.isfinite(log_z))[0])
            raise Infeasible(f"example {m}: no locally consistent point has a finite score")
        return Beliefs(log_z, tau, kept)

    def _send(
        self, ready: CompiledMessages, at: Ints, scores: Array, tau: Array, state: WarmMessages
    ) -> Array:
        """Sweeps from these messages, which are overwritten: log Z of every example."""
        log_z, special = np.empty(len(at)), ready.special
        most = turns(self.sweeps, len(at) * int(ready.plan.table_start[-1]))
        schedule = SCHEDULES.index(self.schedule)
        how = MessageSchedule(schedule, self.damping, self.residual, most)
        examples = MessageExamples(len(at), len(scores), at, scores)
        results = MessageResults(len(at), len(tau), tau, log_z)
        pairs = special if isinstance(special, PairMessages) else None
        binary = special if isinstance(special, BinaryMessages) else None
        send_messages(ready.plan, pairs, binary, examples, how, state.native(), results)
        return log_z

    def _patiently(
        self,
        structure: FactorGraph,
        at: Ints,
        scores: Array,
        tau: Array,
        state: WarmMessages,
        log_z: Array,
    ) -> Ints:
        """Examples that end short, however long they are left to move.

        Each time with twice as many sweeps, up to ``PATIENCE`` times, as long as that halves what
        they lack: on a large graph that costs far less than Newton's steps.
        """
        longer, slow = self, np.flatnonzero(self._short(structure, at, scores, state, log_z))
        tried, most = slow, PATIENCE if self.ready(structure).plan.place[-1] > LARGE else 1
        while len(slow) and longer.sweeps < most * self.sweeps and not late():
            longer = replace(longer, sweeps=2 * longer.sweeps)
            fresh = state.at(slow)
            log_z[slow] = longer._send(self.ready(structure), at[slow], scores, tau, fresh)
            halved = fresh.residual <= state.residual[slow] / 2
            state.put(slow, fresh)
            slow = slow[halved & (fresh.residual > self.residual)]
        return tried[self._short(structure, at[tried], scores, state.at(tried), log_z[tried])]

    def _settle(
        self,
        structure: FactorGraph,
        score: Array,
        tau: Array,
        state: WarmMessages,
        value: float,
    ) -> float:
        """Go on from one example's sweeps by Newton's method, in place; return its log Z."""
        ready = self.ready(structure)
        plan, odds = ready.plan, isinstance(ready.special, BinaryMessages) and ready.narrow(score)
        if plan.place[-1] > HUGE or not boxes(structure, plan):
            return value
        start = _logs(plan, state) if odds else (state.message[0], state.belief[0])
        message, belief, found, lacks = settle(structure, ready.counting, score, plan.open, start)
        fit_tables(plan, found)
        inside = found > 0
        some = found[inside]
        reached = float(score @ found - (plan.coefficient[inside] * some) @ np.log(some))
        if not reached > value - SURE * abs(value):
            return value
        if odds:
            message, belief = _odds(plan, message, belief)
        state.message[0, : len(message)], state.belief[0, : len(belief)] = message, belief
        state.residual[0], tau[:] = lacks, found
        return reached

    def _astray(self, state: WarmMessages) -> NDArray[np.bool_]:
        """Where messages stand still and tables disagree with nodes all the same.

        Of large scores a sum keeps the largest term alone, and what would move messages is lost.
        """
        return (state.residual > max(self.residual, STALLED)) & (state.sweeps < self.sweeps)

    def _short(
        self, structure: FactorGraph, at: Ints, scores: Array, state: WarmMessages, log_z: Array
    ) -> NDArray[np.bool_]:
        """Where sweeps ended before the messages did, and that matters: many small moves add up."""
        stalled = state.residual > max(self.residual, STALLED)
        moving = (state.residual > self.residual) & ~stalled
        if not (moving | stalled).any():
            return stalled
        above = self._bounds(structure, at, scores, state)
        room = (above - log_z) / (1.0 + np.abs(log_z))
        return np.asarray((stalled & ~(room <= SURE)) | (moving & (room > CREEP)))

    def stalled(self, warm: dict[FactorGraph, WarmMessages]) -> int:
        """Examples whose messages still moved when their sweeps were spent."""
        return sum(int((state.residual > self.residual).sum()) for state in warm.values())

    def pack(self, warm: dict[FactorGraph, WarmMessages]) -> Tree:
        return [tuple(state) for state in warm.values()]

    def unpack(self, batch: Batch[FactorGraph], tree: Tree) -> dict[FactorGraph, WarmMessages]:
        groups = list(batch.groups())
        cold = {one: _start(self.ready(one).plan, len(members), None) for one, members in groups}
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
        scores = batch.vector(scores, "scores")
        out = np.empty(len(batch))
        for structure, members in batch.groups():
            at = batch.offsets[members]
            out[members] = self._bounds(structure, at, scores, warm[structure])
        return out

    def _bounds(
        self, structure: FactorGraph, at: Ints, scores: Array, state: WarmMessages
    ) -> Array:
        ready, out = self.ready(structure), np.empty(len(at))
        examples = MessageExamples(len(at), len(scores), at, scores)
        odds = isinstance(ready.special, BinaryMessages)
        shares = ready.shares(structure)
        bound_messages(ready.plan, examples, state.native(), shares, odds, out)
        return out


@kept
def _compiled(structure: FactorGraph, numbers: bytes) -> CompiledMessages:
    counting = np.frombuffer(numbers)
    full = plan(structure, counting)
    return CompiledMessages(full, special(structure, full), counting)


@kept
def _paid(structure: FactorGraph, numbers: bytes) -> Array:
    paid = structure.payments(np.frombuffer(numbers))
    if paid is None:
        raise ValueError("the entropy is not provably concave, so messages prove no bound")
    return paid


def _logs(plan: MessageGraph, state: WarmMessages) -> tuple[Array, Array]:
    """Return one example's messages and beliefs, kept as log-odds, as logarithms of both states."""
    message, belief = np.zeros(plan.place[-1]), np.zeros(plan.node_start[-1])
    message[plan.place[plan.around] + 1] = state.message[0, : plan.slots]
    belief[1::2] = state.belief[0, : plan.nodes]
    return message, belief


def _odds(plan: MessageGraph, message: Array, belief: Array) -> tuple[Array, Array]:
    """Return the log-odds of messages and beliefs."""
    place = plan.place[plan.around]
    return message[place + 1] - message[place], belief[1::2] - belief[::2]


def _refuse(structure: Any, counting: Array) -> None:
    if not isinstance(structure, FactorGraph):
        raise Unserved(f"sum-product runs on factor graphs, not on {type(structure).__name__}")
    factors = counting[structure.n_nodes :]
    if (factors <= 0).any():
        f = int(np.argmin(factors))
        raise Unserved(f"factor {f} counts {factors[f]:g}; sum-product needs it positive")


def _start(plan: MessageGraph, count: int, warm: WarmMessages | None) -> WarmMessages:
    """Uniform messages, or copies of the last ones."""
    if warm is not None and len(warm.message) == count:
        return WarmMessages._make(kept.copy() for kept in warm)
    message = np.zeros((count, int(plan.place[-1])))
    belief = np.zeros((count, int(plan.node_start[-1])))
    return WarmMessages(message, belief, np.zeros(count), np.zeros(count, dtype=np.int64))
