"""Which column plays which role: named one by one, or by patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

Names = str | Sequence[str]


def listed(given: Names) -> list[str]:
    """One name or several, as a list."""
    return [given] if isinstance(given, str) else list(given)


def fitting(names: Sequence[str], patterns: Names) -> list[str]:
    """The names that are listed or fit a pattern."""
    return [name for name in names if any(fnmatchcase(name, p) for p in listed(patterns))]


def roles_of(
    names: Sequence[str], roles: Mapping[str, Names], taken: Sequence[str]
) -> dict[str, str]:
    """Each column's role, in the table's order; a column's own name beats patterns.

    Patterns pass over the ``taken`` columns (ids, cohorts, groups). Errors: naming one of those,
    two roles for a column, and a name or pattern that fits none.
    """
    exact: dict[str, str] = {}
    fitted: dict[str, str] = {}
    for role, given in roles.items():
        for pattern in listed(given):
            found = exact if pattern in names else fitted
            free = [name for name in fitting(names, pattern) if name not in taken]
            for name in [pattern] if pattern in names else free:
                if name in taken or found.setdefault(name, role) != role:
                    other = "id, cohort or same" if name in taken else found[name]
                    raise ValueError(f"column {name!r} is named in {role}, and in {other} too")
            if pattern not in names and not free:
                raise ValueError(
                    f"{role}: no column is named or fits {pattern!r}; there are {', '.join(names)}"
                )
    chosen = {**fitted, **exact}
    return {name: chosen[name] for name in names if name in chosen}
