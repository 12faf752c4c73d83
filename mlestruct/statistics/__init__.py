"""Statistics of learned weights: intervals that hold, and how sure likelihoods are."""

from mlestruct.statistics.affordability import affordable
from mlestruct.statistics.annealing import Annealed, annealed
from mlestruct.statistics.evidence import Evidence
from mlestruct.statistics.identified import Identified, Named
from mlestruct.statistics.interval import Interval, Intervals, Problem, intervals
from mlestruct.statistics.likelihood import Likelihood
from mlestruct.statistics.problems import advice, likelihood_of, problem

__all__ = [
    "Annealed",
    "Evidence",
    "Identified",
    "Interval",
    "Intervals",
    "Likelihood",
    "Named",
    "Problem",
    "advice",
    "affordable",
    "annealed",
    "intervals",
    "likelihood_of",
    "problem",
]
