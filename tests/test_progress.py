"""What a person at the front reads: calls, where the time goes, what is proven, what is ahead."""

import sys
import time
import types

import numpy as np
import pytest

import mlestruct as ms
from mlestruct.progress import heading, in_notebook


@pytest.mark.parametrize("pace", [0.03, 0.2])
@pytest.mark.parametrize("now", [0.5, 0.0234, 1e-4])
def test_a_gap_that_falls_evenly_is_foretold(pace, now):
    """At a rate per call the next power of ten comes after log(gap / power) / rate more."""
    calls = np.arange(40)
    seen = [(c, now * np.exp(pace * (39 - c))) for c in calls]
    power = 10.0 ** (np.ceil(np.log10(now)) - 1)
    more = int(np.ceil(np.log(now / power) / pace - 1e-9))
    said = heading(seen)
    assert f"{power:.0e} in about" in said
    assert any(f"about {k} calls" in said for k in (more, more + 1))


def test_nothing_is_foretold_from_nothing():
    assert (
        heading([])
        == heading([(0, 1.0), (1, 0.5)])
        == heading([(c, np.inf) for c in range(30)])
        == ""
    )
    assert heading([(c, 0.3) for c in range(30)]) == ", no nearer lately"


def test_a_fit_says_what_its_solver_took(capsys):
    """In the bar, and afterwards in the result; never more than all the time there was."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 3, 3, 2)), [rng.permutation(3) for _ in range(4)]

    def solve(score):
        time.sleep(2e-3)
        from itertools import permutations

        table = score.reshape(3, 3)
        return max(permutations(range(3)), key=lambda p: table[range(3), list(p)].sum())

    model = ms.MatchingModel(oracle=solve, tol=1e-2, max_rounds=60, progress=True).fit(X, y)
    said = capsys.readouterr().err
    assert "s solver + " in said
    assert "proven to" in said
    assert 2e-3 * model.history_[-1][0] <= model.solver_seconds_ <= model.history_[-1][1]


class Notebook:
    """IPython as far as a progress display needs it: what was displayed, and what became of it."""

    def __init__(self):
        self.shown = []
        self.kernel = object()

    def display(self, found, display_id):
        assert display_id
        self.shown.append((repr(found), found._repr_html_()))
        return types.SimpleNamespace(update=lambda found: self.display(found, True))

    def install(self, monkeypatch):
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: self
        display = types.ModuleType("IPython.display")
        display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)


def test_a_notebook_shows_a_bar_and_text_where_there_is_no_html(monkeypatch, capsys):
    notebook = Notebook()
    notebook.install(monkeypatch)
    X, y = np.zeros((2, 3, 3, 1)), [np.arange(3)] * 2
    ms.MatchingModel(solver="frank_wolfe", max_rounds=5, progress=True).fit(X, y)
    assert capsys.readouterr().err == ""
    (begun, bar), *_, (text, last) = notebook.shown
    assert "at most" in begun
    assert "<progress" in bar
    assert "proven to" in text
    assert "proven to" in last


def test_only_a_kernel_is_a_notebook(monkeypatch):
    """Neither plain Python nor IPython in a terminal, whose shell has no kernel."""
    assert not in_notebook()
    notebook = Notebook()
    notebook.install(monkeypatch)
    assert in_notebook()
    notebook.kernel = None
    assert not in_notebook()
