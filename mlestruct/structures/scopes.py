"""The variables of every factor, end to end: what they must be, and which entries agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlestruct.structures.base import Ints, as_integers, refuse_many


def end_to_end(scopes: Iterable[Sequence[int]] | Ints) -> tuple[Ints, Ints]:
    """All factors' variables in one array, and where each factor's begin."""
    try:
        listed = [tuple(scope) for scope in scopes]
    except TypeError as error:
        raise ValueError("a factor is a list of variables, as (0, 1) is") from error
    flat = as_integers([v for scope in listed for v in scope], "variables of factors")
    return flat, np.cumsum([0, *map(len, listed)], dtype=np.int64)


def check_cards(cards: Ints) -> None:
    if len(cards) and cards.min() < 1:
        raise ValueError(f"variable {int(cards.argmin())} has {cards.min()} states; it needs one")


def check_scopes(cards: Ints, scope: Ints, start: Ints) -> None:
    """Refuse variables without states, and factors that are no set of two or more of them."""
    check_cards(cards)
    order = np.diff(start)
    factor = np.repeat(np.arange(len(order)), order)
    by_name = scope[np.lexsort((scope, factor))]
    again = factor[1:][(by_name[1:] == by_name[:-1]) & (factor[1:] == factor[:-1])]
    for bad in _first(order < 2, again):
        raise ValueError(
            f"factor {bad} has scope {_named(scope, start, bad)}: two or more variables, each once"
        )
    for bad in _first(factor[(scope < 0) | (scope >= len(cards))]):
        worst = max(_named(scope, start, bad))
        raise ValueError(f"factor {bad} names variable {worst} of {len(cards)}")
    for arity in np.unique(order):
        some = np.flatnonzero(order == arity)
        for bad in _first(_repeats(some, by_name[start[some][:, None] + np.arange(arity)])):
            names = sorted(_named(scope, start, bad))
            raise ValueError(f"factor {bad} repeats the variables {names} of another factor")


def _first(*found: Any) -> Iterator[int]:
    """The first factor of those marked or listed, if there is any."""
    listed = [np.flatnonzero(one) if one.dtype == bool else one for one in found]
    joined = np.concatenate(listed)
    if len(joined):
        yield int(joined.min())


def _named(scope: Ints, start: Ints, factor: int) -> list[int]:
    return list(scope[start[factor] : start[factor + 1]].tolist())


def _repeats(factors: Ints, rows: Ints) -> Ints:
    """The scopes that have the same variables as an earlier scope."""
    place = np.lexsort((factors, *rows.T))
    same = (rows[place][1:] == rows[place][:-1]).all(axis=1)
    return np.asarray(factors[place][1:][same])


def as_states(outcome: ArrayLike, cards: Ints) -> Ints:
    """A state for every variable."""
    states = as_integers(outcome, "states")
    if states.shape != cards.shape:
        raise ValueError(f"an outcome has {len(cards)} states, got shape {states.shape}")
    wrong = np.flatnonzero((states < 0) | (states >= cards))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"variable {i} has state {states[i]}; it must be in 0..{cards[i] - 1}")
    return states


def as_observed(observed: ArrayLike | Mapping[int, int], cards: Ints) -> Ints:
    """A state or −1 for every variable; a mapping names those that are observed."""
    if isinstance(observed, Mapping):
        strange = [i for i in observed if not 0 <= i < len(cards)]
        if strange:
            raise ValueError(f"there is no variable {strange[0]} to observe")
        observed = [observed.get(i, -1) for i in range(len(cards))]
    states = as_integers(observed, "states")
    if states.shape != cards.shape or not ((states >= -1) & (states < cards)).all():
        raise ValueError("observed must hold a state or −1 for every variable")
    return states


def table_sizes(cards: Ints, scope: Ints, start: Ints, more: float = 0.0) -> Ints:
    """Entries of every table; refuses too many of them, with ``more`` coordinates besides."""
    states = cards.astype(float)  # as integers products could pass 2⁶³ unseen
    with np.errstate(over="ignore"):  # infinite, and refused as such
        sizes = np.multiply.reduceat(states[scope], start[:-1]) if len(scope) else np.zeros(0)
    refuse_many(more + sizes.sum())
    return sizes.astype(np.int64)


def strides_of(cards: Ints, scope: Ints, start: Ints) -> Ints:
    """How far apart in its table the states of a factor's variable are, by place in scopes."""
    strides, order = np.ones(len(scope), dtype=np.int64), np.diff(start)
    for back in range(2, int(order.max(initial=0)) + 1):
        place = (start[1:] - back)[order >= back]
        strides[place] = strides[place + 1] * cards[scope[place + 1]]
    return strides


def agreements(
    cards: Ints, scope: Ints, start: Ints, node_start: Ints, table_start: Ints
) -> tuple[Ints, Ints, Ints]:
    """Triples (factor entry, node entry it agrees with, index into ``scope``), by entry."""
    factor = np.repeat(np.arange(len(start) - 1), np.diff(table_start))
    arity = np.diff(start)[factor]
    first = np.cumsum(arity) - arity  # of every entry's triples
    entry = np.repeat(np.arange(len(factor)), arity)
    slot = np.arange(len(entry)) + (start[factor] - first)[entry]
    local = (np.arange(len(factor)) + table_start[0] - table_start[factor])[entry]
    state = local // strides_of(cards, scope, start)[slot] % cards[scope[slot]]
    return entry + table_start[0], node_start[scope[slot]] + state, slot
