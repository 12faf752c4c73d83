"""How regions lie in one another: which covers which, and what junction forests share."""

from __future__ import annotations

from itertools import combinations

from mlestruct.structures.base import Ints
from mlestruct.structures.scopes import check_cards

Link = tuple[int, int]


def covers(regions: list[tuple[int, ...]]) -> list[Link]:
    """(parent, child) wherever a region holds another and none lies between."""
    sets = [frozenset(region) for region in regions]
    if len(set(sets)) < len(sets):
        twice = next(r for r in sets if sets.count(r) > 1)
        raise ValueError(f"the region {sorted(twice)} is listed twice")
    holding: dict[int, list[int]] = {}
    for r, region in enumerate(regions):
        for variable in region:
            holding.setdefault(variable, []).append(r)
    links = []
    for child, small in enumerate(sets):
        above = [p for p in holding[regions[child][0]] if small < sets[p]]
        links += [(p, child) for p in above if not any(sets[q] < sets[p] for q in above)]
    return links


def separators(regions: list[tuple[int, ...]], n: int) -> list[frozenset[int]] | None:
    """What neighbours share in a junction forest of the regions; None if there is none."""
    holding: list[list[int]] = [[] for _ in range(n)]
    for r, region in enumerate(regions):
        for variable in region:
            holding[variable].append(r)
    shared: dict[Link, set[int]] = {}
    for variable, holders in enumerate(holding):
        for pair in combinations(holders, 2):
            shared.setdefault(pair, set()).add(variable)
    root, found = list(range(len(regions))), []
    for (i, j), variables in sorted(shared.items(), key=lambda item: -len(item[1])):
        a, b = _root(root, i), _root(root, j)
        if a != b:
            root[a] = b
            found.append(frozenset(variables))
    # a spanning forest of greatest overlap has the running intersection iff it counts each once
    whole = sum(map(len, regions)) - sum(map(len, found)) == n
    return found if whole else None


def check_regions(cards: Ints, regions: list[tuple[int, ...]]) -> None:
    check_cards(cards)
    for r, region in enumerate(regions):
        if not region or len(set(region)) != len(region):
            raise ValueError(f"region {r} is {list(region)}: one or more variables, each once")
        if min(region) < 0 or max(region) >= len(cards):
            raise ValueError(f"region {r} names variable {max(region)} of {len(cards)}")
    missing = set(range(len(cards))).difference(*regions)
    if missing:
        raise ValueError(f"variable {min(missing)} is in no region")


def check_links(links: list[Link], count: int) -> None:
    for pair in links:
        if not all(0 <= region < count for region in pair):
            raise ValueError(f"link {pair} names a region that is not in 0..{count - 1}")


def _root(root: list[int], i: int) -> int:
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i
