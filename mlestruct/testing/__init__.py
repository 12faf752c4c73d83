"""The laws that structures, oracles and entropies obey; each check raises AssertionError in words.

For a structure or a solver of your own, small enough to list its outcomes:

>>> from mlestruct.structures import BipartiteMatching
>>> from mlestruct.oracle import load
>>> small = BipartiteMatching(3, kind="partial", forbidden=[(0, 1)])
>>> check_structure(small)
>>> check_oracle(load("assignment"), small)
>>> check_entropy(small, rho=0.5)
"""

from mlestruct.testing.entropies import check_entropy
from mlestruct.testing.listing import vertices
from mlestruct.testing.oracles import check_oracle
from mlestruct.testing.structures import check_structure

__all__ = ["check_entropy", "check_oracle", "check_structure", "vertices"]
