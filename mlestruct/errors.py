"""The one exception of our own; everything else a user does wrong is a plain ValueError."""


class Infeasible(ValueError):
    """No answer of the structure exists; the message names what makes it impossible."""
