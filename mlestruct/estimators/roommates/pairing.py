"""One group to pair up: its best pairing with a proof, and every pair's probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.estimators.roommates.people import Group, People
from mlestruct.estimators.roommates.rooms import Room
from mlestruct.estimators.roommates.rules import Rules, conflict
from mlestruct.estimators.roommates.worth import Worth
from mlestruct.inference import Marginals, best, marginals
from mlestruct.structures import Matching
from mlestruct.structures.base import Array, Ints

Decision = Literal["map", "expected"]
KEPT = ("structure", "scores", "beliefs", "place")  # what does not depend on the rules


class Solution(NamedTuple):
    """Everybody's partner (−1: stays single), the total reached, and a proven bound on it."""

    partner: Ints
    objective: float
    upper: float


@dataclass(frozen=True)
class Pairing:
    """The people of a group, numbered from 0, rules among them, and how many stay single.

    Who stays single shares with an empty bed, which is worth 0: as much as an average partner.
    Beds are numbered after the people, so that a rule may require one.
    """

    group: Group
    ids: list[Any] = field(repr=False)
    worth: Worth = field(repr=False)
    singles: int
    forbid: Ints = field(repr=False)
    require: Ints = field(repr=False)
    decision: Decision
    rho: float

    @classmethod
    def of(
        cls,
        people: People,
        group: Group,
        worth: Worth,
        rules: Rules,
        rooms: Sequence[Room] | None,
        decision: Decision,
        rho: float,
    ) -> Pairing:
        """One group under the rules; without rooms, one person of an odd group stays single."""
        ids = [people.ids[row] for row in group.members.tolist()]
        ones = [room for room in rooms or () if room.size == 1]
        singles = len(ids) % 2 if rooms is None else len(ones)
        forbid, require = rules.within(group)
        place = {row: k for k, row in enumerate(group.members.tolist())}
        alone = [[place[row], len(ids) + k] for k, r in enumerate(ones) for row in r.fixed]
        for person, _ in alone:
            if person in require:
                raise Infeasible(f"{ids[person]!r} has a room for 1 and is in a required pair")
        require = np.concatenate([require, np.array(alone, dtype=np.int64).reshape(-1, 2)])
        return cls(group, ids, worth, singles, forbid, require, decision, rho)

    @cached_property
    def place(self) -> dict[int, int]:
        """Everybody's number, from the row in the table of people."""
        return {int(row): k for k, row in enumerate(self.group.members)}

    @cached_property
    def structure(self) -> Matching:
        """All pairings of the people, rules or not; beds are never paired with each other."""
        n = len(self.ids)
        return Matching(n + self.singles, forbidden=_all_pairs(n, self.singles))

    @cached_property
    def scores(self) -> Array:
        return self.worth.scores(self.singles)

    @cached_property
    def beliefs(self) -> Marginals:
        """Every pair's pseudo-probability among these people: rules bind plans, not beliefs."""
        return marginals(Batch.of(self.structure, count=1), self.scores, rho=self.rho)

    @property
    def tau(self) -> Array:
        return self.beliefs.tau

    @cached_property
    def solution(self) -> Solution:
        """The best pairing that keeps the rules, proven by the duals of the matching."""
        weights = self.scores if self.decision == "map" else self.tau
        shut = np.concatenate([self.forbid, _all_pairs(len(self.ids), self.singles)])
        ruled = Matching(self.structure.n_nodes, forbidden=shut, required=self.require)
        try:
            (mate,), objective, upper = best(Batch.of(ruled, count=1), weights)
        except Infeasible as error:
            if not len(error.groups):
                raise
            witness = error.separators, error.groups
            raise Infeasible(conflict(self.group.label, self.ids, self.forbid, *witness)) from error
        mate = mate[: len(self.ids)]
        partner = np.where(mate < len(self.ids), mate, -1)
        return Solution(partner, float(objective[0]), float(upper[0]))

    def under(self, forbid: Ints, require: Ints) -> Pairing:
        """The same people under other rules; beds that were required stay required."""
        beds = self.require[(self.require >= len(self.ids)).any(axis=1)]
        twin = replace(self, forbid=forbid, require=np.concatenate([require, beds]))
        known = {name: self.__dict__[name] for name in KEPT if name in self.__dict__}
        twin.__dict__.update(known)
        return twin

    def at(self, first: Any, second: Any) -> tuple[Array, Array]:
        """(scores, probabilities) of people with people, pair by pair; 0 with oneself."""
        a, b = np.broadcast_arrays(first, second)
        low, high = np.minimum(a, b), np.maximum(a, b)
        apart = low < high
        out = np.zeros((2, *low.shape))
        place = self.structure.graph.place(low[apart], high[apart])
        out[:, apart] = self.scores[place], self.tau[place]
        return out[0], out[1]

    def chances(self, people: Ints) -> Array:
        """(people × everybody) probabilities that these share with each; of themselves any."""
        everybody = np.arange(len(self.ids))
        low, high = np.minimum(people[:, None], everybody), np.maximum(people[:, None], everybody)
        place = self.structure.graph.place(low, high)
        return self.tau[np.minimum(place, len(self.tau) - 1, out=place)]

    def single(self, person: Any) -> Array:
        """The probability that somebody stays single."""
        beds = np.arange(self.singles) + len(self.ids)
        place = self.structure.graph.place(np.asarray(person)[..., None], beds)
        return np.asarray(self.tau[place].sum(axis=-1))

    def homes(self, fours: int, kept: Ints) -> list[Ints]:
        """Who lives together: singles, pairs, and ``fours`` times two pairs that go well together.

        Fours are chosen after the pairs, best in total cross scores; pairs with anybody in
        ``kept`` stay apart.
        """
        partner = self.solution.partner
        people = np.arange(len(partner))
        pairs = np.stack([people, partner], axis=1)[people < partner]
        ones = [np.array([v]) for v in np.flatnonzero(partner < 0)]
        if not fours:
            return [*pairs, *ones]
        apart = np.isin(pairs, kept).any(axis=1)
        joined = self._joined(pairs[~apart], fours)
        return [*pairs[apart], *joined, *ones]

    def _joined(self, pairs: Ints, fours: int) -> list[Ints]:
        """Pairs, of which ``fours`` twos are joined: the best by the matching of pairs."""
        low, high = np.triu_indices(len(pairs), 1)
        cross = sum(self.at(pairs[low, i], pairs[high, j])[0] for i in (0, 1) for j in (0, 1))
        table = np.zeros((2 * len(pairs) - 2 * fours,) * 2)
        table[low, high] = cross
        beds = _all_pairs(len(pairs), len(pairs) - 2 * fours)
        structure = Matching(len(table), forbidden=beds)
        weights = table[structure.ends[:, 0], structure.ends[:, 1]]
        (mate,), _, _ = best(Batch.of(structure, count=1), weights)
        mate = mate[: len(pairs)]
        twos = [pairs[k] for k in np.flatnonzero(mate >= len(pairs))]
        both = [k for k in np.flatnonzero(mate < len(pairs)) if k < mate[k]]
        return [*twos, *(np.concatenate([pairs[k], pairs[mate[k]]]) for k in both)]


def _all_pairs(first: int, count: int) -> Ints:
    """All pairs of ``count`` nodes from ``first`` on."""
    return first + np.stack(np.triu_indices(count, 1), axis=1)
