"""Relaxations of the contrastive paper's extra tables: blocks, trees, any polytope, samples.

Each is a callable for ``contrastive(free_energy=...)``. As states, surroundings give
pseudo-likelihood and other composite likelihoods (:class:`BlockSteps`); as marginals, trees that
are independent of each other, structured mean field (:class:`TreeSteps`).
:class:`FrankWolfeSteps` takes an oracle (Kikuchi's free energy on region graphs), and
:class:`GibbsSteps` are contrastive divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from mlestruct import Batch, Entropy, FactorGraph
from mlestruct.families.contrastive.objectives import BeforeAfter, clamped, seen
from mlestruct.inference.forests import ForwardBackward
from mlestruct.inference.layouts import neighbours
from mlestruct.inference.sampling import random_labelling, swept
from mlestruct.learning.dual import interior
from mlestruct.learning.minimise import LBFGS
from mlestruct.learning.regulariser import Regulariser
from mlestruct.oracle import Oracle, Validated, memory, remember, resolve
from mlestruct.storage.trees import Tree
from mlestruct.structures.base import Array, Ints, kept
from mlestruct.structures.entropy import Rho

CLAMPED, TOL = 1000, 1e-8  # sweeps over hidden variables until F falls no further


@dataclass(frozen=True)
class Block:
    """Some variables of a graph, joined by the factors they share; the rest lies outside.

    Entry ``used[k]`` of the graph reads entry ``into[k]`` of ``inside``, and the states of the
    variables outside that it depends on: ``outside[k]``, padded by one past the last coordinate.
    """

    nodes: Ints
    inside: FactorGraph
    used: Ints
    into: Ints
    outside: Ints

    @classmethod
    def of(cls, graph: FactorGraph, nodes: Any) -> Block:
        """The induced part; it must be a forest, so that its marginals are exact."""
        nodes = np.unique(np.asarray(nodes, dtype=np.int64))
        within = np.isin(np.arange(graph.n_nodes), nodes)
        scopes = np.split(graph.scope, graph.scope_start[1:-1])[: graph.n_factors]
        place = np.cumsum(within) - 1
        kept = [tuple(place[scope[within[scope]]].tolist()) for scope in scopes]
        orders = {tuple(sorted(part)): part for part in kept if len(part) > 1}
        inside = FactorGraph(graph.cards[nodes], list(orders.values()))
        if not inside.is_forest:
            raise ValueError(f"the block {nodes.tolist()} holds a cycle; its parts must be forests")
        number = {part: f for f, part in enumerate(orders)}
        used, into, outside = [], [], []
        for i, v in enumerate(nodes):
            used.append(np.arange(graph.node_start[v], graph.node_start[v + 1]))
            into.append(np.arange(inside.node_start[i], inside.node_start[i + 1]))
            outside.append(np.full((len(used[-1]), 0), graph.size))
        for f, (scope, part) in enumerate(zip(scopes, kept, strict=True)):
            if part:
                start = graph.table_start[f]
                table = np.arange(graph.table_start[f + 1] - start)
                states = np.stack(np.unravel_index(table, tuple(graph.cards[scope])), axis=1)
                used.append(start + table)
                into.append(_entries(inside, part, states[:, within[scope]], number))
                out = ~within[scope]
                outside.append(graph.node_start[scope[out]] + states[:, out])
        width = max(rows.shape[1] for rows in outside)
        padded = [
            np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=graph.size)
            for rows in outside
        ]
        joined = np.concatenate(used), np.concatenate(into), np.concatenate(padded)
        return cls(nodes, inside, *joined)

    def chances(self, tau: Array) -> Array:
        """(examples × used): how likely each entry's surroundings are, if independent."""
        return np.prod(np.pad(tau, ((0, 0), (0, 1)), constant_values=1.0)[:, self.outside], axis=2)

    def scores(self, scores: Array, chances: Array) -> Array:
        """(examples × entries inside): expected scores, given the surroundings."""
        with np.errstate(invalid="ignore"):  # what is impossible outside may be forbidden too
            weighed = np.where(chances > 0, scores[:, self.used] * chances, 0.0)
        return np.asarray((self._sum @ weighed.T).T)

    def around(self, graph: FactorGraph) -> Ints:
        """The variables outside that share a factor with the block."""
        out = self.outside[self.outside < graph.size]
        return np.unique(graph.table_of[out])

    @cached_property
    def _sum(self) -> sp.csr_array:
        entries = np.ones(len(self.used)), (self.into, np.arange(len(self.used)))
        return sp.csr_array(entries, shape=(self.inside.size, len(self.used)))

    def marginals(self, scores: Array) -> tuple[Array, Array]:
        """log Z and τ of the inside, exactly."""
        batch = Batch.of(self.inside, count=len(scores))
        log_z, tau, _ = ForwardBackward().many(batch, np.ascontiguousarray(scores).ravel())
        return log_z, tau.reshape(len(scores), -1)


def _entries(
    inside: FactorGraph, part: tuple[int, ...], states: Ints, number: dict[Any, int]
) -> Ints:
    """Where configurations of some variables lie inside: a node's table or a factor's."""
    if len(part) == 1:
        return inside.node_start[part[0]] + states[:, 0]
    f = number[tuple(sorted(part))]
    scope = inside.scope[inside.scope_start[f] : inside.scope_start[f + 1]].tolist()
    ordered = states[:, [part.index(v) for v in scope]]
    shape = tuple(inside.cards[scope])
    return np.asarray(inside.table_start[f] + np.ravel_multi_index(tuple(ordered.T), shape))


def expected(scores: Array, tau: Array) -> Array:
    """⟨score, τ⟩ along the last axis, where forbidden entries have no mass."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(tau > 0, scores * tau, 0.0).sum(axis=-1))


def singles(graph: FactorGraph) -> list[list[int]]:
    """Every variable alone."""
    return [[i] for i in range(graph.n_nodes)]


def trees(graph: FactorGraph) -> list[list[int]]:
    """Few disjoint blocks without cycles: each variable joins the first block that stays one."""
    start, near = neighbours(graph)
    blocks: list[list[int]] = []
    component: list[dict[int, int]] = []
    for v in range(graph.n_nodes):
        around = set(near[start[v] : start[v + 1]].tolist())
        for block, root in zip(blocks, component, strict=True):
            touched = [root[u] for u in around if u in root]
            if len(set(touched)) == len(touched):
                block.append(v)
                root.update({u: v for u in root if root[u] in touched} | {v: v})
                break
        else:
            blocks.append([v])
            component.append({v: v})
    return blocks


@dataclass(frozen=True)
class BlockSteps:
    """CF = −Σ over blocks of log p(y_block | the rest): one exact step for each from the data.

    ``blocks`` lists the variables of each block of a graph; they may overlap, and must be forests.
    Single variables give pseudo-likelihood. Blocks that hold or touch a hidden variable are
    omitted. O(blocks · their tables).
    """

    blocks: Callable[[FactorGraph], Iterable[Sequence[int]]] = singles
    exact: bool = True

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: None) -> BeforeAfter:
        def steps(graph: FactorGraph, score: Array, target: Array) -> tuple[Array, ...]:
            return _steps(_blocks(graph, self.blocks), graph, score, target)

        return _by_graph(batch, scores, steps)


def _by_graph(
    batch: Batch[FactorGraph],
    scores: Array,
    steps: Callable[[FactorGraph, Array, Array], tuple[Array, ...]],
) -> BeforeAfter:
    """``steps(graph, score, target)``, a row per example, find F_0, F_k, and the tables of both."""
    assert batch.target is not None
    values, flat = np.empty((2, len(batch))), np.empty((2, batch.size))
    for graph, members in batch.groups():
        score = np.where(graph.closed(), -np.inf, batch.rows(scores, members))
        start, end, data, tau = steps(graph, score, batch.rows(batch.target, members))
        values[:, members], flat[:, batch.index(members)] = (
            (start, end),
            (data.ravel(), tau.ravel()),
        )
    return BeforeAfter(*values, *flat)


@kept
def _blocks(
    graph: FactorGraph, blocks: Callable[[FactorGraph], Iterable[Sequence[int]]]
) -> list[Block]:
    return [Block.of(graph, nodes) for nodes in blocks(graph)]


def _steps(
    blocks: list[Block], graph: FactorGraph, score: Array, target: Array
) -> tuple[Array, Array, Array, Array]:
    """F_0, F, and the sums over blocks of their tables before and after."""
    known = np.pad(seen(graph, target), ((0, 0), (0, 1)), constant_values=True)
    start, end = np.zeros(len(score)), np.zeros(len(score))
    data, tau = np.zeros_like(score), np.zeros_like(score)
    for block in blocks:
        rows = known[:, np.unique(np.append(block.around(graph), block.nodes))].all(axis=1)
        if not rows.any():
            continue
        chance = block.chances(target[rows])
        log_z, inside = block.marginals(block.scores(score[rows], chance))
        here = np.ix_(rows, block.used)
        start[rows] -= expected(score[here], target[here])
        end[rows] -= log_z
        data[here] += target[here]
        tau[here] += chance * inside[:, block.into]
    return start, end, data, tau


@dataclass(frozen=True)
class TreeSteps:
    """Pairwise graphs, any number of labels: one block after the other to its exact best.

    ``blocks`` splits a graph's variables into disjoint forests (default: few, greedily). Within a
    block nothing is approximated, between blocks marginals multiply; F cannot rise. O(k · size).
    """

    steps: int = 10
    blocks: Callable[[FactorGraph], Sequence[Sequence[int]]] = trees
    exact: bool = False

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: Any) -> BeforeAfter:
        def steps(graph: FactorGraph, score: Array, target: Array) -> tuple[Array, ...]:
            product = Product(_product(graph, self.blocks), score, target.copy())
            product.complete(graph)
            start, data = product.free_energy(), product.tau.copy()
            for _ in range(self.steps):
                product.sweep(score)
            return start, product.free_energy(), data, product.tau

        return _by_graph(batch, scores, steps)


@kept
def _product(
    graph: FactorGraph, chosen: Callable[[FactorGraph], Sequence[Sequence[int]]]
) -> list[Block]:
    blocks = [list(nodes) for nodes in chosen(graph)]
    held = sorted(v for nodes in blocks for v in nodes)
    if not graph.is_pairwise or held != list(range(graph.n_nodes)):
        raise ValueError(
            "tree mean field needs a pairwise graph, and blocks that hold every variable once; "
            f"got {blocks}"
        )
    return [Block.of(graph, nodes) for nodes in blocks]


class Product:
    """τ = ∏ over blocks, for all examples of one graph; each block keeps its entropy."""

    def __init__(self, blocks: list[Block], score: Array, tau: Array) -> None:
        self.blocks, self.score, self.tau = blocks, score, tau
        self.entropy = np.zeros((len(blocks), len(tau)))

    def free_energy(self) -> Array:
        return -expected(self.score, self.tau) - self.entropy.sum(axis=0)

    def sweep(self, score: Array) -> None:
        """Every block to its best given the others; ``score`` may forbid more than the model."""
        for number, block in enumerate(self.blocks):
            chance = block.chances(self.tau)
            inside = block.scores(score, chance)
            log_z, best = block.marginals(inside)
            self.tau[:, block.used] = chance * best[:, block.into]
            self.entropy[number] = log_z - expected(inside, best)

    def complete(self, graph: FactorGraph) -> None:
        """Hidden variables relaxed, those seen in the target held."""
        known = np.repeat(seen(graph, self.tau), graph.cards, axis=1)
        if known.all():
            return
        first = graph.node_start[-1]
        held = self.score.copy()
        held[:, :first] = np.where(known & (self.tau[:, :first] == 0), -np.inf, held[:, :first])
        even = np.repeat(1.0 / graph.cards, graph.cards)
        self.tau[:, :first] = np.where(known, self.tau[:, :first], even)
        before = np.full(len(self.tau), np.inf)
        for _ in range(CLAMPED):
            self.sweep(held)
            reached = self.free_energy()
            if (reached >= before - TOL).all():
                return
            before = reached


RELAXED = 20  # steps of hidden variables given what was seen
MOST = 1 - 1e-3  # of the way to a vertex: slopes are infinite there
HALVINGS = 40


class InnerProblem(NamedTuple):
    """A batch with its entropy, its oracle, and a point inside."""

    batch: Batch[Any]
    entropy: Entropy
    oracle: Oracle[Any]
    inside: Array

    def free_energy(self, scores: Array, tau: Array) -> Array:
        """F = −⟨score, τ⟩ − H(τ) of every example."""
        return -self.batch.totals(scores * tau) - self.entropy.each(tau)

    def relax(self, scores: Array, tau: Array, steps: int) -> Array:
        """τ after these steps: each example by its own line search, F never rising."""
        reached = self.free_energy(scores, tau)
        for _ in range(steps):
            vertex, _ = self.oracle.many(self.batch, scores + self.entropy.grad(tau))
            delta = vertex - tau
            length = self._longest_downhill(scores, tau, delta)
            for _ in range(HALVINGS):
                moved = tau + length[self.batch.owner] * delta
                after = self.free_energy(scores, moved)
                if (after <= reached).all():
                    break
                length = np.where(after <= reached, length, 0.5 * length)
            fell = after < reached
            tau = np.where(fell[self.batch.owner], moved, tau)
            reached = np.where(fell, after, reached)
        return tau

    def _longest_downhill(self, scores: Array, tau: Array, delta: Array) -> Array:
        """The step at which F's slope turns along the line, by bisection; MOST where none does."""
        low, high = np.zeros(len(self.batch)), np.full(len(self.batch), MOST)
        length = high
        for _ in range(HALVINGS):
            slope = scores + self.entropy.grad(tau + length[self.batch.owner] * delta)
            down = self.batch.totals(slope * delta) > 0
            low, high = np.where(down, length, low), np.where(down, high, length)
            length = 0.5 * (low + high)
        return low


Problems = tuple[InnerProblem, InnerProblem | None]
"""With everything free, and with what was seen held where something is hidden."""


@dataclass(frozen=True)
class FrankWolfeSteps:
    """Any structure, any number of labels and any order, wherever an oracle answers.

    The entropy is the structure's own with counting numbers ``rho``: 1 is Bethe's, or Kikuchi's
    on region graphs; it need not be concave. Starts at (1−ε)y + εu with u inside. An oracle call
    per step and example.
    """

    steps: int = 10
    epsilon: float = 1e-2
    rho: Rho = 1.0
    oracle: Oracle[Any] | Callable[..., Any] | str | None = None
    exact: bool = False

    def __call__(self, batch: Batch[Any], scores: Array, warm: Problems | None) -> BeforeAfter:
        assert batch.target is not None
        whole, given = self._problems(batch) if warm is None else warm
        data = batch.target
        if given is not None:
            data = given.relax(scores, given.inside, RELAXED)
        begin = (1 - self.epsilon) * data + self.epsilon * whole.inside
        tau = whole.relax(scores, begin, self.steps)
        start, end = whole.free_energy(scores, begin), whole.free_energy(scores, tau)
        return BeforeAfter(start, end, data, tau, (whole, given))

    def pack(self, warm: Problems) -> Tree:
        return [None if p is None else memory(p.oracle, p.batch) for p in warm]

    def unpack(self, batch: Batch[Any], tree: Tree) -> Problems:
        warm = self._problems(batch)
        for problem, own in zip(warm, tree, strict=True):
            if problem is not None:
                remember(problem.oracle, problem.batch, own)
        return warm

    def _problems(self, batch: Batch[Any]) -> Problems:
        held = clamped(batch)
        return self._problem(batch), None if held is None else self._problem(held)

    def _problem(self, batch: Batch[Any]) -> InnerProblem:
        oracle = Validated(resolve(self.oracle, batch))
        entropy = Entropy.of(batch, self.rho, allow_nonconvex=True)
        inside = interior(batch, oracle, entropy)
        return InnerProblem(batch, inside.entropy, oracle, inside.tau)


HELD = 20  # sweeps of hidden variables given what was seen


@dataclass(frozen=True)
class GibbsSteps:
    """CD-k: τ_k is the mean of ``chains`` labellings, k sweeps from the data.

    No free energy is known of samples: F_0 and F_k are mean energies alone, which may rise.
    Noise depends on ``seed`` and the scores only. Where forbidden configurations part the
    labellings, chains stay on their side.
    """

    steps: int = 1
    chains: int = 10
    seed: int = 0
    exact: bool = False

    def __call__(self, batch: Batch[FactorGraph], scores: Array, warm: Any) -> BeforeAfter:
        assert batch.target is not None
        held = clamped(batch) if warm is None else warm[0]
        rng = np.random.default_rng([self.seed, crc32(scores.tobytes())])
        data, tau = np.empty(batch.size), np.empty(batch.size)
        for m in range(len(batch)):
            here = batch.coordinates(m)
            free, score = batch.structure(m), scores[here]
            if held is None:
                data[here] = batch.target[here]
                begin = np.tile(free.decode(data[here]), (self.chains, 1))
            else:
                given = held.structure(m)
                drawn = [random_labelling(given, score, rng) for _ in range(self.chains)]
                begin = swept(given, score, np.array(drawn), HELD, rng)
                data[here] = given.labelled(begin).mean(axis=0)
            tau[here] = free.labelled(swept(free, score, begin, self.steps, rng)).mean(axis=0)
        start, end = -batch.totals(scores * data), -batch.totals(scores * tau)
        return BeforeAfter(start, end, data, tau, (held,))


class SmallBatches(LBFGS):
    """Proximal steps on ``size`` examples at a time, drawn without replacement; a step is an epoch.

    θ ← prox(θ − η_t g) with g the mean gradient and η_t = length / (1 + length · t · λ/M) (Bottou):
    no line search, so it serves objectives whose gradient is not their value's. For ``steps`` of a
    :class:`mlestruct.learners.primal.Primal`: see :func:`small_batches`.
    """

    def __init__(
        self,
        part: Any,
        function: Any,
        theta: Array,
        regulariser: Regulariser,
        state: Tree = None,
        *,
        size: int = 32,
        length: float = 0.1,
        seed: int = 0,
        **units: Any,
    ) -> None:
        super().__init__(function, theta, regulariser)
        self.part, self.size, self.length, self.time = part, size, length, 0
        self.rng = np.random.default_rng(seed)
        if state is not None:
            self.theta, self.time, self.rng.bit_generator.state = state

    def state(self) -> Tree:
        return self.theta, self.time, self.rng.bit_generator.state

    def step(self) -> bool:
        count, theta, ridge = len(self.part.batch), self.theta, self.ridge
        lam, order = ridge.lam / count, self.rng.permutation(count)
        for first in range(0, count, self.size):
            members = np.sort(order[first : first + self.size])
            found, _ = self.part.select(members).evaluate(theta, 0.0, None)
            eta = self.length / (1.0 + self.length * self.time * float(lam.min()))
            pull = theta - eta * (found.gradient / len(members)) + eta * lam * ridge.prior
            shrunk = np.sign(pull) * np.maximum(np.abs(pull) - eta * ridge.l1 / count, 0.0)
            theta = np.clip(shrunk / (1.0 + eta * lam), ridge.lower, ridge.upper)
            self.time += 1
        self.own, self.gradient = self.function(theta)
        self.theta = theta
        return True


def small_batches(**settings: Any) -> Any:
    """``steps`` of a learner by small batches."""
    return lambda part: partial(SmallBatches, part, **settings)
