"""Contrastive free energies: the objectives between pseudo-likelihood and maximum likelihood."""

from mlestruct.families.contrastive.objectives.base import Contrastive, Relaxation, Relaxed
from mlestruct.families.contrastive.objectives.bethe import BetheSteps
from mlestruct.families.contrastive.objectives.composite import BlockSteps
from mlestruct.families.contrastive.objectives.frank_wolfe import FrankWolfeSteps
from mlestruct.families.contrastive.objectives.gibbs import GibbsSteps
from mlestruct.families.contrastive.objectives.limit import Limit
from mlestruct.families.contrastive.objectives.mean_field import MeanFieldSteps
from mlestruct.families.contrastive.objectives.trees import TreeSteps

__all__ = [
    "BetheSteps",
    "BlockSteps",
    "Contrastive",
    "FrankWolfeSteps",
    "GibbsSteps",
    "Limit",
    "MeanFieldSteps",
    "Relaxation",
    "Relaxed",
    "TreeSteps",
]
