"""Statistics of learned weights: intervals that hold, and how sure likelihoods are."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.statistics.affordability import affordable as affordable
    from mlestruct.statistics.annealing import Annealed as Annealed
    from mlestruct.statistics.annealing import annealed as annealed
    from mlestruct.statistics.evidence import Evidence as Evidence
    from mlestruct.statistics.identified import Identified as Identified
    from mlestruct.statistics.identified import Named as Named
    from mlestruct.statistics.interval import Interval as Interval
    from mlestruct.statistics.interval import Intervals as Intervals
    from mlestruct.statistics.interval import UnitLikelihood as UnitLikelihood
    from mlestruct.statistics.interval import intervals as intervals
    from mlestruct.statistics.interval import likelihood_of as likelihood_of
    from mlestruct.statistics.interval import problem as problem
    from mlestruct.statistics.likelihood import Likelihood as Likelihood

__getattr__, __all__ = lazily(__name__)
