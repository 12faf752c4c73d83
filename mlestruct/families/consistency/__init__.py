"""CAMEL: maximum entropy over consistent clusters, and its dual over weights and multipliers."""
