"""Samples of a structure's distribution: independent and exact, by Markov chains, or perturbed."""

from mlestruct.inference.sampling.direct import Samples, as_draws, sample
from mlestruct.inference.sampling.front import perturb_and_map, sampler
from mlestruct.inference.sampling.gibbs import colouring, gibbs
from mlestruct.inference.sampling.swaps import sample_matchings

__all__ = [
    "Samples",
    "as_draws",
    "colouring",
    "gibbs",
    "perturb_and_map",
    "sample",
    "sample_matchings",
    "sampler",
]
