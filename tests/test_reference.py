"""`python -m tests.reference`: what passes, what must fail, what a bad file says."""

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest

from mlestruct.families.fitting.condensed import Condensed
from mlestruct.inference.exact import exact, outcomes
from mlestruct.structures import FactorGraph, Matching
from mlestruct.structures.batch import Batch
from tests import reference
from tests.reference import matchings as families
from tests.reference.__main__ import command
from tests.reference.cases import load
from tests.reference.solving import infer

SHIPPED = json.loads(reference.default_paths()[0].read_text())
CHEAP = ("permanent_3x3", "partial_bipartite_3x2", "ust_disconnected", "fw_first_step_chain")


def written(tmp_path: Path, cases: dict) -> Path:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"meta": {}, "cases": cases}))
    return path


def chosen(*names: str) -> dict:
    needed = {*names, *(SHIPPED["cases"][name].get("inputs_from") for name in names)} - {None}
    return {name: copy.deepcopy(SHIPPED["cases"][name]) for name in sorted(needed)}


def run(capsys, paths=(), **options) -> tuple[int, list[str]]:
    code = reference.main(paths, **options)
    return code, capsys.readouterr().out.splitlines()


def test_the_shipped_cases_pass(capsys):
    code, lines = run(capsys)
    assert [line for line in lines if "  failed" in line] == []
    assert code == 0
    assert lines[-1].split(" passed, ")[1].startswith("0 failed")
    missing = {line.split("  ")[0] for line in lines if line.endswith("not implemented")}
    kinds = {SHIPPED["cases"][name]["kind"] for name in missing}
    assert kinds.isdisjoint(reference.KINDS)
    assert not any("beyond the tolerance" in line for line in lines)


def leaves(value, place=()):
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*place, key))
    else:
        yield place


@pytest.mark.parametrize("name", CHEAP)
def test_every_corrupted_number_is_found(tmp_path, capsys, name):
    clean = chosen(name)
    parameters = reference.KINDS[clean[name]["kind"]][1]
    places = [p for p in leaves(clean[name]["expected"]) if p[-1] not in parameters]
    for place in places[:: max(1, len(places) // 6)]:
        broken = copy.deepcopy(clean)
        *path, last = place
        target = broken[name]["expected"]
        for step in path:
            target = target[step]
        target[last] += 1 if isinstance(target[last], int) else 1e-4 * max(1, abs(target[last]))
        code, lines = run(capsys, [written(tmp_path, broken)])
        assert code == 1, place
        assert ", 1 failed" in lines[-1], place


def test_unknown_kinds_are_listed_and_fail_when_strict(tmp_path, capsys):
    cases = chosen("ust_disconnected")
    cases["later"] = {"kind": "of_the_future", "inputs": {}, "expected": {"x": 1}, "tolerance": 1}
    cases["ust_disconnected"]["expected"]["new_quantity"] = 1.0
    path = written(tmp_path, cases)
    code, lines = run(capsys, [path])
    assert (code, lines[-1]) == (0, "2 passed, 0 failed, 2 skipped")
    assert "later  of_the_future  not implemented" in lines
    assert "ust_disconnected  new_quantity  not implemented" in lines
    assert run(capsys, [path], strict=True)[0::1][0] == 1
    assert run(capsys, [path], strict=True)[1][-1] == "2 passed, 2 failed"


def test_json_lines_parse(tmp_path, capsys):
    path = written(tmp_path, chosen("permanent_3x3", "ust_disconnected"))
    code, lines = run(capsys, [path, path], as_json=True)
    records = [json.loads(line) for line in lines]
    assert code == 0
    assert len(records) == 2 * (3 + 10 + 2)
    wanted = {"case", "quantity", "expected", "got", "error", "verdict"}
    assert all(wanted <= record.keys() for record in records)
    assert {record["verdict"] for record in records} == {"passed"}


def test_the_sandwich_of_likelihoods():
    """ℓ_RW(θ_RW) ≤ ℓ(θ_MLE) ≤ ℓ_B(θ_B), and both surrogates around ℓ at either optimum."""
    case = next(c for c in load(reference.default_paths()[0]) if c.kind == "mle_bipartite")
    got = {line.quantity: line.got for line in reference.check(case)}
    for lam in ("lam1.0", "lam0.2"):
        one = {name.split(".")[-1]: v for name, v in got.items() if name.startswith(lam)}
        assert one["rw_value"] <= one["hypertree_value"] <= one["exact_value"] <= one["bethe_value"]
        assert one["rw_value"] <= one["loglik_at_rw_theta"] <= one["bethe_loglik_at_rw_theta"]
        assert one["rw_loglik_at_bethe_theta"] <= one["loglik_at_bethe_theta"] <= one["bethe_value"]


KLEE16 = [
    *[(0, 7), (0, 10), (0, 13), (1, 2), (1, 4), (1, 8), (2, 5), (2, 9), (3, 4), (3, 6), (3, 11)],
    *[(4, 12), (5, 6), (5, 14), (6, 15), (7, 8), (7, 9), (8, 9), (10, 11), (10, 12), (11, 12)],
    *[(13, 14), (13, 15), (14, 15)],
]


def test_bethe_bounds_nothing_on_general_graphs():
    """A bridgeless cubic graph whose Bethe value exceeds log Z although τ = ⅓ lies in the hull."""
    structure = Matching(16, KLEE16)
    listed = outcomes(structure)
    assert len(listed) == 9
    assert exact(structure, np.zeros(24)).log_z == pytest.approx(math.log(9), abs=1e-12)
    from scipy.optimize import linprog

    columns = np.vstack([listed.T, np.ones(9)])
    weights = linprog(np.zeros(9), A_eq=columns, b_eq=np.append(np.full(24, 1 / 3), 1.0))
    assert weights.status == 0
    bethe = infer(structure, np.zeros(24), 1.0, families.HULL)
    at_third = bethe.dual.entropy.each(np.full(24, 1 / 3))[0]
    assert at_third == pytest.approx(2.3014565796142468, abs=1e-12)
    assert -bethe.objective + 1e-12 >= at_third - bethe.gap > math.log(9)
    counting = structure.counting(1.0)
    assert structure.bound(counting).kind == "none"


def test_every_entry_counts_its_own_clamps(tmp_path, capsys, rng):
    """Domke's algorithm 1 in plain NumPy: ε(c) = 1/(10c)² per entry, for every first iterate."""
    graph = FactorGraph([3, 2, 3], [(0, 1), (1, 2), (0, 2)])
    w, v = np.ones(graph.size), -20.0 * rng.normal(size=graph.size)
    rows = graph.constraints()
    A, d = rows.A.toarray(), rows.lo
    b, c, majorising = graph.interior(), np.ones(graph.size), True
    for steps in range(1, 20):
        before, slope, inverse = b, w * (np.log(b) - 1) + v, b / w / 2
        price = -np.linalg.lstsq((A * inverse) @ A.T, d + A @ (inverse * slope), rcond=1e-12)[0]
        b = -inverse * (slope + A.T @ price)
        low = b <= 0
        b[low] = 1 / (10 * c[low]) ** 2
        c[low] += 1
        batch = Batch.of(graph, count=1)
        cut = Condensed(early=steps).minimise(batch, -v, w).tau
        np.testing.assert_allclose(cut, b, rtol=1e-7, atol=1e-12)
        if majorising:
            ours = Condensed(steps=steps).minimise(batch, -v, w).tau
            np.testing.assert_allclose(ours, b, rtol=1e-8, atol=1e-12)
        # from a small move on Newton's method takes over, unless it is to be cut short
        majorising = majorising and np.abs(b - before).max() > 0.05
    assert c.max() > 2
    assert not majorising


def test_the_command_says_how_it_went(tmp_path, capsys):
    cases = chosen("ust_disconnected")
    cases["ust_disconnected"]["expected"]["n_components"] += 1
    assert command([str(written(tmp_path, cases))]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"
    assert command([str(written(tmp_path, chosen("ust_disconnected")))]) == 0
    assert command([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
