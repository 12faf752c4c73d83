"""Ways to say ρ, and entropies −Σ a t log t over views: one form for every structure and ρ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mlestruct.errors import Unserved
from mlestruct.structures.base import Array, Bound, Ints, Structure, as_numbers, kept
from mlestruct.structures.batch import Batch, spans

if TYPE_CHECKING:
    from mlestruct.structures.graph import FactorGraph
    from mlestruct.structures.matching import BipartiteMatching

FLOOR = 1e-16  # logarithms of differences are clipped here, never probabilities
TINY = 1e-300  # logarithms of coordinates, which have digits down to there


@dataclass(frozen=True)
class Counting:
    """Counting numbers that no ρ gives: one per distribution of the structure's views."""

    numbers: Callable[[Any], Array]
    words: str = "counting numbers of your own"

    def __str__(self) -> str:
        return self.words


Rho = float | ArrayLike | str | Callable[[Any], Any] | Counting | None


def uniform_trees(graph: FactorGraph) -> Array:
    """Each edge's chance to be in a uniform spanning tree: tree-reweighted, an upper bound."""
    if not graph.is_pairwise:
        raise Unserved("spanning trees need factors of two variables each")
    return graph.own_rho


def hypertree(matching: BipartiteMatching) -> float | Array:
    """½(1 + 1/n) for square perfect matchings, a theorem; by sides for one-sided ones, none."""
    rows, columns = matching.shape
    if matching.kind == "perfect":
        return 0.5 * (1 + 1 / rows)
    return np.repeat([0.5 * (1 + 1 / rows), 0.5 * (1 + 1 / columns)], [rows, columns])


def _cliques(graph: FactorGraph) -> Array:
    return np.repeat([0.0, 1.0], [graph.n_nodes, graph.n_factors])


cliques_only = Counting(_cliques, "the counting numbers of CAMEL(0)")
"""1 on factors, 0 on their separators: the entropy of CAMEL(0), concave on any graph."""

NAMES: dict[str, Rho] = {
    "bethe": 1.0,
    "independent": 0.0,
    "half": 0.5,
    "trees": uniform_trees,
    "hypertree": hypertree,
    "cliques": cliques_only,
}


def in_words(rho: Rho) -> str:
    """What a summary or a refusal calls it."""
    if rho is None:
        return "the structure's own counting numbers"
    if isinstance(rho, Counting):
        return rho.words
    if callable(rho):
        return f"ρ by {getattr(rho, '__name__', 'a function')}"
    return f"ρ = {rho}" if isinstance(rho, str) or np.ndim(rho) == 0 else "a ρ of your own"


def counting_numbers(structure: Structure, rho: Rho) -> Array:
    """The counting numbers of a structure under any way to say ρ; None is its own default."""
    given = rho
    if isinstance(rho, str):
        if rho not in NAMES:
            raise ValueError(f"no reweighting named {rho!r}; there are {', '.join(NAMES)}")
        rho = NAMES[rho]
    try:
        if isinstance(rho, Counting):
            return rho.numbers(structure)
        value = rho(structure) if callable(rho) else rho
    except AttributeError as error:
        raise Unserved(f"{in_words(given)} is not for a {type(structure).__name__}") from error
    if value is not None and not np.isfinite(as_numbers(value, "rho")).all():
        raise ValueError(f"rho={rho!r} is not finite")
    try:
        return structure.counting(value)
    except ValueError as error:
        many = f"{np.size(np.asarray(value))} numbers do not fit; give one, or one per factor of a "
        many += "graph, node of a matching or group of a structure of your own"
        why = many if "broadcast" in str(error) else str(error)
        raise Unserved(f"rho={rho!r} on a {type(structure).__name__}: {why}") from error


class Mixed(NamedTuple):
    """Views that are more than a coordinate or its complement: rows of C τ + c0, flat."""

    start: Ints  # rows of example m are start[m]:start[m+1]
    ptr: Ints  # entries of row v are ptr[v]:ptr[v+1]
    place: Ints  # flat coordinates
    value: Array
    c0: Array
    a: Array


@dataclass(frozen=True)
class StructureEntropy:
    """A structure's counting numbers, what they prove, and their compiled form on demand."""

    structure: Structure
    counting: Array
    temperature: float
    bound: Bound
    concave: bool

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Weights of coordinates and complements; lengths, places, values, c0, weights of rows."""
        numbers = self.counting if self.temperature == 1 else self.temperature * self.counting
        found = self.structure.folded(numbers)
        C = found.C
        return found.a, found.b, np.diff(C.indptr), C.indices, C.data, found.c0, found.mixed


@dataclass(frozen=True)
class Entropy:
    """H(τ) = −Σ a t log t − Σ b (1−t) log(1−t) over coordinates, plus the mixed views.

    Views that are one coordinate, or one coordinate's complement, collapse into ``a`` and ``b``;
    what is left (slacks, throughputs, copies) stays sparse. All costs O(coordinates + nnz).
    ``parts`` are the structures' counting numbers; the arrays are made when they are asked for,
    which routines that know the entropy by its numbers never do. ``gone`` marks dead views.
    """

    batch: Batch[Any]
    parts: tuple[StructureEntropy, ...]
    bound: Bound
    concave: bool
    temperature: float = 1.0
    rho: Rho = None
    gone: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

    @classmethod
    def of(
        cls,
        batch: Batch[Any],
        rho: Rho = None,
        *,
        temperature: float = 1.0,
        allow_nonconvex: bool = False,
    ) -> Entropy:
        """The structures' reweighted Bethe entropy; refuses one that is not concave.

        With ``allow_nonconvex`` it refuses none: what is found then is a stationary point.

        ``rho`` is a number, a list in the structure's own layout, a function of the structure, or
        one of ``NAMES``.
        """
        if not (np.isfinite(as_numbers(temperature, "temperature")) and temperature >= 0):
            raise ValueError(f"temperature is {temperature}; it must be finite and not negative")
        made = _known if rho is None or isinstance(rho, (float, int, str)) else _made
        parts = tuple([made(s, rho, float(temperature)) for s in batch.structures])
        wrong = [part.structure for part in parts if not part.concave]
        if wrong and not allow_nonconvex:
            raise Unserved(
                f"the entropy with {in_words(rho)} is not provably concave on this "
                f"{type(wrong[0]).__name__}, so no certificate would hold; choose a rho nearer to 0"
            )
        kinds = {part.bound.kind: part.bound for part in reversed(parts)}
        if len(kinds) == 2 and "none" not in kinds:  # one-sided bounds hold beside exact ones
            kinds.pop("exact", None)
        bound = next(iter(kinds.values()))
        if len(kinds) > 1:
            bound = Bound("none", "; ".join(sorted({str(part.bound) for part in parts})))
        return cls(batch, parts, bound, not wrong, temperature, rho)

    @property
    def counting(self) -> tuple[Array, ...]:
        """The counting numbers of every structure, without the temperature."""
        return tuple(part.counting for part in self.parts)

    @property
    def a(self) -> Array:
        """The weight of every coordinate's −t log t."""
        return self._flat[0]

    @property
    def b(self) -> Array:
        """The weight of every complement's."""
        return self._flat[1]

    @property
    def mixed(self) -> Mixed:
        """The views that are neither one coordinate nor one coordinate's complement."""
        return self._flat[2]

    @cached_property
    def _flat(self) -> tuple[Array, Array, Mixed]:
        """The views of all examples."""
        which, each = self.batch.which, [part.arrays for part in self.parts]
        a, b, lengths, index, value, c0, mixed = (
            np.concatenate([arrays[k] for k in which]) for arrays in zip(*each, strict=True)
        )
        counts = np.array([(len(part[2]), len(part[3])) for part in each])[which]
        start = np.concatenate([[0], np.cumsum(counts[:, 0])])
        ptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if self.gone is not None:
            known = zip(self.gone, (a, b, mixed), strict=True)
            a, b, mixed = (np.where(dead, 0.0, weight) for dead, weight in known)
        place = index + np.repeat(self.batch.offsets[:-1], counts[:, 1])
        return a, b, Mixed(start, ptr, place, value, c0, mixed)

    @cached_property
    def flat(self) -> bool:
        """True when there is no entropy at all (max-margin)."""
        a, b, mixed = self._flat
        return not (a.any() or b.any() or mixed.a.any())

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: nothing that is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_flat"}

    def each(self, tau: Array) -> Array:
        """H of every example."""
        (a, b, mixed), tau = self._flat, as_numbers(tau, "tau", self.batch.size)
        own = a * _x_log_x(tau)
        if b.any():
            own += b * _x_log_x(1.0 - tau)
        total = self.batch.totals(own)
        if len(mixed.a):
            views = self.mixed_matrix() @ tau + mixed.c0
            owner = np.repeat(np.arange(len(total)), np.diff(mixed.start))
            total += np.bincount(owner, mixed.a * _x_log_x(views), len(total))
        return -total

    def grad(self, tau: Array) -> Array:
        """∇H(τ); logarithms clipped at 1e-300 for coordinates, 1e-16 for differences."""
        t, rest, views = self.views(tau)
        out = -self.a * (np.log(np.maximum(t, TINY)) + 1.0)
        if self.b.any():
            out += self.b * (np.log(np.maximum(rest, FLOOR)) + 1.0)
        if len(weight := self.mixed.a):
            out -= self.mixed_matrix().T @ (weight * (np.log(np.maximum(views, FLOOR)) + 1.0))
        return out

    def mixed_matrix(self) -> sp.csr_array:
        mixed = self.mixed
        shape = (len(mixed.a), self.batch.size)
        return sp.csr_array((mixed.value, mixed.place, mixed.ptr), shape=shape)

    def views(self, tau: Array) -> tuple[Array, Array, Array]:
        """(coordinates, complements, mixed views) of τ."""
        tau, c0 = as_numbers(tau, "tau", self.batch.size), self._flat[2].c0
        return tau, 1.0 - tau, self.mixed_matrix() @ tau + c0 if len(c0) else c0

    def drop(
        self, coordinates: NDArray[Any], complements: NDArray[Any], mixed: NDArray[Any]
    ) -> Entropy:
        """The entropy without these (dead) views."""
        if not (coordinates.any() or complements.any() or mixed.any()):
            return self
        dead = coordinates, complements, mixed
        if self.gone is not None:
            dead = tuple(one | other for one, other in zip(dead, self.gone, strict=True))
        return replace(self, gone=dead)

    def select(self, batch: Batch[Any], members: Ints) -> Entropy:
        """The entropy of some examples, which ``batch`` holds: the whole's select(members)."""
        parts, gone = tuple(self.parts[k] for k in np.unique(self.batch.which[members])), None
        if self.gone is not None:
            flat, rows = spans(self.batch.offsets, members), spans(self.mixed.start, members)
            gone = self.gone[0][flat], self.gone[1][flat], self.gone[2][rows]
        return replace(self, batch=batch, parts=parts, gone=gone)

    def perturbs(self) -> NDArray[np.bool_]:
        """The coordinates whose score the gradient changes."""
        a, b, mixed = self._flat
        touched = (a != 0) | (b != 0)
        touched[mixed.place[np.repeat(mixed.a != 0, np.diff(mixed.ptr))]] = True
        return touched


def _x_log_x(t: Array) -> Array:
    return np.asarray(np.maximum(t, 0.0) * np.log(np.maximum(t, TINY)))


def _made(structure: Structure, rho: Rho, temperature: float) -> StructureEntropy:
    """A structure's entropy, which it keeps by its counting numbers."""
    counting = counting_numbers(structure, rho)
    if not np.isfinite(counting).all():
        raise ValueError(f"{in_words(rho)} gives counting numbers that are not finite")
    return _of_numbers(structure, counting.tobytes(), temperature)


_known = kept(_made)


@kept
def _of_numbers(structure: Structure, numbers: bytes, temperature: float) -> StructureEntropy:
    counting = np.frombuffer(numbers)
    concave = temperature == 0 or structure.convex(counting)
    bound = structure.bound(counting) if temperature == 1 else Bound("none", f"T = {temperature:g}")
    return StructureEntropy(structure, counting, temperature, bound, bool(concave))
