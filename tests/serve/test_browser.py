"""The page in a real browser: dropped files to a plan, by the keyboard alone, wide and narrow."""

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from mlestruct import data
from mlestruct.serve.project import Project
from mlestruct.serve.server import Server
from tests.serve.webdriver import Browser

NASTY = "<img src=x onerror=alert(1)>"
TAB, ENTER = "\ue004", "\ue007"
DRIVEN = shutil.which("chromedriver") and shutil.which("chromium")

pytestmark = pytest.mark.skipif(not DRIVEN, reason="no chromium with its driver on the PATH")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two years of 40 people as CSV files, one of them with markup for an id."""
    folder = tmp_path_factory.mktemp("files")
    people, pairs, _ = data.roommates(n=40, years=2, seed=2)
    first = people["id"][people["year"] == 2][0]
    for columns, names, name in ((people, ["id"], "people"), (pairs, ["id_a", "id_b"], "pairs")):
        for key in names:
            columns[key] = np.where(columns[key] == first, NASTY, columns[key].astype(object))
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("size", [(1280, 1000), (360, 740)])
def test_from_files_to_a_changed_plan(files, tmp_path, size) -> None:
    """Files, columns, fit, plan, a pair put together and a lock; no error in the console."""
    with Server(Project(tmp_path / "project")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(tmp_path / "profile", size) as browser:
            browser.open(server.address)
            for kind in ("people", "pairs"):
                browser.type(f"#{kind}", str(files / f"{kind}.csv"))
                browser.wait(
                    f"return document.querySelector('[data-kind={kind}] .said').textContent"
                )
            browser.wait("return !document.getElementById('columns').hidden")
            _picture(browser, size, "columns")
            _reach(browser, "learn")
            browser.keys(ENTER)
            browser.wait("return document.querySelectorAll('.card').length === 20")
            _picture(browser, size, "plan", "plan")
            words = browser.run("return document.body.textContent")
            assert NASTY in words
            assert browser.run("return document.querySelectorAll('img').length") == 0
            first, second = browser.run(
                "return [...document.querySelectorAll('.card h3')].slice(0, 2)"
                ".map(h => h.textContent.split(' + ')[0])"
            )
            browser.type("#first", first)
            browser.type("#second", second)
            _reach(browser, "ask")
            browser.keys(ENTER)
            told = browser.wait("return document.getElementById('cost').textContent")
            assert "total falls by" in told
            _picture(browser, size, "cost", "cost")
            _reach(browser, "together")
            browser.keys(ENTER)
            held = browser.wait(
                "const c = document.querySelector('.card.locked h3'); return c && c.textContent"
            )
            assert set(held.split(" + ")) == {first, second}
            wide = "const r = document.documentElement; return r.scrollWidth - r.clientWidth"
            assert browser.run(wide) == 0
            assert browser.log() == []
        server.shutdown()


def _picture(browser: Browser, size: tuple[int, int], name: str, top: str = "") -> None:
    """Keep what is seen, for the manual, where MLESTRUCT_PICTURES names a folder."""
    folder = os.environ.get("MLESTRUCT_PICTURES")
    if folder:
        if top:
            browser.run(f"document.getElementById('{top}').scrollIntoView()")
        browser.picture(Path(folder) / f"serve_{name}_{size[0]}.png")


def _reach(browser: Browser, name: str) -> None:
    """Tab from the page's start until the focus is on a button, as somebody without a mouse."""
    browser.run("document.activeElement.blur()")
    for _ in range(400):
        if browser.run("return document.activeElement.id") == name:
            return
        browser.keys(TAB)
    raise AssertionError(f"the keyboard does not reach {name}")
