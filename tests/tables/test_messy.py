"""Tables as offices send them: read with the clean table's weights, or refused with their place."""

import importlib.util

import numpy as np
import pytest

from benchmarks import _messy as messy
from mlestruct.tables import read

CLEAN = messy.clean()
CASES = list(messy.cases())


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The weights of the clean table, and of the one with blank answers."""
    found = {}
    for name, table, more in (
        ("clean", CLEAN, {}),
        ("blanked", messy.blanked(CLEAN), {"missing": "neutral"}),
    ):
        folder = tmp_path_factory.mktemp(name)
        given = messy.plain(more=more)(folder, table)
        found[name] = messy.fitted(given, folder).coef_
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_messy_tables(case, tmp_path, weights):
    if case.needs and importlib.util.find_spec(case.needs) is None:
        pytest.skip(f"needs {case.needs}")
    given = case.write(tmp_path, CLEAN)
    if case.says:
        with pytest.raises(ValueError, match=f"(?s){case.says}"):
            messy.fitted(given, tmp_path)
        return
    np.testing.assert_allclose(
        messy.fitted(given, tmp_path).coef_, weights[case.like], rtol=0, atol=1e-12
    )


def test_the_weights_are_worth_comparing(weights):
    assert np.abs(weights["clean"]).min() > 1e-3
    assert np.abs(weights["clean"] - weights["blanked"]).max() > 1e-3


@pytest.mark.parametrize(
    "number", [*range(8), pytest.param(range(8, 200), marks=pytest.mark.nightly)]
)
def test_mixtures_of_styles_are_read(number, tmp_path, weights):
    for k in [number] if isinstance(number, int) else number:
        given = messy.at_random(k).write(tmp_path, CLEAN)
        found = messy.fitted(given, tmp_path).coef_
        np.testing.assert_allclose(found, weights["clean"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_lines_in_quotes_as_a_whole_are_refused(sign, tmp_path):
    """They were a table of one column, in which ``check`` found no fault."""
    path, rows = tmp_path / "people.csv", ["id year q1", "1 2024 3", "2 2024 5"]
    path.write_text("".join(f'"{row}"\n'.replace(" ", sign) for row in rows))
    with pytest.raises(ValueError, match=r"people\.csv, line 1: every line is one cell, in quotes"):
        read(path)
    path.write_text('"name"\n"Doe, Jane, Dr"\n"Roe, John, Dr"\n')
    assert read(path).names == ["name"]
