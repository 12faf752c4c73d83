"""UAI files are read as written: tables, evidence, zeros, repeated and unary factors."""

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.inference.exact import exact
from mlestruct.readers.uai import infer, read, read_evidence

SMALL = """MARKOV
3
2 3 2
5
1 0
2 1 0
2 0 1
2 1 2
0
2
 .5 2
6
 1 2 3 4 5 6
6
 1 1 2 1 0 1
6
 .1 .2 .3 .4 .5 .6
1
 7
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.uai"
    path.write_text(SMALL)
    return path


def weight(a, b, c):
    first = np.array([[1, 2], [3, 4], [5, 6]])[b, a]
    second = np.array([[1, 1, 2], [1, 0, 1]])[a, b]
    return 7 * [0.5, 2][a] * first * second * np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])[b, c]


def test_a_file_means_the_product_of_its_tables(small):
    """log Z, marginals and best labelling of the product written out by hand."""
    weights = np.array([[[weight(a, b, c) for c in (0, 1)] for b in (0, 1, 2)] for a in (0, 1)])
    answer = infer(small, "PR")
    assert answer.method == "exact"
    assert float(answer.text.split()[1]) == pytest.approx(np.log10(weights.sum()), abs=1e-8)
    words = infer(small, "MAR").text.split()
    assert words[:3] == ["MAR", "3", "2"]
    assert float(words[3]) == pytest.approx(weights[0].sum() / weights.sum(), abs=1e-7)
    states = np.array(infer(small, "MPE").text.split()[2:], dtype=int)
    assert weights[tuple(states)] == weights.max()


def test_evidence_clamps(small, tmp_path):
    """The same product with one variable held; both ways of writing evidence."""
    for text in ("1 1 2", "1\n1 1 2\n"):
        path = tmp_path / "small.evid"
        path.write_text(text)
        assert read_evidence(path) == {1: 2}
        total = sum(weight(a, 2, c) for a in (0, 1) for c in (0, 1))
        found = float(infer(small, "PR", path).text.split()[1])
        assert found == pytest.approx(np.log10(total), abs=1e-8)
    path.write_text("0")
    assert read_evidence(path) == {}


def test_reweighted_messages_bound_from_above(small):
    """``trw`` says it is a bound, ``bp`` that it is none; this graph is a tree to both."""
    truth = float(infer(small, "PR").text.split()[1])
    upper = infer(small, "PR", method="trw")
    assert "exact" in upper.method or "upper" in upper.method
    assert float(upper.text.split()[1]) >= truth - 1e-9
    assert "no bound" in infer(small, "PR", method="bp").method


def test_larger_factors_and_clamped_zeros(tmp_path):
    """A factor of order three, in an order that is not sorted, with an entry of zero."""
    values = np.arange(12.0).reshape(2, 3, 2)
    path = tmp_path / "three.uai"
    path.write_text(f"MARKOV 3 3 2 2 1 3 2 0 1 12 {' '.join(map(str, values.ravel()))}")
    problem = read(path)
    assert float(np.exp(exact(problem.graph, problem.score).log_z)) == pytest.approx(values.sum())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("BAYESIAN 1 2 0", "not MARKOV or BAYES"),
        ("MARKOV 1 2 1 1 0 3 1 2 3", "factor 0 states 3 entries, its variables have 2"),
        ("MARKOV 1 2 1 1 0 2 1 -2", "negative or not finite"),
        ("MARKOV 1 2 1 1 0 2 1 x", "has the entry 'x'"),
        ("MARKOV 1 2 1 1 0 2 1", "ends too early"),
        ("MARKOV 1 2 1 1 0 2 1 2 3", "'3' is left over"),
        ("MARKOV 1 2 1 1 4 2 1 2", r"scope \[4\] among 1"),
        ("MARKOV one", "'one' stands where"),
        ("MARKOV 1 2 1 1 0 2 0 0", "variable 0 has no possible state"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, why):
    path = tmp_path / "wrong.uai"
    path.write_text(text)
    with pytest.raises(ValueError, match=why):
        infer(path)


def test_wrong_tasks_and_methods(small):
    with pytest.raises(ValueError, match="task is 'MAP'"):
        infer(small, "MAP")
    with pytest.raises(ValueError, match="method is 'magic'"):
        infer(small, method="magic")


@pytest.mark.parametrize(
    "name", ["Grids_11", "Grids_12", "CSP_11", *(f"Segmentation_{k}" for k in ["11", "12", "13"])]
)
def test_competition_files(shared_data, name):
    folder = shared_data / "uai" / "uai2014"
    path = folder / f"{name}.uai"
    found = infer(path, "PR", folder / f"{name}.uai.evid", method="exact").text.split()[1]
    stored = (folder / f"{name}.uai.PR").read_text().split()[1]
    assert float(found) == pytest.approx(float(stored), abs=6e-4)
    ours = np.array(infer(path, "MAR", method="exact").text.split()[1:], dtype=float)
    theirs = np.array((folder / f"{name}.uai.MAR").read_text().split()[1:], dtype=float)
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_small_grids_of_the_shared_data(shared_data):
    """Exact ≤ reweighted bound, close to the stored bound of random spanning trees."""
    for path in sorted((shared_data / "uai" / "grids_5x5").glob("*.uai"))[:4]:
        problem = read(path)
        batch = ms.Batch.of(problem.graph, count=1)
        with np.load(path.with_suffix(".npz")) as stored:
            found = exact(problem.graph, problem.score).log_z + problem.constant
            assert found == pytest.approx(float(stored["exact_log_z"]), abs=1e-4)
            upper = ms.marginals(batch, problem.score)
            assert found <= upper.upper[0] + problem.constant + 1e-9
            assert upper.upper[0] + problem.constant == pytest.approx(
                float(stored["trw_log_z"]), abs=0.15
            )
