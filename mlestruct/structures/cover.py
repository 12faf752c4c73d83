"""The largest tables of a labelled graph, from which all its other tables follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mlestruct.structures.base import Ints, Structure
from mlestruct.structures.graph import FactorGraph
from mlestruct.structures.regions import RegionGraph


@dataclass(frozen=True)
class Cover:
    """A structure's largest tables, and how all its coordinates follow from them.

    τ = S t for consistent tables t, and they are consistent where B t = 0.
    """

    own: Ints
    """The coordinates in tables that no other table holds."""
    S: sp.csr_array
    B: sp.csr_array
    table: Ints
    """The distribution that each of ``own`` belongs to."""

    @classmethod
    def of(cls, structure: Structure) -> Cover:
        """Read off the constraints: a separator is a marginal of the first table around it."""
        if not isinstance(structure, FactorGraph | RegionGraph):
            raise ValueError(
                f"clusters are tables of labelled graphs, not {type(structure).__name__}"
            )
        rows = structure.constraints()
        A = sp.csr_array(rows.A[rows.hi == 0])
        entries = sp.coo_array(A)
        marginal = entries.data < 0
        child = np.empty(A.shape[0], dtype=np.int64)
        child[entries.row[marginal]] = entries.col[marginal]
        held, first = np.unique(child, return_index=True)
        own = np.setdiff1d(np.arange(structure.size), held)
        entries = sp.coo_array(sp.csr_array(A[first]))
        summed = entries.data > 0
        size = (structure.size, structure.size)
        places = (held[entries.row[summed]], entries.col[summed])
        down = sp.csr_array((entries.data[summed], places), shape=size)
        keep = sp.csr_array((np.ones(len(own)), (own, own)), shape=size)
        S, before = sp.csr_array(keep + down @ keep), keep
        while (S - before).count_nonzero():  # marginals of marginals
            S, before = sp.csr_array(keep + down @ S), S
        B = sp.csr_array(rows.A[rows.hi == 0] @ S[:, own])
        B.data[np.abs(B.data) < 1e-12] = 0.0
        B.eliminate_zeros()
        B = sp.csr_array(B[np.diff(B.indptr) > 0])
        return cls(own, sp.csr_array(S[:, own]), B, structure.table_of[own])

    @property
    def starts(self) -> Ints:
        return np.flatnonzero(np.r_[True, np.diff(self.table) != 0])
