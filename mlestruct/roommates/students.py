"""Students, their answers, and who chose to live with whom: a log-linear model of room-mates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlestruct.inference.sampling import sample_matchings
from mlestruct.structures import Matching
from mlestruct.structures.base import Array

Table = dict[str, NDArray[Any]]

QUESTIONS = tuple(f"q{k}" for k in range(1, 15))
CUTS = (-1.0, -0.35, 0.35, 1.0)  # q1..q12: levels 1..5 of a standard normal
YES = 0.5  # q13, q14: 1 above it, else 0
LOADING = 0.6  # question k follows trait k mod 3
TRAITS = 3
DIFFERENCE = (-0.5, -0.4, -0.3, -0.3, -0.2, -0.2, -0.15, -0.15, -0.1, -0.1, 0.0, 0.0, -0.8, -0.4)
ANSWERS = {("q2", 5, 5): 0.6, ("q4", 1, 5): -0.8, ("q9", 1, 1): 0.5, ("q14", 1, 1): 0.5}
BURN = 1000  # sweeps of the chain that draws a year's pairs; see tests/data/test_students.py


class Taste(NamedTuple):
    """Score of a pair = Σ_q difference_q|q_i − q_j| + Σ weights of the answer pairs they gave."""

    difference: Mapping[str, float]
    answers: Mapping[tuple[str, int, int], float]

    def scores(self, people: Mapping[str, NDArray[Any]]) -> Array:
        """(n × n), symmetric."""
        n = len(people[next(iter(self.difference))])
        total = np.zeros((n, n))
        for name, weight in self.difference.items():
            total += weight * np.abs(people[name][:, None] - people[name])
        for (name, a, b), weight in self.answers.items():
            first, second = people[name] == a, people[name] == b
            total += weight * (np.outer(first, second) | np.outer(second, first))
        return total


class Roommates(NamedTuple):
    """Columns by name, of people and of the pairs observed, and the weights that drew them."""

    people: Table
    pairs: Table
    truth: Taste


def roommates(n: int = 200, years: int = 3, seed: int = 0) -> Roommates:
    """Each year n new students answer 14 questions and pair up within their gender.

    people: ``id``, ``year`` (1, 2, …), ``gender`` (F, M), ``q1`` … ``q12`` (1 to 5) and ``q13``,
    ``q14`` (0 or 1). Answers are cut from normal variables of which .36 of the variance is one of
    three traits shared by every third question. pairs: ``id_a`` < ``id_b``, ``year``.

    A year's pairs are a draw of p(M) ∝ exp Σ_{ij in M} score(i, j) over the perfect matchings of
    each gender, with the scores of ``truth``: a Markov chain of two-edge swaps, from a uniform
    start, after 1,000 sweeps of one move per person. Time O(n) sweeps, memory O(n²).
    """
    if n < 2 or n % 2 or years < 1:
        raise ValueError(f"n={n}, years={years}: need an even n ≥ 2 and years ≥ 1")
    rng = np.random.default_rng(seed)
    truth = Taste(dict(zip(QUESTIONS, DIFFERENCE, strict=True)), ANSWERS)
    people = _people(n, years, rng)
    drawn = []
    for year in range(1, years + 1):
        for gender in ("F", "M"):
            group = np.flatnonzero((people["year"] == year) & (people["gender"] == gender))
            scores = truth.scores({name: people[name][group] for name in QUESTIONS})
            ids = people["id"][group[_pair_up(scores, rng)]]
            drawn.append(np.column_stack([ids, np.full(len(ids), year)]))
    listed = np.concatenate(drawn)
    listed = listed[np.lexsort((listed[:, 0], listed[:, 2]))]
    pairs = dict(zip(("id_a", "id_b", "year"), listed.T.copy(), strict=True))
    return Roommates(people, pairs, truth)


def _people(n: int, years: int, rng: np.random.Generator) -> Table:
    women = 2 * round(n / 4)
    gender = [rng.permutation(["F"] * women + ["M"] * (n - women)) for _ in range(years)]
    total = n * years
    people: Table = {
        "id": np.arange(1, total + 1),
        "year": np.repeat(np.arange(1, years + 1), n),
        "gender": np.concatenate(gender),
    }
    trait = rng.standard_normal((total, TRAITS))
    for k, name in enumerate(QUESTIONS):
        own = rng.standard_normal(total)
        latent = LOADING * trait[:, k % TRAITS] + np.sqrt(1 - LOADING**2) * own
        binary = k >= len(QUESTIONS) - 2
        people[name] = (latent > YES).astype(np.int64) if binary else 1 + np.digitize(latent, CUTS)
    return people


def _pair_up(scores: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """(pairs × 2) places, low one first: the chain's state after ``BURN`` sweeps."""
    n = len(scores)
    if n < 2:
        return np.zeros((0, 2), dtype=np.int64)
    matching = Matching(n)
    start = matching.encode(rng.permutation(n).reshape(-1, 2))
    low, high = matching.ends.T
    drawn = sample_matchings(matching, scores[low, high], 1, rng, burn=BURN, thin=1, start=start)
    return matching.ends[drawn.vertices[0] > 0.5].astype(np.int64)


def shipped(name: str) -> Path:
    """The path of a file of ``datasets/``: in the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_datasets", package.parent / "datasets"):
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"this installation lacks datasets/{name}")
