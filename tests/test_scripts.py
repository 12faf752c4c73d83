"""First scripts: each at most 30 lines, at library defaults, and what they find out is right."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parent / "scripts"
TRUTH = {  # the generators' weights, in the order of the features
    "knapsack": [2.0, 1.0, -0.5],
}


def run(name):
    path = SCRIPTS / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 30
    return runpy.run_path(str(path))


@pytest.mark.parametrize("name", TRUTH)
def test_own_solvers_learn_to_decide(name, capsys):
    found = run(name)
    model = found["model"]
    assert model.converged_
    assert 0 <= found["regret"] <= 0.02
    assert np.array_equal(np.sign(model.coef_), np.sign(TRUTH[name]))
    assert np.array_equal(np.argsort(model.coef_), np.argsort(TRUTH[name]))
    printed = capsys.readouterr().out
    assert all(feature in printed for feature in model.feature_names)


def test_superpixels_are_labelled_beside_void(capsys):
    found = run("superpixels_void")
    graphs, labels, model = found["graphs"], found["labels"], found["model"]
    assert model.converged_
    assert found["error"] < 0.12
    assert found["picture"].shape == (24, 32)
    from mlestruct import GraphModel

    alone = [(g.nodes, []) for g in graphs]
    plain = GraphModel(void=255).fit(alone[:30], labels[:30])
    assert found["error"] <= 1 - plain.score(alone[30:], labels[30:])
    assert "alike: same label" in capsys.readouterr().out


def test_a_binary_table_has_a_coupling_with_an_interval(capsys):
    found = run("binary_table")
    assert found["model"].converged_
    assert 0 < found["coupling"].low < 0.8 < found["coupling"].high < 1.2
    assert found["error"] < 0.3
    assert "equal against unequal neighbours" in capsys.readouterr().out


FRESH = {
    "spanning_trees": lambda found: 0 <= found["regret"] <= 0.01,
    "papers": lambda found: min(found["sure"][name].low for name in ("rating", "topic")) > 0,
    "several_labels": lambda found: (
        found["right"] > 0.6 and found["search"].best_params_ != {"multilabelmodel__alpha": 100.0}
    ),
    "tagged_words": lambda found: found["report"].f1 > 0.95,
    "hall": lambda found: (
        found["locked"] in [(p.a, p.b) for p in found["plan"].pairs]
        and "Up early?" in (found["folder"] / "report.html").read_text(encoding="utf-8")
    ),
}
"""Written by new users from the manual alone → what each of them finds."""


@pytest.mark.parametrize("name", FRESH)
def test_what_new_users_wrote_runs(name):
    for package in {"spanning_trees": ["networkx"]}.get(name, []):
        pytest.importorskip(package)
    for package in ("pandas", "sklearn"):
        pytest.importorskip(package)
    found = run(name)
    assert found["model"].converged_
    assert FRESH[name](found)
