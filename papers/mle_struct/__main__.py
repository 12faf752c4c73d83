"""python -m papers.mle_struct EXPERIMENT: the 2016 paper's experiments, run again."""

import sys

from papers._run import main
from papers.mle_struct.density import density
from papers.mle_struct.house import house
from papers.mle_struct.inference import inference
from papers.mle_struct.markets import markets
from papers.mle_struct.permanents import permanents
from papers.mle_struct.planar import planar

EXPERIMENTS = {
    "house": house,
    "permanents": permanents,
    "markets": markets,
    "planar": planar,
    "density": density,
    "inference": inference,
}

sys.exit(main("mle_struct", EXPERIMENTS))
