"""What the office decided about people: changes of it, and what no longer fits the tables.

Decisions are tied to ids, so that they outlive a corrected workbook. One that cannot be kept with
the people, groups and rooms of now is kept out of use, and said, and holds again when they come
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from mlestruct.estimators.roommates.people import by_text, groups_of, meant
from mlestruct.serve.project import RULES, Decisions, Rule
from mlestruct.tables import Table
from mlestruct.tables.cells import written


class Decided(NamedTuple):
    """One decision: its kind, ids, room, and why it is out of use (a key and values) or None."""

    kind: str
    who: tuple[str, ...]
    room: str | None = None
    why: tuple[str, Mapping[str, Any]] | None = None


def listed(made: Decisions) -> list[Decided]:
    """Every decision, one by one."""
    twos = [Decided(kind, tuple(two)) for kind in RULES for two in getattr(made, kind)]
    return [*twos, *(Decided("fixed", who, room) for room, who in made.fixed.items())]


def joined(parts: Iterable[Decided]) -> Decisions:
    """The inverse of :func:`listed`."""
    parts = list(parts)

    def of(kind: str) -> tuple[Rule, ...]:
        return tuple((part.who[0], part.who[1]) for part in parts if part.kind == kind)

    fixed = {str(part.room): part.who for part in parts if part.kind == "fixed"}
    return Decisions(of("require"), of("forbid"), of("together"), fixed)


def judged(
    made: Decisions,
    people: Table | None,
    id_column: str,
    groups: Sequence[str],
    rooms: Table | None,
) -> list[Decided]:
    """Every decision, with the reason why it does not fit these people and rooms, if any."""
    if people is None:
        return [part._replace(why=("unfit nobody yet", {})) for part in listed(made)]
    ids = people.as_names(id_column).tolist()
    texts, row = by_text(ids), {who: k for k, who in enumerate(ids)}
    own = [group.label for group in groups_of(people, groups)]
    number = {int(m): k for k, g in enumerate(groups_of(people, groups)) for m in g.members}

    def why(part: Decided) -> tuple[str, Mapping[str, Any]] | None:
        found = {who: meant(who, texts, ids) for who in part.who}
        gone = next((who for who, known in found.items() if known is None), None)
        if gone is not None:
            return "unfit gone", {"who": gone}
        rows = [row[known] for known in found.values()]
        of = [own[number[k]] for k in rows]
        if part.kind != "forbid" and len(set(of)) > 1:
            return "unfit groups", {"first": of[0], "second": next(g for g in of if g != of[0])}
        return _room_unfit(part, people, rows[0], groups, rooms) if part.kind == "fixed" else None

    return [part._replace(why=why(part)) for part in listed(made)]


def _room_unfit(
    part: Decided, people: Table, row: int, groups: Sequence[str], rooms: Table | None
) -> tuple[str, Mapping[str, Any]] | None:
    """Why these people cannot stay in their room."""
    names = [] if rooms is None else [str(written(name)) for name in rooms.labels("room")]
    if rooms is None or part.room not in names:
        return "unfit room", {"room": part.room}
    place = names.index(part.room)
    for name in groups:
        if name in rooms.names:
            whose = rooms.labels(name)[place], people.labels(name)[row]
            if written(whose[0]) != written(whose[1]):
                return "unfit room of", {"room": part.room, "group": f"{name} {whose[0]}"}
    return None


def together(made: Decisions, pairs: Sequence[Rule]) -> tuple[Decisions, list[Rule]]:
    """With these pairs put together; and which earlier ones that undoes. Locks are not broken."""
    for a, b in pairs:
        _refuse_locked(made, (a, b))
        if _of(made.forbid, (a, b)):
            raise ValueError(f"{a} and {b} are kept apart: let that go first")
    taken = {who for pair in pairs for who in pair}
    undone = [old for old in made.together if taken & set(old) and not _of(pairs, old)]
    kept = tuple(old for old in made.together if not taken & set(old))
    return replace(made, together=(*kept, *pairs)), undone


def apart(made: Decisions, pair: Rule) -> tuple[Decisions, list[Rule]]:
    """With two people kept apart; and which pair put together before that undoes."""
    homes = [*made.require, *made.fixed.values()]
    if any(set(pair) <= set(home) for home in homes):
        raise ValueError(f"{pair[0]} and {pair[1]} are locked: unlock that home first")
    undone = [old for old in made.together if set(old) == set(pair)]
    kept = tuple(old for old in made.together if set(old) != set(pair))
    more = () if _of(made.forbid, pair) else (pair,)
    return replace(made, together=kept, forbid=(*made.forbid, *more)), undone


def ruled(made: Decisions, kind: str, pairs: Sequence[Rule], keep: bool) -> Decisions:
    """With rules of a kind added, or without them; one that breaks another is refused."""
    if kind not in RULES:
        raise ValueError(f"a rule is one of {', '.join(RULES)}, not {kind!r}")
    if not keep:
        return joined(
            part for part in listed(made) if part.kind != kind or not _of(pairs, part.who)
        )
    for pair in pairs:
        if _of(getattr(made, kind), pair):
            continue
        if kind == "forbid":
            new, undone = apart(made, pair)
        else:
            new, undone = together(made, [pair])
            new = replace(made, require=(*made.require, pair)) if kind == "require" else new
        if undone:
            a, b = undone[0]
            raise ValueError(f"{a} and {b} were put together: let that go first")
        made = new
    return made


def locked(made: Decisions, who: Sequence[str], room: str | None, keep: bool) -> Decisions:
    """These people stay together, in their room where there are rooms; or no longer."""
    if len(who) not in (1, 2, 4) or len(set(who)) < len(who):
        raise ValueError("a home is one person, two or four")
    if room is None and len(who) == 1:
        raise ValueError("who lives alone can be locked in a room only, and there is none")
    pairs = [(a, b) for a, b in zip(who[::2], who[1::2], strict=False)]
    loose = replace(
        ruled(made, "require", pairs, False),
        fixed={
            name: own
            for name, own in made.fixed.items()
            if set(own) != set(who) and (keep or not set(own) <= set(who))
        },
    )
    if not keep:
        return loose
    _refuse_locked(loose, who)
    if room is not None and room in loose.fixed:
        raise ValueError(f"room {room} is locked for {' and '.join(loose.fixed[room])}")
    barred = [two for two in combinations(who, 2) if _of(made.forbid, two)]
    if barred:
        raise ValueError(f"{' and '.join(barred[0])} are kept apart: let that go first")
    lost = [old for old in made.together if set(old) & set(who) and not _of(pairs, old)]
    if lost:
        raise ValueError(f"{' and '.join(lost[0])} were put together: let that go first")
    if room is None:
        return replace(loose, require=(*loose.require, *pairs))
    return replace(loose, fixed={**loose.fixed, room: tuple(who)})


def let_go(made: Decisions, kind: str, who: Sequence[str]) -> Decisions:
    """Without one decision."""
    left = [part for part in listed(made) if part[:2] != (kind, tuple(who))]
    if len(left) == len(listed(made)):
        raise ValueError(f"there is no such decision about {' and '.join(who)}")
    return joined(left)


def _of(rules: Iterable[Sequence[str]], pair: Sequence[str]) -> bool:
    return any(set(rule) == set(pair) for rule in rules)


def _refuse_locked(made: Decisions, who: Sequence[str]) -> None:
    held = {own: home for home in (*made.require, *made.fixed.values()) for own in home}
    taken = next((own for own in who if own in held), None)
    if taken is not None:
        home = " and ".join(held[taken])
        raise ValueError(f"{taken} is locked: unlock that home first ({home})")
