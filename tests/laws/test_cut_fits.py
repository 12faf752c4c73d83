"""A fit that was cut short keeps what it learned, unless that is proven worse than nothing."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference import best, marginals
from mlestruct.learners import Interrupted
from mlestruct.learning.frank_wolfe import FrankWolfe
from mlestruct.oracle import Solver
from mlestruct.structures import BMatching, FactorGraph
from mlestruct.testing import vertices
from tests.listing import BruteForce
from tests.reference.descents import rounds
from tests.test_laws import STRUCTURES, listing

EXAMPLES = 4
TABLE = STRUCTURES | {"b-matching": BMatching(4, capacity=2), "general 6": ms.Matching(6)}
NAMES = [name for name, structure in TABLE.items() if len(vertices(structure)) > 3]
LEARNERS = ("mle_struct", "trw", "ssvm")
CUTS = ("rounds", "calls", "seconds", "ctrl-c")
CASES = [
    (name, learner, cut, rounds, alpha, spread, by)
    for name, learner, cut, rounds, alpha, spread, by in itertools.product(
        NAMES, LEARNERS, CUTS, (1, 2, 3, 5, 8, 12, 20), (1e-3, 0.1, 1.0), (0.5, 3.0), (False, True)
    )
    if learner != "trw" or isinstance(TABLE[name], FactorGraph)
]
LISTED = BruteForce(vertices)


def drawn(count):
    """As many cases, the same in every run."""
    rng = np.random.default_rng(0)
    return [CASES[k] for k in sorted(rng.choice(len(CASES), count, replace=False))]


def problem(structure, spread, seed=0):
    """Outcomes that three weights, 1, −.5 and .3, have much to say about."""
    rng = np.random.default_rng(seed)
    batch = ms.Batch.of(structure, count=EXAMPLES)
    X = rng.standard_normal((batch.size, 3))
    scores = spread * X @ [1.0, -0.5, 0.3] + rng.gumbel(size=batch.size)
    batch = ms.Batch.of(structure, best(batch, scores, LISTED)[0])
    return batch, ms.Dense.of(batch, X)


class Slow:
    """A user's solver that sleeps, or is interrupted after some calls."""

    def __init__(self, structure, pause=0.0, most=np.inf):
        self.best, self.pause, self.most, self.calls = listing(structure), pause, most, 0

    def __call__(self, score):
        self.calls += 1
        if self.calls > self.most:
            raise KeyboardInterrupt
        time.sleep(self.pause)
        return self.best(score)


def cut_fit(learner, batch, features, cut, rounds, alpha, own, make=FrankWolfe):
    """The dual of a fit and the weights that it ended with; None if no round was over."""
    structure, limits = batch.structures[0], {}
    solve = Slow(structure)
    if cut == "rounds":
        limits = {"rounds": rounds}
    elif cut == "calls":
        limits = {"calls": EXAMPLES * rounds}
    elif cut == "seconds":
        solve, limits = Slow(structure, pause=5e-4), {"seconds": 5e-4 * EXAMPLES * rounds}
    else:
        solve = Slow(structure, most=EXAMPLES * (rounds + 1))
    solver = make(tol=1e-12, **limits)
    oracle = Solver(solve) if own or cut in ("seconds", "ctrl-c") else LISTED
    made = getattr(ms.learners, learner)(regulariser=alpha, solver=solver, oracle=oracle)
    try:
        theta = made.fit(batch, features).theta
    except Interrupted as ended:
        theta = ended.model.theta
    except KeyboardInterrupt:
        return None
    return made.dual(batch, features), theta


def objective(dual, theta):
    """Bounds on R(θ) − ⟨θ, φ⟩ + Σ log Z(θ), or on the margin loss, over the listed outcomes."""
    batch, scores = dual.batch, dual.scores(theta)
    base = dual.regulariser.value(theta) - theta @ dual.observed
    base += 0.0 if batch.constant is None else batch.constant.sum()
    if dual.entropy.flat:
        rows = vertices(batch.structures[0])
        value = (scores.reshape(len(batch), -1) @ rows.T).max(axis=1).sum()
        return base + value, base + value
    plain = replace(batch, bias=0 * batch.bias, target=None, constant=None)
    found = marginals(plain, scores, LISTED, solver=FrankWolfe(tol=1e-4, rounds=300))
    return base + found.lower.sum(), base + found.upper.sum()


def holds(name, learner, cut, rounds, alpha, spread, own, make=FrankWolfe):
    batch, features = problem(TABLE[name], spread)
    ended = cut_fit(learner, batch, features, cut, rounds, alpha, own, make)
    if ended is None:
        return 0
    dual, theta = ended
    assert objective(dual, theta)[0] <= objective(dual, 0 * theta)[1] + 1e-9, "worse than nothing"
    assert learner == "ssvm" or theta.any(), "nothing was learned of what tells much"
    return 1


@pytest.mark.parametrize("case", drawn(60), ids=lambda case: "-".join(map(str, case)))
def test_no_cut_fit_is_worse_than_weights_of_0_nor_has_them(case):
    holds(*case)


OTHERS = {
    "no centre": partial(FrankWolfe, centre=False),
    "BCFW, fixed": partial(ms.BCFW, fixed=True),
    "BCFW, average": partial(ms.BCFW, average=True),
    "BCFW": ms.BCFW,
}


@pytest.mark.parametrize("solver", OTHERS)
def test_nor_has_one_by_other_steps(solver):
    cases = drawn(60)
    assert sum(holds(*case, OTHERS[solver]) for case in cases) > 0.5 * len(cases)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_no_cut_fit_is_worse_than_weights_of_0_nor_has_them_anywhere(name):
    cases = [case for case in drawn(3000) if case[0] == name]
    assert sum(holds(*case) for case in cases) > 0.5 * len(cases)


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_an_own_solver_that_was_cut_short_has_learned_and_says_what_its_gap_means(rounds):
    structure = TABLE["general 6"]
    batch, features = problem(structure, spread=3.0)
    X = np.stack([features.potentials(unit) for unit in np.eye(3)], axis=-1)
    X = X.reshape(EXAMPLES, structure.size, 3)
    y = batch.target.reshape(EXAMPLES, -1)
    model = ms.StructuredModel(oracle=listing(structure), max_rounds=rounds, tol=1e-9)
    with pytest.warns(ms.ConvergenceWarning, match="gap is what is proven"):
        model.fit(list(X), list(y))
    truth = np.array([1.0, -0.5, 0.3])
    assert model.coef_ @ truth > 0.8 * np.linalg.norm(model.coef_) * np.linalg.norm(truth)


@pytest.mark.parametrize("make", [FrankWolfe, ms.BCFW])
def test_the_last_weights_can_be_asked_for(make):
    """Every round has its own then, whatever is proven of them."""
    batch, features = problem(TABLE["perfect"], spread=3.0)
    more = {"every": 1} if make is ms.BCFW else {}
    found = {}
    for keep in ("best", "last"):
        solver = make(tol=0.0, rounds=7, keep=keep, **more)
        learner = ms.mle_struct(regulariser=1e-3, solver=solver, oracle=LISTED)
        found[keep] = [said.theta.copy() for said in rounds(learner, batch, features)]
    assert len({theta.tobytes() for theta in found["last"]}) == len(found["last"])
    with pytest.raises(ValueError, match="keep is one of best, last"):
        make(keep="first")
