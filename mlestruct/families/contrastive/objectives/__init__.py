"""Contrastive free energies: the objectives between pseudo-likelihood and maximum likelihood."""

from mlestruct.families.contrastive.objectives.base import (
    BeforeAfter,
    Contrastive,
    EnergySteps,
    Limit,
)
from mlestruct.families.contrastive.objectives.bethe import BetheSteps
from mlestruct.families.contrastive.objectives.blocks import BlockSteps, TreeSteps
from mlestruct.families.contrastive.objectives.frank_wolfe import FrankWolfeSteps
from mlestruct.families.contrastive.objectives.mean_field import GibbsSteps, MeanFieldSteps

__all__ = [
    "BeforeAfter",
    "BetheSteps",
    "BlockSteps",
    "Contrastive",
    "EnergySteps",
    "FrankWolfeSteps",
    "GibbsSteps",
    "Limit",
    "MeanFieldSteps",
    "TreeSteps",
]
