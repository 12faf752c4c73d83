"""The catalogue of solvers, each imported when it is asked for; every structure's own default."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mlestruct.errors import Infeasible, refuse_removed
from mlestruct.oracle.protocol import HULL, Answers, Around, Oracle
from mlestruct.structures.base import Array, Structure, as_numbers, one_of
from mlestruct.structures.batch import Batch

AnyOracle = Oracle[Any] | Callable[..., Any] | str | None


@dataclass(frozen=True)
class PerStructure:
    """Every structure of a mixed batch goes to its own oracle."""

    choose: Callable[[Structure], Oracle[Any]]
    polytope: str

    @classmethod
    def default(cls, batch: Batch[Any]) -> PerStructure:
        """What the batch's structures name as theirs."""
        orphans = sorted({type(s).__name__ for s in batch.structures if s.default_oracle is None})
        if orphans:
            raise ValueError(f"{' and '.join(orphans)} has no default oracle: pass oracle=")
        named = {s.default_oracle for s in batch.structures if isinstance(s.default_oracle, str)}
        shared = {name: load(name) for name in named}
        oracles = {
            s: shared[own] if isinstance(own := s.default_oracle, str) else resolve(own, batch)
            for s in batch.structures
        }
        names = " / ".join(sorted({oracle.polytope for oracle in oracles.values()}))
        return cls(oracles.__getitem__, names)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        scores = as_numbers(scores, "scores", batch.size)
        for structure, members in batch.groups():
            place = batch.index(members)
            try:
                answers = self.choose(structure).many(batch.select(members), scores[place])
            except Infeasible as error:
                raise Infeasible(structure.impossible() or str(error)) from error
            vertices[place], upper[members] = answers
        return vertices, upper


@dataclass(frozen=True)
class Entry(Around):
    """One solver: ``place`` is module:class, made with ``settings``, asked about ``serves``.

    ``serves`` names a class of structures; without it every structure that states constraints is
    taken. Names, so that no structure's module is imported for its line here. ``polytope`` is the
    solver's own; None where that depends on what it was asked. A copy stands in for the solver,
    which is loaded when it is first asked: many fits never ask.
    """

    place: str
    serves: str = "Structure"
    settings: Mapping[str, Any] = field(default_factory=dict)
    polytope: Any = HULL

    @cached_property
    def oracle(self) -> Oracle[Any]:  # type: ignore[override]
        module, kind = self.place.split(":")
        oracle: Oracle[Any] = getattr(importlib.import_module(module), kind)(**self.settings)
        return oracle

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        return self.oracle.many(batch, scores)


QPBO = "mlestruct_oracles.qpbo:QPBO"
CUT = "mlestruct_oracles.qpbo:GraphCut"
LOCAL, MATCHINGS = "local polytope", "convex hull of matchings"

CATALOGUE = {
    "assignment": Entry("mlestruct_oracles.assignment:Assignment", "BipartiteMatching"),
    "b_matching": Entry("mlestruct_oracles.min_cost_flow:BMatchingSolver", "BMatching"),
    "blossom": Entry("mlestruct_oracles.blossom:Blossom", "Matching", {}, MATCHINGS),
    "cp_sat": Entry("mlestruct_oracles.cp_sat:CPSat"),
    "graph_cut": Entry(CUT, "FactorGraph"),
    "graph_cut_pymaxflow": Entry(CUT, "FactorGraph", {"backend": "pymaxflow"}),
    "linear_program": Entry("mlestruct_oracles.linear_program:LinearProgram", polytope=None),
    "min_cost_flow": Entry("mlestruct_oracles.min_cost_flow:MinCostFlow", "Flow"),
    "networkx_matching": Entry("mlestruct_oracles.networkx_matching:NetworkxMatching", "Matching"),
    "planar_ising": Entry("mlestruct_oracles.planar_ising:PlanarIsing", "Ising"),
    "qpbo": Entry(QPBO, "FactorGraph", {}, LOCAL),
    "qpbo_pymaxflow": Entry(QPBO, "FactorGraph", {"backend": "pymaxflow"}, LOCAL),
    "relaxation": Entry("mlestruct_oracles.linear_program:Relaxation", "FactorGraph", {}, LOCAL),
    "shortest_path": Entry("mlestruct_oracles.shortest_path:ShortestPath", "Paths"),
    "simplices": Entry("mlestruct.oracle:Simplices"),
    "trw_s": Entry("mlestruct_oracles.trw_s:TRWS", "FactorGraph"),
    "viterbi": Entry("mlestruct_oracles.viterbi:Viterbi", "FactorGraph"),
}
"""Every solver with a name; a structure's default is one of these, or an oracle of its own."""


def resolve(oracle: AnyOracle, batch: Batch[Any]) -> Oracle[Any]:
    """An oracle from a name, a plain callable, an oracle, or None (the structure's default)."""
    if oracle is None:
        own = batch.structures[0].default_oracle
        for other in batch.structures:
            if own is None or other.default_oracle != own:
                return PerStructure.default(batch)
        if isinstance(own, str):
            entry = CATALOGUE.get(own)
            return replace(entry) if entry is not None and entry.polytope else load(own)
        oracle = own
    if isinstance(oracle, str):
        served = CATALOGUE[oracle].serves if oracle in CATALOGUE else "Structure"
        for structure in batch.structures:
            if not one_of(structure, served):
                kind = type(structure).__name__
                raise ValueError(f"the oracle {oracle!r} is for {served}, not {kind}")
        return load(oracle)
    if hasattr(oracle, "many"):
        return oracle  # type: ignore[return-value]
    if callable(oracle):
        from mlestruct.oracle.solver import Solver

        return Solver(oracle)
    raise ValueError(f"an oracle is a name, a callable or has a method many; got {oracle!r}")


def load(name: str | None) -> Oracle[Any]:
    """The solver of that name in the catalogue; its module is imported now."""
    if name not in CATALOGUE:
        refuse_removed(f"oracle={name!r}")
        raise ValueError(f"no oracle named {name!r}; there are {', '.join(sorted(CATALOGUE))}")
    return replace(CATALOGUE[name]).oracle
