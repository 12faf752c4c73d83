"""Oracles by name, each imported when it is asked for; every structure's own default."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlestruct.batch import Batch
from mlestruct.errors import Infeasible
from mlestruct.oracle.protocol import Answers, Oracle
from mlestruct.oracle.solver import Solver
from mlestruct.structures import (
    BipartiteMatching,
    BMatching,
    FactorGraph,
    Flow,
    Ising,
    Matching,
    Paths,
)
from mlestruct.structures.base import Array, Structure


@dataclass(frozen=True)
class PerStructure:
    """Every structure of a mixed batch goes to its own oracle."""

    choose: Callable[[Structure], Oracle[Any]]
    polytope: str

    @classmethod
    def default(cls, batch: Batch[Any]) -> PerStructure:
        oracles = {s.default_oracle: load(s.default_oracle) for s in batch.structures}
        names = " / ".join(sorted({oracle.polytope for oracle in oracles.values()}))
        return cls(lambda structure: oracles[structure.default_oracle], names)

    def many(self, batch: Batch[Any], scores: Array) -> Answers:
        vertices, upper = np.empty(batch.size), np.empty(len(batch))
        for structure, members in batch.groups():
            place = batch.index(members)
            try:
                answers = self.choose(structure).many(batch.select(members), scores[place])
            except Infeasible as error:
                raise Infeasible(structure.impossible() or str(error)) from error
            vertices[place], upper[members] = answers
        return vertices, upper

    def perturbable(self, batch: Batch[Any]) -> NDArray[np.bool_] | None:
        free = np.ones(batch.size, dtype=bool)
        for structure, members in batch.groups():
            mask = self.choose(structure).perturbable(batch.select(members))
            if mask is not None:
                free[batch.index(members)] = mask
        return None if free.all() else free


REGISTRY = {
    "assignment": "mlestruct_oracles.assignment:Assignment",
    "linear_program": "mlestruct_oracles.linear_program:LinearProgram",
    "b_matching": "mlestruct_oracles.b_matching:BMatchingSolver",
    "blossom": "mlestruct_oracles.general_matching:Blossom",
    "cp_sat": "mlestruct_oracles.cp_sat:CPSat",
    "graph_cut": "mlestruct_oracles.qpbo_oracle:GraphCut",
    "min_cost_flow": "mlestruct_oracles.min_cost_flow:MinCostFlow",
    "networkx_matching": "mlestruct_oracles.networkx_matching:NetworkxMatching",
    "planar_ising": "mlestruct_oracles.planar_ising:PlanarIsing",
    "qpbo": "mlestruct_oracles.qpbo_oracle:QPBO",
    "relaxation": "mlestruct_oracles.relaxation:Relaxation",
    "shortest_path": "mlestruct_oracles.shortest_path:ShortestPath",
    "simplices": "mlestruct.oracle:Simplices",
    "trw_s": "mlestruct_oracles.trw_s:TRWS",
    "viterbi": "mlestruct_oracles.viterbi:Viterbi",
}

# What each of them can be asked about; who is not listed takes whatever states constraints.
SERVES: dict[str, tuple[type[Structure], ...]] = {
    "assignment": (BipartiteMatching,),
    "b_matching": (BMatching,),
    "blossom": (Matching,),
    "graph_cut": (FactorGraph,),
    "min_cost_flow": (Flow,),
    "networkx_matching": (Matching,),
    "planar_ising": (Ising,),
    "qpbo": (FactorGraph,),
    "relaxation": (FactorGraph,),
    "shortest_path": (Paths,),
    "trw_s": (FactorGraph,),
    "viterbi": (FactorGraph,),
}


def resolve(
    oracle: Oracle[Any] | Callable[..., Any] | str | None, batch: Batch[Any]
) -> Oracle[Any]:
    """An oracle from a name, a plain callable, an oracle, or None (the structure's default)."""
    if oracle is None:
        names = {s.default_oracle for s in batch.structures}
        if None in names:
            kinds = sorted({type(s).__name__ for s in batch.structures if not s.default_oracle})
            raise ValueError(f"{' and '.join(kinds)} has no default oracle: pass oracle=")
        oracle = names.pop() if len(names) == 1 else PerStructure.default(batch)
    if isinstance(oracle, str):
        _refuse_misfit(oracle, batch)
        return load(oracle)
    if hasattr(oracle, "many"):
        return oracle  # type: ignore[return-value]
    if callable(oracle):
        return Solver(oracle)
    raise ValueError(f"an oracle is a name, a callable or has a method many; got {oracle!r}")


def _refuse_misfit(name: str, batch: Batch[Any]) -> None:
    kinds = SERVES.get(name, (Structure,))
    strange = next((s for s in batch.structures if not isinstance(s, kinds)), None)
    if strange is not None:
        served = " and ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"the oracle {name!r} is for {served}, not {type(strange).__name__}")


def load(name: str | None) -> Oracle[Any]:
    """The registered oracle of that name; its module is imported now."""
    if name not in REGISTRY:
        raise ValueError(f"no oracle named {name!r}; there are {', '.join(sorted(REGISTRY))}")
    module, found = REGISTRY[name].split(":")
    oracle: Oracle[Any] = getattr(importlib.import_module(module), found)()
    return oracle
