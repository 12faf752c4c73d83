"""Contrastive free energies: the objectives between pseudo-likelihood and maximum likelihood."""

from mlestruct.objectives.contrastive.base import Contrastive, Relaxation, Relaxed
from mlestruct.objectives.contrastive.bethe import BetheSteps
from mlestruct.objectives.contrastive.composite import BlockSteps
from mlestruct.objectives.contrastive.frank_wolfe import FrankWolfeSteps
from mlestruct.objectives.contrastive.gibbs import GibbsSteps
from mlestruct.objectives.contrastive.limit import Limit
from mlestruct.objectives.contrastive.mean_field import MeanFieldSteps
from mlestruct.objectives.contrastive.trees import TreeSteps

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
