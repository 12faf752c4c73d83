"""Loops over rows of numbers, eight at a time, written in LLVM's vectors.

LLVM's own vectoriser leaves rows of less than two dozen alone, and whatever it cannot see apart.
Here a formula over :class:`Row` becomes a loop of vectors: ``@rows`` makes of it a function that
kernels call with a count of eights, the places where results go, and what the formula reads:
numbers, or places. A place is an array and an offset, or an array, an array of positions in it and
an offset into that one. The order of every sum is part of the formula, whatever a processor takes
at once; ``@alone`` makes of the same formulas functions of single numbers.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin

from mlestruct.kernels import VARIANTS

EIGHT = 8
MOST = 4  # eights side by side
FLOATS = ir.VectorType(ir.DoubleType(), EIGHT)
INTS = ir.VectorType(ir.IntType(64), EIGHT)
ORDER = ir.VectorType(ir.IntType(32), EIGHT)
INDEX, WHOLE = ir.IntType(32), ir.IntType(64)
FUSED = ("contract",)  # a product may be added to a sum before it is rounded
ANY = types.VarArg(types.Any)  # type: ignore[attr-defined]


class Row:
    """Eight numbers, or one; constants beside it count as often as it has numbers."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def _with(self, other: Any) -> Any:
        return other.value if isinstance(other, Row) else _constant(self.value.type, float(other))

    def __add__(self, other: Any) -> Row:
        return Row(self.builder, self.builder.fadd(self.value, self._with(other), flags=FUSED))

    def __sub__(self, other: Any) -> Row:
        return Row(self.builder, self.builder.fsub(self.value, self._with(other), flags=FUSED))

    def __mul__(self, other: Any) -> Row:
        return Row(self.builder, self.builder.fmul(self.value, self._with(other), flags=FUSED))

    def __truediv__(self, other: Any) -> Row:
        return Row(self.builder, self.builder.fdiv(self.value, self._with(other)))

    def __rsub__(self, other: Any) -> Row:
        return Row(self.builder, self._with(other)) - self

    def __rtruediv__(self, other: Any) -> Row:
        return Row(self.builder, self._with(other)) / self

    __radd__, __rmul__ = __add__, __mul__

    def where_above(self, least: Any, one: Any, other: Any) -> Row:
        """``one`` where this is above ``least``, else ``other``."""
        above = self.builder.fcmp_ordered(">", self.value, self._with(least))
        return Row(self.builder, self.builder.select(above, self._with(one), self._with(other)))

    def most(self, other: Any) -> Row:
        """The larger one of each two."""
        return self.where_above(other, self, other)

    def least(self, other: Any) -> Row:
        """The smaller one of each two."""
        return self.where_above(other, other, self)

    def bits(self) -> Bits:
        """As whole numbers of 64 bits."""
        kind = WHOLE if isinstance(self.value.type, ir.DoubleType) else INTS
        return Bits(self.builder, self.builder.bitcast(self.value, kind))

    def picked(self, other: Row, lanes: list[int]) -> Row:
        """Lanes of this row, from 8 on of the other."""
        order = ir.Constant(ORDER, lanes)
        return Row(self.builder, self.builder.shuffle_vector(self.value, other.value, order))

    def folded(self, other: Row, half: int) -> Row:
        """Sums of two lanes each, ``half`` apart: blocks of this row and of the other in turn."""
        blocks = range(0, EIGHT, 2 * half)
        low = [x + k + turn for x in blocks for turn in (0, EIGHT) for k in range(half)]
        return self.picked(other, low) + self.picked(other, [k + half for k in low])


class Bits:
    """The bits of a :class:`Row`."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def _do(self, what: str, other: Any) -> Bits:
        one = other.value if isinstance(other, Bits) else _constant(self.value.type, other)
        return Bits(self.builder, getattr(self.builder, what)(self.value, one))

    def __and__(self, other: Any) -> Bits:
        return self._do("and_", other)

    def __or__(self, other: Any) -> Bits:
        return self._do("or_", other)

    def __add__(self, other: Any) -> Bits:
        return self._do("add", other)

    def __lshift__(self, other: Any) -> Bits:
        return self._do("shl", other)

    def __rshift__(self, other: Any) -> Bits:
        return self._do("lshr", other)

    def floats(self) -> Row:
        """The numbers that have these bits."""
        kind = ir.DoubleType() if self.value.type == WHOLE else FLOATS
        return Row(self.builder, self.builder.bitcast(self.value, kind))


def _constant(kind: Any, number: Any) -> Any:
    return ir.Constant(kind, [number] * EIGHT if isinstance(kind, ir.VectorType) else number)


def _everywhere(builder: Any, number: Any) -> Row:
    """Eight times a number that is known when the kernel runs."""
    empty = Row(builder, ir.Constant(FLOATS, ir.Undefined))
    alone = Row(builder, builder.insert_element(empty.value, number, INDEX(0)))
    return alone.picked(empty, [0] * EIGHT)


Rows = tuple[Row, ...]
INFINITE = float("inf")


def add(one: Rows, other: Rows) -> Rows:
    """Joins by sums."""
    return (one[0] + other[0],)


def most(one: Rows, other: Rows) -> Rows:
    """Joins by the larger one."""
    return (one[0].most(other[0]),)


# Each with what it gives for no rows.
JOINS: dict[Any, tuple[float, ...]] = {
    add: (0.0,),
    most: (-INFINITE,),
}


def rows(formula: Any = None, /, join: Any = None) -> Any:
    """A formula over rows as a loop; by ``join`` its last results, as many as are joined, are
    joined over all rows to as many numbers, which are returned.
    """
    if formula is None:
        return lambda formula: rows(formula, join)
    none = JOINS.get(join, ())

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _taken(context, builder, signature.args[1:], args[1:])
        reads = formula.__code__.co_argcount
        joined = [cgutils.alloca_once_value(builder, _constant(FLOATS, one)) for one in none]
        with cgutils.for_range(builder, args[0], intp=WHOLE) as loop:
            skip = builder.mul(loop.index, WHOLE(EIGHT))
            found = formula(*(_load(builder, place, skip) for place in places[-reads:]))
            found = found if isinstance(found, tuple) else (found,)
            for place, row in zip(places[:-reads], found, strict=False):
                _store(builder, row, place, skip)
            if join:
                fresh = join(_loaded(builder, joined), found[-len(none) :])
                for address, row in zip(joined, fresh, strict=True):
                    builder.store(row.value, address)
        if not join:
            return context.get_dummy_value()
        numbers = _halved(builder, join, _loaded(builder, joined))
        if len(none) == 1:
            return numbers[0]
        return context.make_tuple(builder, signature.return_type, numbers)

    returned: Any = types.float64 if join else types.void
    if len(none) > 1:
        returned = types.containers.UniTuple(types.float64, len(none))
    return _known(formula, returned, emit, rows)


def _loaded(builder: Any, places: list[Any]) -> Rows:
    return tuple(Row(builder, builder.load(place)) for place in places)


def _halved(builder: Any, join: Any, found: Rows) -> list[Any]:
    """Halves of rows joined with halves, to single numbers."""
    for half in (4, 2, 1):
        turned = [(k + half) % EIGHT for k in range(EIGHT)]
        found = join(found, tuple(row.picked(row, turned) for row in found))
    return [builder.extract_element(row.value, INDEX(0)) for row in found]


def alone(formula: Any) -> Any:
    """A formula as a function of numbers."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return formula(*(Row(builder, one) for one in args)).value

    return _known(formula, types.float64, emit, alone)


def _known(function: Any, returned: Any, emit: Any, *made_by: Any) -> Any:
    """Kernels may call ``function``: they are compiled again if anything here is changed."""

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return typing.signature(returned, *args)

    template = type(function.__name__, (AbstractTemplate,), {"key": function, "generic": generic})
    infer_global(function, types.Function(template))
    lower_builtin(function, ANY)(emit)
    VARIANTS[function] = [*made_by, *METHODS]
    return function


METHODS = [
    one for kind in (Row, Bits) for one in vars(kind).values() if isinstance(one, FunctionType)
]


def _taken(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    """Places as (array, offset) or (array, positions, offset), numbers as rows, counts as given."""
    found: list[Any] = []
    place: list[Any] = []
    for kind, one in zip(kinds, args, strict=True):
        if isinstance(kind, types.Array):
            place.append(context.make_array(kind)(context, builder, one).data)
        elif place:
            found.append((*place, one))
            place = []
        else:
            found.append(_everywhere(builder, one) if isinstance(kind, types.Float) else one)
    return found


def _address(builder: Any, place: Any, skip: Any) -> Any:
    at = builder.gep(place[0], [builder.add(place[1], skip)])
    return builder.bitcast(at, FLOATS.as_pointer())


def _load(builder: Any, place: Any, skip: Any) -> Row:
    """The eight numbers at a place, or the number that was given instead of one."""
    if isinstance(place, Row):
        return place
    if len(place) == 2:
        return Row(builder, builder.load(_address(builder, place, skip), align=8))
    values, positions, at = place
    row = ir.Constant(FLOATS, ir.Undefined)
    for k in range(EIGHT):
        here = builder.gep(positions, [builder.add(builder.add(at, skip), WHOLE(k))])
        one = builder.load(builder.gep(values, [builder.load(here)]))
        row = builder.insert_element(row, one, INDEX(k))
    return Row(builder, row)


def _store(builder: Any, row: Row, place: Any, skip: Any) -> None:
    builder.store(row.value, _address(builder, place, skip), align=8)


def down(*call: Any) -> None:
    """down(out, to, scale, table, at, step, count, values, by): ``step`` entries of ``out``.

    Each is scale · Σ_x values[by + x] · table[at + x · step + entry], x after x; ``step`` is whole
    eights, of which up to four are summed side by side.
    """
    raise NotImplementedError


def _down(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    out, scale, table, step, count, values = _taken(context, builder, signature.args, args)

    def beside(eights: int, begin: Any) -> None:
        totals = [cgutils.alloca_once_value(builder, _constant(FLOATS, 0.0)) for _ in range(eights)]
        for total in totals:
            builder.store(_constant(FLOATS, 0.0), total)
        with cgutils.for_range(builder, count, intp=WHOLE) as loop:
            skip = builder.add(begin, builder.mul(loop.index, step))
            factor = builder.load(builder.gep(values[0], [builder.add(values[1], loop.index)]))
            factor = _everywhere(builder, factor)
            for k, total in enumerate(totals):
                row = _load(builder, table, builder.add(skip, WHOLE(EIGHT * k))) * factor
                builder.store((Row(builder, builder.load(total)) + row).value, total)
        for k, total in enumerate(totals):
            to = builder.add(begin, WHOLE(EIGHT * k))
            _store(builder, Row(builder, builder.load(total)) * scale, out, to)

    fours = builder.sdiv(step, WHOLE(MOST * EIGHT))
    with cgutils.for_range(builder, fours, intp=WHOLE) as loop:
        beside(MOST, builder.mul(loop.index, WHOLE(MOST * EIGHT)))
    begin = builder.mul(fours, WHOLE(MOST * EIGHT))
    for eights in range(1, MOST):
        rest = builder.sub(step, begin)
        with builder.if_then(builder.icmp_signed("==", rest, WHOLE(EIGHT * eights))):
            beside(eights, begin)
    return context.get_dummy_value()


def across(*call: Any) -> None:
    """across(out, to, scale, table, at, step, count, eights, values, by): eight entries of ``out``.

    Each is scale · Σ_x values[by + x] · table[at + lane · step + x] over so many eights; from lane
    ``count`` on, the last one again.
    """
    raise NotImplementedError


def _across(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    out, scale, table, step, count, eights, values = _taken(context, builder, signature.args, args)
    last = builder.sub(count, WHOLE(1))
    lanes = [
        builder.mul(step, builder.select(builder.icmp_signed("<", last, WHOLE(k)), last, WHOLE(k)))
        for k in range(EIGHT)
    ]
    totals = [cgutils.alloca_once_value(builder, _constant(FLOATS, 0.0)) for _ in lanes]
    with cgutils.for_range(builder, eights, intp=WHOLE) as loop:
        skip = builder.mul(loop.index, WHOLE(EIGHT))
        factor = _load(builder, values, skip)
        for total, lane in zip(totals, lanes, strict=True):
            row = _load(builder, table, builder.add(lane, skip)) * factor
            builder.store((Row(builder, builder.load(total)) + row).value, total)
    sums = [Row(builder, builder.load(total)) for total in totals]
    half = EIGHT
    while half := half // 2:
        sums = [
            one.folded(other, half) for one, other in zip(sums[:half], sums[half:], strict=True)
        ]
    _store(builder, sums[0] * scale, out, WHOLE(0))
    return context.get_dummy_value()


_known(down, types.void, _down, _down)
_known(across, types.void, _across, _across)
