"""Fitting a loss of beliefs: through their optimum, or through so many iterations of messages."""
