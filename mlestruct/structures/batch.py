"""Many examples as flat arrays: the unit that oracles, features and kernels work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Array, Flags, Ints, Structure, as_count, as_numbers, refuse

S = TypeVar("S", bound=Structure, covariant=True)
FORBIDDING = "to forbid a part, let the structure fix it at 0"
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
    partly: bool = field(init=False, repr=False)  # of some outcomes only a part was seen

    def __post_init__(self) -> None:
        offsets = np.zeros(len(self.which) + 1, dtype=np.int64)
        np.cumsum(np.array([s.size for s in self.structures])[self.which], out=offsets[1:])
        partly = self.target is not None and bool(np.isnan(self.target).any())
        self.__dict__.update(offsets=offsets, size=int(offsets[-1]), partly=partly)

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
        elif not isinstance(structures, Iterable):
            raise ValueError(f"a batch is of structures, not of {structures!r}")
        else:
            listed = list(structures)
            number = len(listed)
            same: dict[int, Any] = {id(one): one for one in listed}  # most examples share one
            for m, structure in enumerate(same.values()):
                if not isinstance(structure, Structure):
                    raise ValueError(f"example {m}: {structure!r} is no structure")
            distinct, which = tuple(same.values()), np.zeros(number, dtype=np.int64)
            if len(same) > 1:
                place = {structure: k for k, structure in enumerate(dict.fromkeys(distinct))}
                own = {key: place[structure] for key, structure in same.items()}
                distinct, which = tuple(place), np.array([own[id(one)] for one in listed])
        if number == 0:
            raise ValueError("a batch needs at least one example, got none")
        if outcomes is not None and len(outcomes) != number:
            raise ValueError(f"{number} examples but {len(outcomes)} outcomes")
        weights = np.ones(number) if weight is None else _weights(weight, number)
        sizes = np.array([structure.size for structure in distinct])[which]
        if not sizes.all():
            raise ValueError(f"example {sizes.argmin()} has a structure without coordinates")
        scores = np.zeros(sizes.sum()) if bias is None else _bias(bias, int(sizes.sum()))
        batch = cls(distinct, which, weights, scores)
        if outcomes is None:
            return batch
        return cls(distinct, which, weights, scores, batch._encode(outcomes))

    def _encode(self, outcomes: Sequence[Any]) -> Array:
        """Encode and check all outcomes; NaN where a partial outcome does not tell."""
        target, whole = np.empty(self.size), np.ones(len(outcomes), dtype=bool)
        first = self.offsets.tolist()
        for m, outcome in enumerate(outcomes):
            structure = self.structures[self.which[m]]
            try:
                if isinstance(outcome, Partial):
                    whole[m] = False
                    fixed = structure.clamp(outcome.observed).fixed
                    target[first[m] : first[m + 1]] = np.where(fixed < 0, np.nan, fixed)
                else:
                    target[first[m] : first[m + 1]] = structure.encode(outcome)
            except (ValueError, TypeError, IndexError) as error:
                raise ValueError(f"example {m}: {error}") from error
        for structure, members in self.groups():
            vertices = self.rows(target, members)
            outside = ~structure.contains(vertices) & whole[members]
            if outside.any():
                k = int(outside.argmax())
                why, own = "violates the structure's constraints", vertices[k]
                for j in np.flatnonzero((structure.fixed >= 0) & (structure.fixed != own))[:1]:
                    why = f"has coordinate {j} = {own[j]:g}, which the structure fixes at "
                    why += str(structure.fixed[j])
                raise ValueError(f"example {members[k]}: the outcome {why}")
        return target

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

    @property
    def counts(self) -> Array | None:
        """What every coordinate counts in learning, None where all count alike."""
        own = [structure.coordinate_weights for structure in self.structures]
        if all(weight is None for weight in own):
            return None
        each = [
            np.ones(s.size) if w is None else w for s, w in zip(self.structures, own, strict=True)
        ]
        return np.concatenate([each[k] for k in self.which])

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

    def groups(self) -> list[tuple[S, Ints]]:
        """List every distinct structure with the examples that have it."""
        if len(self.structures) == 1:
            return [(self.structures[0], np.arange(len(self.which)))]
        counts = np.bincount(self.which, minlength=len(self.structures))
        members = np.split(np.argsort(self.which, kind="stable"), np.cumsum(counts)[:-1])
        return [(s, own) for s, own in zip(self.structures, members, strict=True) if len(own)]

    def index(self, members: Ints) -> Ints | slice:
        """Flat coordinates of examples, row by row; a slice where they are adjacent."""
        if len(members) == len(self.which):
            return slice(0, self.size)
        found: Ints | slice = spans(self.offsets, members)
        return found

    def rows(self, flat: Array, members: Ints) -> Array:
        """The examples of one group as rows of a matrix."""
        own = flat if len(members) == len(self.which) else flat[self.index(members)]
        return own.reshape(len(members), -1)

    def totals(self, flat: Array) -> Array:
        """Sum over each example's coordinates."""
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


def spans(start: Ints, members: Ints) -> Any:
    """All of ``start[m]:start[m+1]``, one member after the other: a slice where they are adjacent.

    What an array has there is then a view of it.
    """
    if len(members) and (np.diff(members) == 1).all():
        return slice(int(start[members[0]]), int(start[members[-1] + 1]))
    length = np.diff(start)[members]
    shift = start[members] - np.cumsum(length) + length
    return np.arange(int(length.sum())) + np.repeat(shift, length)


def _weights(weight: ArrayLike, number: int) -> Array:
    """Copy example weights, checked."""
    values = as_numbers(weight, "example weights").reshape(-1).copy()
    if len(values) != number:
        raise ValueError(f"{len(values)} example weights for {number} examples")
    wrong = ~((values >= 10.0**-DECADES) & (values <= 10.0**DECADES))
    ends = f"it must be positive; weights lie between 1e-{DECADES} and 1e{DECADES}"
    refuse(wrong, lambda m: f"example {m} has weight {values[m]:g}; {ends}")
    return values


def _bias(bias: ArrayLike, size: int) -> Array:
    """Copy a bias, checked."""
    values = as_numbers(bias, "bias").reshape(-1).copy()
    if len(values) != size:
        raise ValueError(f"bias has {len(values)} entries for {size} coordinates")
    wrong = ~np.isfinite(values)
    refuse(wrong, lambda k: f"bias of coordinate {k} is {values[k]}; {FORBIDDING}")
    return values


def pinned(batch: Batch[Any]) -> Batch[Any]:
    """Every example restricted to what its target knows."""
    assert batch.target is not None
    known = np.where(np.isnan(batch.target), -1, batch.target).astype(np.int8)
    parts = [batch.structure(m).refix(known[batch.coordinates(m)]) for m in range(len(batch))]
    return Batch.of(parts, weight=batch.weight, bias=batch.bias)


def as_scores(problem: Batch[Any] | Structure, scores: ArrayLike) -> Array:
    """Flat scores of a structure or a batch; −inf forbids a coordinate, NaN and +inf are wrong."""
    flat = as_numbers(scores, "scores", problem.size)
    wrong = np.isnan(flat) | np.isposinf(flat)
    refuse(wrong, lambda k: f"{place_of(problem, k)} is {flat[k]}")
    return flat


def as_finite_scores(batch: Batch[Any], scores: ArrayLike) -> Array:
    """The same where −inf must be a part that the structure forbids; such parts score 0."""
    flat = as_numbers(scores, "scores", batch.size)
    if np.isfinite(flat).all():
        return flat
    barred = np.isneginf(as_scores(batch, flat))
    wrong = barred & (batch.fixed != 0)
    refuse(wrong, lambda k: f"{place_of(batch, k)} is -inf; {FORBIDDING}")
    return np.where(barred, 0.0, flat)


def place_of(problem: Batch[Any] | Structure, k: int) -> str:
    """Name a coordinate's score, and its example."""
    if isinstance(problem, Structure):
        return f"score of coordinate {k}"
    m = int(problem.owner[k])
    return f"example {m}: score of coordinate {k - problem.offsets[m]}"
