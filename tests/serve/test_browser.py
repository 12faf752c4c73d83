"""The page in a real browser: dropped files to a plan, by the keyboard alone, wide and narrow.

Where MLESTRUCT_PICTURES names a folder, what is seen is kept there, for the manual.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from axe_core_python import base as axe

from mlestruct import data
from mlestruct.cli import main
from mlestruct.roommates.project import Project
from mlestruct.roommates.server import Server
from mlestruct.roommates.words import PAGE
from tests.serve.webdriver import Browser

NASTY = "<img src=x onerror=alert(1)>"
AXE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
WIDE = "const r = document.documentElement; return r.scrollWidth - r.clientWidth"
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
    """Files, columns, fit, plan, a swap that is read and done; no error in the console."""
    with Server(Project.own(tmp_path / "project")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(tmp_path / "profile", size) as browser:
            browser.open(server.address)
            _accessible(browser)
            for kind in ("people", "pairs"):
                _drop(browser, kind, files / f"{kind}.csv")
            browser.wait("return !document.getElementById('columns').hidden")
            _accessible(browser)
            _press(browser, "learn")
            browser.wait("return document.querySelectorAll('.card').length === 20")
            _accessible(browser)
            assert NASTY in browser.run("return document.body.textContent")
            assert browser.run("return document.querySelectorAll('img').length") == 0
            homes = _homes(browser)
            browser.type("#first", homes[1][0])
            browser.type("#second", homes[2][0])
            _press(browser, "swap")
            told = browser.wait("return document.getElementById('cost').textContent")
            assert told.startswith(PAGE["cost"].partition("{")[0])
            _accessible(browser)
            _picture(browser, size, "cost", "first")
            _press(browser, "do")
            browser.wait("return document.querySelectorAll('#decisions li').length === 2")
            made = {frozenset(home) for home in _homes(browser)}
            (a, mine), (b, other) = homes[1:3]
            assert made >= {frozenset((a, other)), frozenset((b, mine))}
            assert _homes(browser, ".locked") == []
            _press(browser, "undo")
            browser.wait("return document.querySelectorAll('#decisions li').length === 0")
            assert {frozenset(home) for home in _homes(browser)} == set(map(frozenset, homes))
            browser.type("#rules", str(files / "people.csv"))  # no rules: refused on the page
            browser.wait("return document.querySelector('#said-rules.fault')")
            assert browser.run(WIDE) == 0
            toml = tmp_path / "project" / "roommates.toml"
            text = toml.read_text()
            toml.write_text("[")  # somebody's slip in an editor: said, and gone once it is mended
            browser.run("ask('')")
            browser.wait("return document.getElementById('fault').textContent.includes('project')")
            toml.write_text(text)
            browser.run("ask('')")
            browser.wait("return !document.getElementById('fault').textContent.includes('project')")
            assert browser.log() == []
        server.shutdown()


@pytest.mark.parametrize(("size", "scheme"), [((1280, 1000), "light"), ((360, 740), "dark")])
def test_the_report_is_accessible(tmp_path, size, scheme) -> None:
    main(["roommates", "--out", str(tmp_path)])
    with Browser(tmp_path / "profile", size) as browser:
        seen = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.emulate("setEmulatedMedia", {"features": seen})
        browser.open((tmp_path / "report.html").as_uri())
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        _accessible(browser)
        assert browser.run(WIDE) == 0
        assert browser.log() == []


@pytest.fixture(scope="module")
def workbook(tmp_path_factory):
    """The shipped example, as an office has it: one workbook, a sheet of people, one of pairs."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in ("people", "pairs"):
        sheet = book.create_sheet(name)
        with Path(data.shipped(f"roommates_{name}.csv")).open() as file:
            for line in file:
                cells = line.strip().split(",")
                sheet.append([int(c) if c.isdecimal() else c or None for c in cells])
    path = tmp_path_factory.mktemp("book") / "roommates.xlsx"
    book.save(path)
    return path


@pytest.mark.parametrize("cold", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_from_serve_to_a_plan_within_a_minute(workbook, tmp_path, cold) -> None:
    """The command, the shipped example as a workbook, one button: the plan; kernels cold too.

    CPU seconds of the server and of what it compiles beside: a busy machine does not matter.
    """
    environment = {**os.environ}
    command = [sys.executable, "-m", "mlestruct", "roommates", "serve", "--no-browser"]
    command += ["--project", str(tmp_path / "project")]
    with Browser(tmp_path / "profile", (1280, 1000)) as browser:
        before, began = _spent(), time.monotonic()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            browser.open(server.stdout.readline().split()[1])
            _picture(browser, (1280, 1000), "files")
            for kind in ("people", "pairs"):
                _drop(browser, kind, workbook)
                box = f"const box = document.querySelector('#{kind} ~ form select');"
                changed = "box.dispatchEvent(new Event('change', {bubbles: true}))"
                browser.run(f"{box} box.value = '{kind}'; {changed}")
                browser.wait(f"return document.querySelector('#said-{kind}.said')?.textContent")
            browser.wait("return !document.getElementById('columns').hidden")
            _picture(browser, (1280, 1000), "columns", "columns")
            _press(browser, "learn")
            if cold:
                browser.wait("return document.getElementById('bar')", 10)
                _picture(browser, (1280, 1000), "learning", "learn")
            browser.wait("return document.querySelectorAll('.card').length === 100", 240)
            seconds = time.monotonic() - began
            _picture(browser, (1280, 1000), "plan", "plan")
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()
        sys.stdout.write(f"{seconds:.1f} s from serve to the plan\n")
        assert _spent() - before < (120 if cold else 60)
        assert browser.log() == []


def _accessible(browser: Browser) -> None:
    """No violation that axe-core calls serious or critical."""
    browser.run(AXE)
    violations = browser.run("return axe.run().then(found => found.violations)")
    assert not [
        (one["id"], [node["html"] for node in one["nodes"]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]


def _spent() -> float:
    """CPU seconds of the processes that were started and have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _drop(browser: Browser, kind: str, path: Path) -> None:
    """A file into its field, until the page says how it was read."""
    browser.type(f"#{kind}", str(path))
    browser.wait(
        f"const said = document.getElementById('said-{kind}').textContent;"
        "return said && said !== 'reading …'"
    )


def _homes(browser: Browser, more: str = "") -> list[list[str]]:
    """Who shares, by the cards."""
    return browser.run(
        f"return [...document.querySelectorAll('.card{more} h3')]"
        ".map(h => h.textContent.split(' + '))"
    )


def _press(browser: Browser, name: str) -> None:
    _reach(browser, name)
    browser.keys(ENTER)


def _picture(browser: Browser, size: tuple[int, int], name: str, top: str = "") -> None:
    """Keep what is seen, from the element ``top`` on."""
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
