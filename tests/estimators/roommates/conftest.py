"""Small years of room-mates: people with three questions, and some pairing of them."""

import numpy as np
import pytest

from mlestruct import RoommateModel


def make_year(n, seed=0, first=1, year=1):
    """Ids from ``first`` on, a gender for every half, pairs of neighbours within a gender."""
    rng = np.random.default_rng(seed)
    people = [
        {
            "id": first + k,
            "year": year,
            "gender": "FM"[k >= n // 2],
            "tidy": int(rng.integers(1, 5)),
            "owl": int(rng.integers(0, 2)),
            "diet": ["any", "none", "meat"][rng.integers(3)],
            "essay": f"person {k}",
        }
        for k in range(n)
    ]
    pairs = [{"id_a": first + k, "id_b": first + k + 1, "year": year} for k in range(0, n - 1, 2)]
    return people, pairs


ROLES = {"ordinal": "tidy", "binary": "owl", "categorical": "diet"}


@pytest.fixture
def year():
    return make_year


@pytest.fixture(scope="session")
def fitted():
    """Two years of sixteen people, by gender."""
    (one, pairs), (two, more) = make_year(16, seed=1), make_year(16, seed=2, first=101, year=2)
    model = RoommateModel(cohort="year", same="gender", **ROLES)
    return model.fit(one + two, pairs + more)


def enumerate_matchings(people):
    """All perfect matchings of a list of people, as lists of pairs."""
    if not people:
        yield []
        return
    first, *rest = people
    for k, other in enumerate(rest):
        for more in enumerate_matchings(rest[:k] + rest[k + 1 :]):
            yield [(first, other), *more]


@pytest.fixture
def matchings():
    return enumerate_matchings
