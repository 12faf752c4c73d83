"""What an evaluation compares is of one kind: probabilities with probabilities, scores alike."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlestruct import RoommateModel
from mlestruct.inference.bounds import ProvenInterval
from mlestruct.roommates.evaluation import ALIKE, RULES, Held, evaluate
from mlestruct.roommates.report import picks

OF = {"logistic": "marginal", "random": "marginal", "constant": "score", "ceiling": "score"}


def data(seed: int):
    """People of two years who choose partners by two questions, as many differing as the seed."""
    rng = np.random.default_rng(seed)
    n, people, pairs = int(rng.integers(6, 16)), [], []
    for year in (1, 2):
        a, b = rng.integers(5, size=2 * n), rng.integers(3, size=2 * n)
        rows = [
            {"id": f"{year}-{i}", "year": year, "a": int(a[i]), "b": int(b[i])}
            for i in range(2 * n)
        ]
        free = list(range(2 * n))
        while free:
            i = free.pop(0)
            noisy = [-abs(rows[i]["a"] - rows[j]["a"]) + rng.gumbel() for j in free]
            j = free.pop(int(np.argmax(noisy)))
            pairs.append((rows[i]["id"], rows[j]["id"]))
        people += rows
    return people, pairs


def held(seed: int) -> tuple[RoommateModel, list[Held]]:
    people, pairs = data(seed)
    first = [p for p in people if p["year"] == 1]
    names = {p["id"] for p in first}
    model = RoommateModel(ordinal="a", categorical="b", alpha=0.1)
    model.fit(first, [pair for pair in pairs if pair[0] in names])

    def truth(columns):
        a = np.asarray(columns["a"], dtype=float)
        return -np.abs(a[:, None] - a)

    others = [p for p in people if p["year"] == 2]
    return model, model._held(others, [p for p in pairs if p[0] not in names], truth)[0]


def like_with_like(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = "mlestruct.roommates.evaluation"
    none = ProvenInterval(0.0, 0.0, "")
    monkeypatch.setattr(f"{evaluation}._log_likelihood", lambda one: none)
    _, groups = held(seed)
    found = evaluate(groups, [1], [])
    assert set(found.rules) == set(OF) == set(RULES) == set(ALIKE)
    for name, kind in OF.items():
        assert found.auc_lead[name] == found.auc[kind] - found.auc[name]
    said = str(found)
    for name, kind in OF.items():
        line = next(line for line in said.splitlines() if RULES[name] in line)
        assert f"the model's {kind}s are {found.auc_lead[name]:+.3f}" in line
    for own in ("marginal", "score"):
        same = [replaced(one, one.pairing.tau if own == "marginal" else one.score)
                for one in groups]  # fmt: skip
        tied = evaluate(same, [1], [])
        for name in {"logistic", "constant", "ceiling"} & {n for n in OF if OF[n] == own}:
            assert tied.auc_lead[name] == tied.auc_lead_error[name] == 0.0
    words = picks(found)
    shares = [int(n) for n in re.findall(r" (\d+) times", words)]
    assert shares[0] == round(100 * found.auc["marginal"])
    assert words.index("simple regression") < words.index("by its scores alone")
    assert words.index("by its scores alone") < words.index("without learning")
    assert words.index("without learning") < words.index("true rule")


def replaced(one: Held, values: np.ndarray) -> Held:
    """As if every rule had the model's own numbers, times four, which rounds nothing."""
    return one._replace(others=dict.fromkeys(one.others, 4.0 * values))


@pytest.mark.parametrize("seed", range(4))
def test_a_rule_is_compared_with_what_the_model_has_of_its_kind(seed, monkeypatch) -> None:
    like_with_like(seed, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4, 60))
def test_every_rule_is_compared_with_what_the_model_has_of_its_kind(seed, monkeypatch) -> None:
    like_with_like(seed, monkeypatch)


def test_a_perfect_regression_does_not_lead_the_marginals_it_equals() -> None:
    """The area of the regression's probabilities is that of its scores: one orders as the other."""
    _, groups = held(0)
    some = [one._replace(others={"logistic": one.others["logistic"]}) for one in groups]
    odds = [one._replace(others={"logistic": 1.0 / (1.0 + np.exp(-one.others["logistic"]))})
            for one in groups]  # fmt: skip
    assert evaluate(some, [1], []).auc["logistic"] == evaluate(odds, [1], []).auc["logistic"]
