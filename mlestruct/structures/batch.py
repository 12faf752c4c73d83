"""Many examples as flat arrays: the unit that oracles, features and kernels work on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Flags, Ints, Structure, as_count, as_numbers, as_vector

S = TypeVar("S", bound=Structure, covariant=True)
DECADES = 30  # of example weights, up and down: what they multiply is squared


@dataclass(frozen=True)
class Partial:
    """An outcome of which only a part was seen: what the structure's ``clamp`` takes."""

    observed: Any

    @property
    def tells(self) -> bool:
        """Whether anything at all is known."""
        if isinstance(self.observed, Mapping):
            return len(self.observed) > 0
        known = np.asarray(self.observed)
        return bool((~known if known.dtype == bool else known >= 0).any())


@dataclass(frozen=True, eq=False)
class Batch(Generic[S]):
    """Examples with their structures; equal structures are stored once.

    Coordinates of example m are ``offsets[m]:offsets[m+1]`` of every flat array. ``target`` is
    the observed vertex (NaN where a :class:`Partial` outcome was not seen), None when only
    predicting.
    """

    structures: tuple[S, ...]
    which: Ints
    weight: Array
    bias: Array
    target: Array | None = None
    constant: Array | None = None
    offsets: Ints = field(init=False, repr=False)
    size: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = np.array([s.size for s in self.structures], dtype=np.int64)[self.which]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "size", int(offsets[-1]))

    @classmethod
    def of(
        cls,
        structures: S | Sequence[S],
        outcomes: Sequence[Any] | None = None,
        *,
        count: int | None = None,
        weight: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> Batch[S]:
        """Encode outcomes; one structure for all, or one per example.

        >>> from mlestruct.structures import BipartiteMatching
        >>> Batch.of(BipartiteMatching(2), [[0, 1], [1, 0]]).target.tolist()
        [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]
        """
        if isinstance(structures, Structure):
            given = 1 if outcomes is None else len(outcomes)
            number = given if count is None else as_count(count, "count")
            distinct: tuple[S, ...] = (structures,)
            which = np.zeros(number, dtype=np.int64)
        else:
            if not isinstance(structures, Iterable):
                raise ValueError(f"a batch is of structures, not of {structures!r}")
            place: dict[S, int] = {}
            known: dict[int, int] = {}  # most examples share the very same structure
            numbers = []
            for m, structure in enumerate(structures):
                if id(structure) not in known:
                    if not isinstance(structure, Structure):
                        raise ValueError(f"example {m}: {structure!r} is no structure")
                    known[id(structure)] = place.setdefault(structure, len(place))
                numbers.append(known[id(structure)])
            number, which = len(numbers), np.array(numbers, dtype=np.int64)
            distinct = tuple(place)
        if number == 0:
            raise ValueError("a batch needs at least one example, got none")
        if outcomes is not None and len(outcomes) != number:
            raise ValueError(f"{number} examples but {len(outcomes)} outcomes")
        sizes = np.array([structure.size for structure in distinct])[which]
        if not sizes.all():
            raise ValueError(f"example {sizes.argmin()} has a structure without coordinates")
        batch = cls(distinct, which, _weights(weight, number), _bias(bias, int(sizes.sum())))
        return batch if outcomes is None else replace(batch, target=batch._encode(outcomes))

    def _encode(self, outcomes: Sequence[Any]) -> Array:
        """All outcomes' vertices, each checked; NaN where a partial outcome does not tell."""
        target, whole = np.empty(self.size), np.ones(len(outcomes), dtype=bool)
        for m, outcome in enumerate(outcomes):
            structure, own = self.structures[self.which[m]], target[slice(*self.offsets[m : m + 2])]
            try:
                if isinstance(outcome, Partial):
                    whole[m] = False
                    fixed = structure.clamp(outcome.observed).fixed
                    own[:] = np.where(fixed < 0, np.nan, fixed)
                else:
                    own[:] = structure.encode(outcome)
            except (ValueError, TypeError, IndexError) as error:
                raise ValueError(f"example {m}: {error}") from error
        for structure, members in self.groups():
            members = members[whole[members]]
            if len(members) == 0:
                continue
            vertices = self.rows(target, members)
            inside = structure.contains(vertices)
            if not inside.all():
                k = int(inside.argmin())
                raise ValueError(f"example {members[k]}: {_why_outside(structure, vertices[k])}")
        return target

    def vector(self, values: ArrayLike, what: str) -> Array:
        """Convert a number per coordinate to the flat array that kernels take."""
        return as_vector(values, what, self.size)

    def __len__(self) -> int:
        return len(self.which)

    @cached_property
    def fixed(self) -> Flags:
        """Of every coordinate what its structure says: −1 free, 0 or 1 fixed."""
        return np.concatenate([self.structures[k].fixed for k in self.which])

    @cached_property
    def owner(self) -> Ints:
        """The example of every coordinate."""
        return np.repeat(np.arange(len(self.which)), np.diff(self.offsets))

    @property
    def weights(self) -> Array:
        """Of every coordinate the weight of its example."""
        return np.repeat(self.weight, np.diff(self.offsets))

    @cached_property
    def counts(self) -> Array | None:
        """What every coordinate counts in learning, None where all count alike."""
        each, alike = [], True
        for structure in self.structures:
            weight = structure.coordinate_weights
            alike &= weight is None
            each.append(np.ones(structure.size) if weight is None else weight)
        return None if alike else np.concatenate([each[k] for k in self.which])

    @property
    def partly(self) -> bool:
        """Of some outcomes only a part was seen: their targets are NaN elsewhere."""
        return self.target is not None and bool(np.isnan(self.target).any())

    def observed(self, flat: Array) -> Array:
        """⟨flat, target⟩ of every example. O(entries of the target that are not zero)."""
        assert self.target is not None
        flat, index = as_numbers(flat, "flat"), np.flatnonzero(self.target)
        owner = np.searchsorted(self.offsets, index, side="right") - 1
        totals = np.bincount(owner, flat[index] * self.target[index], len(self.which))
        return totals.astype(float)

    def structure(self, m: int) -> S:
        return self.structures[self.which[m]]

    def coordinates(self, m: int) -> slice:
        return slice(int(self.offsets[m]), int(self.offsets[m + 1]))

    def groups(self) -> Iterator[tuple[S, Ints]]:
        """Every distinct structure with the examples that have it."""
        for number, structure in enumerate(self.structures):
            members = np.flatnonzero(self.which == number)
            if len(members):
                yield structure, members

    def index(self, members: Ints) -> Ints | slice:
        """Flat coordinates of examples of one size, row by row; a slice where they are adjacent."""
        if len(members) == len(self.which) or (np.diff(members) == 1).all():
            return slice(int(self.offsets[members[0]]), int(self.offsets[members[-1] + 1]))
        size = self.offsets[members[0] + 1] - self.offsets[members[0]]
        return np.asarray((self.offsets[members][:, None] + np.arange(size)).ravel())

    def rows(self, flat: Array, members: Ints) -> Array:
        """The examples of one group as rows of a matrix."""
        return as_numbers(flat, "flat")[self.index(members)].reshape(len(members), -1)

    def totals(self, flat: Array) -> Array:
        """Sum over each example's coordinates."""
        flat = as_numbers(flat, "flat")
        return np.add.reduceat(flat, self.offsets[:-1])

    def select(self, members: ArrayLike) -> Batch[S]:
        """A batch of these examples, in this order: numbers (again and again too) or a mask."""
        chosen = np.arange(len(self.which))[np.asarray(members)]
        kept, which = np.unique(self.which[chosen], return_inverse=True)
        flat = spans(self.offsets, chosen)
        return Batch(
            tuple(self.structures[k] for k in kept),
            which,
            self.weight[chosen],
            self.bias[flat],
            None if self.target is None else self.target[flat],
            None if self.constant is None else self.constant[chosen],
        )

    def shards(self, count: int) -> list[Ints]:
        """Fixed contiguous shares of the examples; the same for any number of workers."""
        return np.array_split(np.arange(len(self.which)), min(count, len(self.which)))


def spans(start: Ints, members: Ints) -> Ints:
    """All of ``start[m]:start[m+1]``, one member after the other."""
    length = np.diff(start)[members]
    shift = start[members] - np.cumsum(length) + length
    return np.arange(int(length.sum())) + np.repeat(shift, length)


def _weights(weight: ArrayLike | None, number: int) -> Array:
    """Checked copy of example weights; 1 by default."""
    if weight is None:
        return np.ones(number)
    values = as_numbers(weight, "example weights").reshape(-1).copy()
    if len(values) != number:
        raise ValueError(f"{len(values)} example weights for {number} examples")
    usable = (values >= 10.0**-DECADES) & (values <= 10.0**DECADES)
    if not usable.all():
        m = int(usable.argmin())
        if not 0 < values[m] < np.inf:
            raise ValueError(f"example {m} has weight {values[m]}; it must be positive")
        raise ValueError(
            f"example {m} has weight {values[m]:g}; weights lie between 1e-{DECADES} and "
            f"1e{DECADES}"
        )
    return values


def _bias(bias: ArrayLike | None, size: int) -> Array:
    """Checked copy of a bias; 0 by default."""
    if bias is None:
        return np.zeros(size)
    values = as_numbers(bias, "bias").reshape(-1).copy()
    if len(values) != size:
        raise ValueError(f"bias has {len(values)} entries for {size} coordinates")
    if not np.isfinite(values).all():
        k = int(np.isfinite(values).argmin())
        raise ValueError(
            f"bias of coordinate {k} is {values[k]}; to forbid a part, let the structure fix it "
            "at 0"
        )
    return values


def _why_outside(structure: Structure, vertex: Array) -> str:
    broken = np.flatnonzero((structure.fixed >= 0) & (structure.fixed != vertex))
    if len(broken):
        k = int(broken[0])
        return (
            f"the outcome has coordinate {k} = {vertex[k]:g}, which the structure fixes at "
            f"{structure.fixed[k]}"
        )
    return "the outcome violates the structure's constraints"


def pinned(batch: Batch[Any]) -> Batch[Any]:
    """Every example restricted to what its target knows."""
    assert batch.target is not None
    known = np.where(np.isnan(batch.target), -1, batch.target).astype(np.int8)
    parts = [batch.structure(m).refix(known[batch.coordinates(m)]) for m in range(len(batch))]
    return Batch.of(parts, weight=batch.weight, bias=batch.bias)


def as_scores(problem: Batch[Any] | Structure, scores: ArrayLike) -> Array:
    """Flat scores of a structure or a batch; −inf forbids a coordinate, NaN and +inf are wrong."""
    flat = as_vector(scores, "scores", problem.size)
    if np.isfinite(flat).all():
        return flat
    wrong = np.flatnonzero(np.isnan(flat) | np.isposinf(flat))
    if len(wrong):
        raise ValueError(f"{_place(problem, int(wrong[0]))} is {flat[wrong[0]]}")
    return flat


def as_finite_scores(batch: Batch[Any], scores: ArrayLike) -> Array:
    """The same where −inf must be a part that the structure forbids; such parts score 0."""
    flat = as_scores(batch, scores)
    barred = np.flatnonzero(~np.isfinite(flat))
    open_ = barred[batch.fixed[barred] != 0]
    if len(open_):
        raise ValueError(
            f"{_place(batch, int(open_[0]))} is -inf; to forbid a part, let the structure fix it "
            "at 0"
        )
    return np.where(np.isneginf(flat), 0.0, flat) if len(barred) else flat


def _place(problem: Batch[Any] | Structure, k: int) -> str:
    if isinstance(problem, Structure):
        return f"score of coordinate {k}"
    m = int(problem.owner[k])
    return f"example {m}: score of coordinate {k - problem.offsets[m]}"
