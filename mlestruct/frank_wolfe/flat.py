"""Corrective passes where only R* is curved: a block's weights on its vertices are a small QP.

Without entropy and under a ridge one pairwise step changes the other vertices' scores by rows of
their moments' Gram matrix. So after one scoring a block takes as many steps as it has vertices, of
O(vertices) each, and its point and the weights θ follow once: ``step_quadratically``.
"""

from __future__ import annotations

import numpy as np

from mlestruct.native._door import AtomProducts, AtomSet

MORE, WORTH = 8, 0.01  # passes for each corrective one, and what the last gains, as in rounds


def gram_of(atoms: AtomSet, gram: AtomProducts | None = None) -> AtomProducts:
    """Room for the products of all vertices known, those of an earlier one kept."""
    blocks, most = len(atoms.known), int(atoms.known.max())
    if gram is not None and most <= gram.cap:
        return gram
    size = min(most + most // 2, atoms.cap)
    tag, product = np.zeros((blocks, size), dtype=np.int64), np.zeros((blocks, size, size))
    if gram is not None:
        tag[:, : gram.cap], product[:, : gram.cap, : gram.cap] = gram.tag, gram.product
    return AtomProducts(blocks, size, tag, product)
