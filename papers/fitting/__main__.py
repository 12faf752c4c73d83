"""python -m papers.fitting EXPERIMENT: the 2009 thesis's experiments, run again."""

import sys

from papers._run import main
from papers.fitting.chains import chains, curves
from papers.fitting.choices import choices
from papers.fitting.digits import digits, ink, iterations, strokes
from papers.fitting.entropies import early, entropies, settled
from papers.fitting.scenes import scenes
from papers.fitting.window import window

EXPERIMENTS = {
    "digits": digits,
    "ink": ink,
    "strokes": strokes,
    "iterations": iterations,
    "choices": choices,
    "entropies": entropies,
    "early": early,
    "settled": settled,
    "window": window,
    "chains": chains,
    "curves": curves,
    "scenes": scenes,
}

if __name__ == "__main__":
    sys.exit(main("fitting", EXPERIMENTS))
