"""Statistics of learned weights: intervals that hold, and how sure likelihoods are."""

from mlestruct.statistics.affordability import affordable
from mlestruct.statistics.annealing import Annealed, annealed
from mlestruct.statistics.identified import Identified, Named
from mlestruct.statistics.interval import Interval, Intervals, Problem, intervals
from mlestruct.statistics.likelihood import Likelihood
from mlestruct.statistics.problems import advice, problem

__all__ = [
    "Annealed",
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
    "problem",
]
