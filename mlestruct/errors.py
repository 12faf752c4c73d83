"""The one exception of our own; everything else a user does wrong is a plain ValueError."""

from collections.abc import Sequence
from typing import Any


class Infeasible(ValueError):
    """No answer of the structure exists; the message names what makes it impossible.

    For matchings ``groups`` are odd sets of nodes that no allowed edge joins to each other, more
    of them than there are ``separators``, the nodes that could serve one each.
    """

    def __init__(
        self, message: str, separators: Sequence[Any] = (), groups: Sequence[Sequence[Any]] = ()
    ) -> None:
        super().__init__(message)
        self.separators, self.groups = separators, groups
