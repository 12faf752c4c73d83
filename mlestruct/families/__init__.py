"""Learners of single papers: a folder each, which nothing imports; loaded by name."""
