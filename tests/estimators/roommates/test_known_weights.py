"""Real answers, pairings drawn from known weights: the benchmark's rows, and the exact estimate."""

import numpy as np

from benchmarks.roommates import known
from mlestruct import RoommateModel
from mlestruct.tables import table

# Maximum likelihood from the first year by Newton steps on long Markov chains, as the data's
# description has it: an independent method, and no surrogate.
EXACT = (-0.804, -0.765, -0.179, -0.293, -0.400, 0.024, -0.172, -0.205, 0.029, -0.347, -0.240,
         -0.028, -0.085, -0.000)  # fmt: skip


def test_the_benchmark_meets_its_targets(shared_data) -> None:
    rows = {row["quantity"]: row for row in known()}
    assert rows["largest |weight − truth|, in errors"]["met"]
    assert rows["AUC of next year's pairs by score"]["met"]


def test_weights_are_near_the_exact_maximum_likelihood_estimate(shared_data) -> None:
    folder = shared_data / "roommates_semisynthetic"
    people, pairs = table(folder / "students.csv"), table(folder / "pairings.csv")
    first = pairs.rows(pairs["year"] == 1)
    there = np.isin(people["id"], np.concatenate([first["id_a"], first["id_b"]]))
    for rho in (0.5, 1.0):
        model = RoommateModel(same="gender", ordinal="q*", alpha=1e-3, rho=rho)
        model.fit(people.rows(there), first)
        errors = [row.error for row in model.known_.told.rows]
        assert (np.abs(model.coef_ - EXACT) < 0.2 * np.array(errors)).all()
