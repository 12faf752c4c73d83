"""Readers: files and feature lists as others write them, into sequences and tied features."""

from mlestruct.readers.conll import read_columns
from mlestruct.readers.feature_dicts import Attributes, bio_chain, bio_rules
from mlestruct.readers.graphs import Graph, graph_of, region_labels

__all__ = [
    "Attributes",
    "Graph",
    "bio_chain",
    "bio_rules",
    "graph_of",
    "read_columns",
    "region_labels",
]
