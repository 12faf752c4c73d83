"""Marginals of labelled graphs at given counting numbers: messages, and bounds from them."""
