"""Readers: files and feature lists as others write them, into sequences and tied features."""

from mlestruct.readers.conll import read_columns
from mlestruct.readers.feature_dicts import Attributes, bio_chain, bio_rules

__all__ = ["Attributes", "bio_chain", "bio_rules", "read_columns"]
