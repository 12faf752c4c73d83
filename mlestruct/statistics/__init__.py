"""Statistics of learned weights: intervals that hold, and how sure likelihoods are."""

from mlestruct.statistics.affordable import affordable
from mlestruct.statistics.annealed import Annealed, annealed
from mlestruct.statistics.identified import Identified, Named
from mlestruct.statistics.intervals import Interval, Intervals, Problem, intervals
from mlestruct.statistics.likelihood import Likelihood
from mlestruct.statistics.problem import advice, problem

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
