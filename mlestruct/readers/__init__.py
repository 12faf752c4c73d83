"""Readers: files and feature lists as others write them, into sequences and tied features."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.readers import graphs as graphs
    from mlestruct.readers import images as images
    from mlestruct.readers.conll import read_columns as read_columns
    from mlestruct.readers.feature_dicts import Attributes as Attributes
    from mlestruct.readers.graphs import Graph as Graph
    from mlestruct.readers.graphs import from_networkx as from_networkx
    from mlestruct.readers.graphs import graph_of as graph_of
    from mlestruct.readers.graphs import region_labels as region_labels
    from mlestruct.readers.graphs import to_networkx as to_networkx

__getattr__, __all__ = lazily(__name__)
