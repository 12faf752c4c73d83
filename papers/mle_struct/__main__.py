"""python -m papers.mle_struct EXPERIMENT: the 2016 paper's experiments, run again."""

import sys

from papers._run import main
from papers.mle_struct.denoising import denoising
from papers.mle_struct.density import density
from papers.mle_struct.horses import horses, horses_80
from papers.mle_struct.house import hotel, house
from papers.mle_struct.inference import crossing, inference
from papers.mle_struct.markets import markets
from papers.mle_struct.permanents import permanents
from papers.mle_struct.planar import planar
from papers.mle_struct.roommates import roommates
from papers.mle_struct.rules import rules, sweeps

EXPERIMENTS = {
    "house": house,
    "hotel": hotel,
    "rules": rules,
    "sweeps": sweeps,
    "permanents": permanents,
    "inference": inference,
    "crossing": crossing,
    "denoising": denoising,
    "horses": horses,
    "horses_80": horses_80,
    "roommates": roommates,
    "markets": markets,
    "planar": planar,
    "density": density,
}

if __name__ == "__main__":
    sys.exit(main("mle_struct", EXPERIMENTS))
