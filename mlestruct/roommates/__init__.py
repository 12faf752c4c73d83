"""Room-mates: tables of people and pairs in; pairs, probabilities and explanations out."""

from typing import TYPE_CHECKING

from mlestruct.lazy import lazily

if TYPE_CHECKING:
    from mlestruct.roommates.evaluation import Evaluation as Evaluation
    from mlestruct.roommates.model import RoommateModel as RoommateModel
    from mlestruct.roommates.plan import Alternative as Alternative
    from mlestruct.roommates.plan import Contribution as Contribution
    from mlestruct.roommates.plan import Explanation as Explanation
    from mlestruct.roommates.plan import Pair as Pair
    from mlestruct.roommates.plan import Plan as Plan
    from mlestruct.roommates.plan import Single as Single

__getattr__, __all__ = lazily(__name__)
