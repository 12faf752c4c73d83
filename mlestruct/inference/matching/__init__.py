"""Marginals of matchings at given counting numbers: scaling, belief propagation, Newton steps."""
