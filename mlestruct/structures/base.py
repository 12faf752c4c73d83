"""What a structured output is: 0/1 coordinates, the views of its entropy, its constraints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from operator import attrgetter
from reprlib import repr as short
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.int8]
Marks = NDArray[np.bool_]
Shorts = NDArray[np.int32]
FLOAT = np.dtype(np.float64)
LARGEST_INTEGER = 2.0**53  # beyond it floats skip integers
LARGEST = 1 << 31  # coordinates of one structure
MADE = 1 << 29  # numbers that a call with a count may make: 4 GiB
FACTORISED = 1 << 25  # constraints times coordinates, at most
KEPT = 2  # answers that a structure keeps of one maker, for settings of two kinds in turn
SHORT = 10_000  # coordinates of a structure that outlives its batch
K = TypeVar("K")
R = TypeVar("R")
P = ParamSpec("P")


def kept(make: Callable[Concatenate[K, P], R]) -> Callable[Concatenate[K, P], R]:
    """What is worked out of a structure, and of hashable settings, once: the structure keeps it.

    Of answers for many settings the last two, as one may be larger than the structure. A structure
    never changes; copies of it, which do, begin with nothing, as pickles do.
    """

    @wraps(make)
    def known(structure: K, /, *settings: P.args, **named: P.kwargs) -> R:
        answers: dict[Any, R] = structure.__dict__.setdefault("_kept", {}).setdefault(make, {})
        asked = settings, tuple(named.items())
        with suppress(KeyError):  # another thread may let go of it at any time
            return answers[asked]
        for old in list(answers)[: 1 - KEPT]:
            answers.pop(old, None)
        answers[asked] = found = make(structure, *settings, **named)
        return found

    return known


@dataclass(frozen=True)
class Views:
    """The probabilities t = C τ + c0 that entropies are made of, and the distributions they form.

    ``C`` is (views × coordinates), ``D`` (views × distributions) says which views belong to which
    local distribution (a view may be in several), and each row (i, j) of ``over`` says that
    distribution j is a marginal of distribution i.
    """

    C: sp.csr_array
    c0: Array
    D: sp.csr_array
    over: Ints

    def coefficients(self, counting: ArrayLike) -> Array:
        """Entropy is −Σ a t log t with a = D c: each view inherits its distributions' numbers."""
        return np.asarray(self.D @ as_numbers(counting, "counting numbers"))


@dataclass(frozen=True)
class Folded:
    """An entropy's coefficients: a on coordinates, b on complements, ``mixed`` on rows C τ + c0."""

    a: Array
    b: Array
    C: sp.csr_array
    c0: Array
    mixed: Array


@dataclass(frozen=True)
class Bound:
    """What a surrogate log-partition function is to the exact one, and the theorem that says so."""

    kind: Literal["exact", "upper", "lower", "none"]
    why: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.why})"


@dataclass
class Constraints:
    """lo ≤ A τ ≤ hi, besides 0 ≤ τ ≤ 1 and the structure's fixed coordinates."""

    A: sp.csr_array
    lo: Array
    hi: Array

    def slack(self, tau: Array) -> Array:
        """Largest violation of a row, for every point along the leading axes of ``tau``."""
        rows = (self.A @ tau.reshape(-1, tau.shape[-1]).T).T
        worst = np.maximum(self.lo - rows, rows - self.hi).max(axis=1, initial=0.0)
        return np.asarray(worst).reshape(tau.shape[:-1])


class Structure:
    """A set of 0/1 vectors; everything the core must know of it, except how to maximise over it.

    Interface, for a structure of your own:

    - ``size``, and ``fixed``: int8 per coordinate, −1 free, 0 or 1 fixed (a clamp is only this);
    - ``encode(outcome)`` → 0/1 vector, and ``decode(vector)`` → outcome;
    - ``views()`` → :class:`Views`, ``counting(rho)`` → one counting number per distribution;
    - ``identity()``: a hashable description without ``fixed``; equal structures are stored once;

    and where it can: ``constraints()``, ``clamp(observed)``, ``loss(vertex)``, ``interior()``,
    ``convex(counting)``, ``bound(counting)``, ``folded(counting)``, ``in_hull(tau)``,
    ``impossible()``, ``levelled(scores)``, ``movable``, ``shape``, ``default_oracle``.
    """

    size: int
    fixed: Flags
    coordinate_weights: Array | None = None  # what each counts in learning; None: all alike
    odd: bool = False  # whether odd sets cut off points that keep the stated constraints
    instance: Any = None  # what a solver is handed besides the scores; see carrying
    _tag: Hashable = None

    def carrying(self, instance: Any, tag: Hashable) -> Self:
        """The structure with an example's own data, which decide what its outcomes are.

        Structures of different ``tag`` are different, as a capacity or a graph among the data can
        forbid in one example what it allows in another.
        """
        twin = copy.copy(self)
        twin.instance, twin._tag = instance, tag
        return twin

    @property
    def default_oracle(self) -> Any:
        """The solver when the user names none: a name in the catalogue, an oracle, a function."""
        return None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape in which a user's solver sees scores and returns vertices."""
        return (self.size,)

    def identity(self) -> Hashable:
        raise NotImplementedError

    @cached_property
    def key(self) -> Hashable:
        known = (type(self).__name__, self.identity(), self.fixed.tobytes())
        return known if self._tag is None else (*known, self._tag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and (self is other or self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __getstate__(self) -> dict[str, Any]:
        gone = "_kept", "key", "stated"
        return {name: value for name, value in self.__dict__.items() if name not in gone}

    def encode(self, outcome: Any) -> Array:
        raise NotImplementedError

    def decode(self, vector: ArrayLike) -> Any:
        raise NotImplementedError

    def views(self) -> Views:
        raise NotImplementedError

    def counting(self, rho: float | ArrayLike | None = None) -> Array:
        raise NotImplementedError

    def folded(self, counting: Array) -> Folded:
        """The entropy's coefficients; a structure may know them without listing its views."""
        views = self.views()
        weight, C = views.coefficients(counting), sp.csr_array(views.C)
        alone, first = np.diff(C.indptr) == 1, np.minimum(C.indptr[:-1], max(C.nnz - 1, 0))
        column, value = np.where(alone, C.indices[first], 0), np.where(alone, C.data[first], 0.0)
        plain = alone & (value == 1) & (views.c0 == 0)
        complement = alone & (value == -1) & (views.c0 == 1)
        rest = ~plain & ~complement & (weight != 0)
        a, b = (
            np.bincount(column[some], weight[some], self.size).astype(float)
            for some in (plain, complement)
        )
        return Folded(a, b, sp.csr_array(C[rest]), views.c0[rest], weight[rest])

    def constraints(self) -> Constraints | None:
        return None

    @cached_property
    def stated(self) -> Constraints | None:
        """What :meth:`constraints` says, once."""
        return self.constraints()

    def contains(self, tau: ArrayLike, tol: float = 1e-9) -> NDArray[np.bool_]:
        """True where a point (along the leading axes) satisfies every stated constraint to tol."""
        point = as_numbers(tau, "tau")
        inside = ((point >= -tol) & (point <= 1 + tol)).all(axis=-1)
        pinned = self.fixed >= 0
        if pinned.any():
            inside &= (np.abs(point[..., pinned] - self.fixed[pinned]) <= tol).all(axis=-1)
        stated = self.stated
        return np.asarray(inside if stated is None else inside & (stated.slack(point) <= tol))

    def in_hull(self, tau: ArrayLike, tol: float = 1e-8) -> NDArray[np.bool_]:
        """True where a point is a mixture of outcomes, if that takes more than the constraints."""
        return self.contains(tau, tol)

    def refix(self, fixed: Flags) -> Structure:
        """The same structure with other fixed coordinates."""
        twin = copy.copy(self)
        twin.fixed = np.require(fixed, np.int8, ["C", "A"])
        return twin

    def clamp(self, observed: Any) -> Structure:
        """The same structure restricted to the outcomes that agree with a partial observation."""
        raise NotImplementedError(f"{type(self).__name__} cannot be clamped")

    def loss(self, vertex: Array) -> tuple[Array, float]:
        """Hamming loss to ``vertex`` as (ℓ, constant): ⟨ℓ, s⟩ + constant for any vertex s."""
        vertex = as_numbers(vertex, "vertex")
        return 1.0 - 2.0 * vertex, float(vertex.sum())

    @property
    def parts(self) -> int:
        """The largest loss an outcome can have: what scores are divided by."""
        return self.size

    def right(self, target: Array, outcome: Any) -> float:
        """The share of parts that an outcome has right; ``target`` is NaN where nobody saw."""
        target = as_numbers(target, "target")
        if np.isnan(target).any():
            raise ValueError("the share of right parts is of whole outcomes: some are partial here")
        loss, constant = self.loss(target)
        return 1.0 - float(loss @ self.encode(outcome) + constant) / self.parts

    def gain(self, tau: Array) -> Array:
        """A score whose best outcome has the most parts expected right under marginals τ."""
        tau = as_numbers(tau, "tau")
        return 2.0 * tau - 1.0

    def interior(self) -> Array | None:
        """A point in the relative interior in closed form, or None: then the oracle is asked."""
        return None

    def convex(self, counting: Array) -> bool:
        """A sufficient condition for −H to be convex on the polytope (Heskes)."""
        counting = as_numbers(counting, "counting")
        from mlestruct.structures.spanning_trees import payments

        return payments(counting, self.views().over) is not None

    def bound(self, counting: Array) -> Bound:
        """What the surrogate log Z with these counting numbers is to the exact one."""
        return Bound("none", "no theorem known for this structure")

    @property
    def movable(self) -> bool:
        """Whether solvers may be asked scores less what all outcomes share.

        A user's solver may know what scores it is asked: then it may not.
        """
        return False

    def levelled(self, scores: Array) -> Array:
        """Scores (examples × coordinates × columns) less what they add to every outcome alike.

        Outcomes that all satisfy A v = b score Aᵀu the same, whatever u is. As they are where
        nothing is known of A, or it is too large to be factorised.
        """
        scores = as_numbers(scores, "scores")
        stated, free = self.stated, self.fixed < 0
        if stated is None or stated.A.shape[0] * self.size > FACTORISED:
            return scores
        rows = stated.A[np.flatnonzero(stated.lo == stated.hi)].toarray()[:, free]
        found = np.where(free[:, None], scores, 0.0)
        if not rows.any():
            return found
        _, sizes, range_ = np.linalg.svd(rows, full_matrices=False)
        basis, inner = range_[sizes > 1e-9 * sizes[0]], found[:, free]
        for _ in range(2):  # what is left of a large part is a part
            inner = inner - basis.T @ (basis @ inner)
        found[:, free] = inner
        return np.asarray(found)

    def impossible(self) -> str | None:
        """Names what makes the structure empty, where that is known."""
        return None


@lru_cache(maxsize=256, typed=True)
def small(kind: Callable[P, R], *settings: P.args, **named: P.kwargs) -> R:
    """Make a structure of little room, or return the one made of the same settings before."""
    return kind(*settings, **named)


@lru_cache(maxsize=256, typed=True)
def _first(structure: K) -> K:
    return structure


def lasting(structure: K) -> K:
    """The first of equal structures, with what it keeps, where it is ours and takes little room."""
    if not isinstance(structure, Structure) or structure.instance is not None:
        return structure
    ours = type(structure).__module__.startswith("mlestruct.")
    return _first(structure) if ours and structure.size <= SHORT else structure


def one_of(structure: Structure, *kinds: str) -> bool:
    """Whether it is of one of these classes, or extends one: by name, so that none is imported."""
    return not set(map(attrgetter("__name__"), type(structure).__mro__)).isdisjoint(kinds)


def refuse(wrong: Any, words: Callable[[int], str]) -> None:
    """Raise a ValueError about the first entry that is marked as wrong, where there is one."""
    if wrong.any():
        raise ValueError(words(int(wrong.argmax())))


def as_fixed(size: int, fixed: ArrayLike | None) -> Flags:
    """Checked copy of a user's fixed coordinates."""
    if fixed is None:
        return np.full(size, -1, dtype=np.int8)
    array = as_numbers(fixed, "fixed").reshape(-1)
    if array.shape != (size,) or not np.isin(array, (-1, 0, 1)).all():
        raise ValueError(f"fixed must hold −1, 0 or 1 for each of {size} coordinates")
    return array.astype(np.int8)


def as_numbers(values: Any, what: str, size: int | None = None) -> Array:
    """Convert real numbers to native float64 in C order; an array that is so stays as it is.

    Text, complex or masked numbers, and ragged rows are refused. Kernels load from bare pointers,
    so every public function sends its arrays through here. With ``size`` there are as many
    numbers, and they come as one flat array that kernels may write to: of a read-only one a copy.
    """
    array: Any = values
    if type(values) is np.ndarray and values.dtype.kind in "biuf":
        if values.dtype is not FLOAT or not (values.flags.c_contiguous and values.flags.aligned):
            array = np.require(values, FLOAT, ["C", "A"])
    elif type(values) is float:
        array = np.array(values)
    else:
        array = _converted(values, what)
    if size is None:
        return array
    flat: Array = array if array.ndim == 1 else array.reshape(-1)
    if len(flat) != size:
        unit = "weights" if what == "theta" else "coordinates"
        raise ValueError(f"{len(flat)} {what} for {size} {unit}")
    return flat if flat.flags.writeable else flat.copy()


def _converted(values: Any, what: str) -> Array:
    """Numbers that are no plain array of numbers: lists, frames, tensors, objects."""
    refuse_masked(values, what)
    array = values
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return np.require(array, FLOAT, ["C", "A"])
        if array.dtype.kind == "O" and not any(v is None or isinstance(v, str) for v in array.flat):
            return array.astype(FLOAT, order="C")
        why = ", ".join(filter(None, (f"dtype {array.dtype}", _strange(array))))
    except Exception as error:  # a tensor that carries a gradient raises an error of its own
        why = _strange(array) or _in_short(error, values)
    raise ValueError(f"{what} must be numbers: {why}")


def _in_short(error: Exception, values: Any) -> str:
    """Why a conversion failed, without NumPy's own words where they tell a user nothing."""
    if "inhomogeneous" in str(error):
        return "rows have different lengths, or numbers stand beside lists"
    if "float() argument" in str(error):
        return f"this is a {type(values).__name__}"
    return str(error)


def shape_of(values: Any) -> tuple[int, ...]:
    """Its shape, of a list as of an array; a ValueError in plain words where rows differ."""
    try:
        return tuple(values.shape) if hasattr(values, "shape") else np.shape(values)
    except ValueError as error:
        raise ValueError(_in_short(error, values)) from error


def _strange(values: Any) -> str:
    """The first entry that is no number, where entries can be told apart."""
    array: Any = values if isinstance(values, np.ndarray) else getattr(values, "to_numpy", list)()
    if isinstance(array, np.ndarray) and array.dtype.kind in "US" and array.size:
        return f"such as {short(array.flat[0].item())}"
    objects = isinstance(array, np.ndarray) and array.dtype.kind == "O"
    for place, value in np.ndenumerate(array) if objects else ():
        if not isinstance(value, str):
            with suppress(TypeError, ValueError, OverflowError):
                float(value)
                continue
        return f"entry {', '.join(map(str, place))} is {short(value)}" if place else short(value)
    return ""


def sound(matrix: Any, what: str) -> Any:
    """A matrix of scipy.sparse whose indices lie inside it; compiled loops would trust them.

    O(entries). Its arrays can be set to anything after it was made. Anything else is as it was.
    """
    given: Any = matrix if sp.issparse(matrix) else None
    try:
        if hasattr(given, "indptr"):
            given.check_format(full_check=True)
            if given.format != "bsr" and len(given.data) != len(given.indices):
                raise ValueError("it has more numbers than indices, or fewer")
        elif hasattr(given, "coords"):
            for axis, length in zip(given.coords, given.shape, strict=True):
                if len(axis) != len(given.data) or ((axis < 0) | (axis >= length)).any():
                    raise ValueError("its coordinates lie outside")
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{what}: a sparse matrix is damaged: {error}") from error
    return matrix


def as_sparse(matrix: Any, what: str) -> sp.csr_array:
    """Rows of real numbers, with indices that lie inside."""
    rows = sp.csr_array(sound(matrix, what))
    rows.data = as_numbers(rows.data, what)
    return rows


def refuse_masked(values: Any, what: str) -> None:
    """A masked entry is a missing one, and what is below the mask is nobody's number."""
    if isinstance(values, np.ma.MaskedArray):
        words = "is masked; say what stands for missing numbers"
        refuse(np.ma.getmaskarray(values).ravel(), lambda k: f"{what}: entry {k} {words}")
    if isinstance(values, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in values):
        for k, value in enumerate(values):
            refuse_masked(value, f"{what}, row {k}")


def as_integers(values: Any, what: str) -> Ints:
    """Integers, never rounded: 0.5 is an error, 1.0 is 1."""
    if type(values) is np.ndarray and values.dtype.kind in "iub":
        if values.dtype.kind == "u" and values.size and values.max() >= LARGEST_INTEGER:
            raise ValueError(f"{what} are integers, got {values.max()}")
        return np.require(values, np.int64, ["C", "A"])
    array = as_numbers(values, what)
    wrong = ~(np.abs(array) < LARGEST_INTEGER) | (array != np.rint(array))
    refuse(wrong, lambda k: f"{what} are integers, got {array.flat[k]:g}")
    return array.astype(np.int64)


def absent(value: Any) -> bool:
    """No value at all: None, NaN, NaT, pandas' NA, a masked entry."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if type(value).__name__ == "Decimal":
        return bool(value.is_nan())
    return value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")


def refuse_many(coordinates: float) -> None:
    """A ValueError with the number, before anything of that size is made."""
    if coordinates > LARGEST:
        raise ValueError(f"{coordinates:.3g} coordinates; a structure has at most {LARGEST}")


def as_count(value: Any, what: str, least: int = 0) -> int:
    """One whole number of at least ``least``."""
    if type(value) is int and value >= least:
        return value
    truth = isinstance(value, (bool, np.bool_))
    count = as_integers(value, what)
    if truth or count.ndim or count < least:
        raise ValueError(f"{what} is {value}; it must be a whole number ≥ {least}")
    return int(count)


def refuse_made(numbers: float, what: str) -> None:
    """A ValueError with ``what`` was asked, before so many numbers are made."""
    if numbers > MADE:
        raise ValueError(f"{what} makes {numbers:.3g} numbers; at most {MADE:.3g} are made at once")


def as_number(value: Any, what: str, least: float = -np.inf) -> float:
    """One finite number of at least ``least``."""
    number = as_numbers(value, what)
    if number.ndim or not np.isfinite(number) or number < least:
        bound = "" if least == -np.inf else f" ≥ {least:g}"
        raise ValueError(f"{what} is {value}; it must be a finite number{bound}")
    return float(number)


def table_views(table_of: Ints, over: Ints) -> Views:
    """Every coordinate is a view, and a table's coordinates are a distribution."""
    size = len(table_of)
    D = sp.csr_array((np.ones(size), (np.arange(size), table_of)))
    return Views(sp.csr_array(sp.eye_array(size, format="csr")), np.zeros(size), D, over)


class Binary(Structure):
    """A structure whose entropy is the sum of its coordinates' binary entropies."""

    def views(self) -> Views:
        """Coordinates and complements; the distributions are the coordinates' own."""
        eye = sp.eye_array(self.size, format="csr")
        pair = sp.csr_array(sp.vstack([eye, eye]))
        C = sp.csr_array(sp.vstack([eye, -eye]))
        return Views(C, np.repeat([0.0, 1.0], self.size), pair, np.zeros((0, 2), dtype=np.int64))

    def counting(self, rho: Any = None) -> Array:
        """1 for every coordinate; refuses a reweighting, which would have nothing to reweight."""
        if rho is not None:
            raise ValueError(
                f"a {type(self).__name__} has no reweighted Bethe entropy that separates over "
                "nodes: leave rho out; its entropy is the sum of binary entropies, an upper bound"
            )
        return np.ones(self.size)

    def bound(self, counting: Array) -> Bound:
        """Never below the entropy: coordinates are at most independent."""
        counting = as_numbers(counting, "counting")
        if (counting == 1).all():
            return Bound("upper", "sum of binary entropies")
        return Bound("none", "counting numbers of no known theorem")
