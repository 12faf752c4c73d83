"""An office's September in a browser: what was decided outlives corrected tables, or is listed."""

import shutil
import threading

import numpy as np
import pytest

from mlestruct.roommates.project import Project
from mlestruct.roommates.server import Server
from tests.laws.test_office_decisions import Office, crossing
from tests.serve.webdriver import Browser

DRIVEN = shutil.which("chromedriver") and shutil.which("chromium")

pytestmark = pytest.mark.skipif(not DRIVEN, reason="no chromium with its driver on the PATH")


class Page:
    """What somebody at the page does, and what is seen there."""

    def __init__(self, browser, office, folder):
        self.browser, self.office, self.folder = browser, office, folder

    def drop(self):
        """Drop both tables as they are now, and wait until the columns are there."""
        for kind, path in zip(("people", "pairs"), self.office.files(self.folder), strict=True):
            self.browser.type(f"#{kind}", path)
            said = f"document.getElementById('said-{kind}').textContent"
            self.browser.wait(f"return {said} && {said} !== 'reading …'")

    def use(self, column, role):
        box = f"document.querySelector('[name=\"use:{column}\"]')"
        self.browser.run(f"{box}.value = {role!r}")

    def used(self):
        boxes = "[...document.querySelectorAll('[name^=\"use:\"]')]"
        return dict(self.browser.run(f"return {boxes}.map(b => [b.name.slice(4), b.value])"))

    def learn(self):
        self.browser.run("window.old = document.querySelector('#learn'); window.old.click()")
        self.browser.wait("return document.querySelector('#learn') !== window.old")
        self.browser.wait("return !document.querySelector('#learn').disabled")
        self.browser.wait("return !document.querySelector('#plan').hidden")
        assert not crossing(self.office, [sorted(home) for home in self.homes()])

    def homes(self, more=""):
        cards = f"[...document.querySelectorAll('.card{more} h3')]"
        found = self.browser.run(
            f"return {cards}.map(h => h.textContent.split(' · ')[0].split(' + '))"
        )
        assert {who for home in found for who in home} <= set(self.office.new)
        return {frozenset(home) for home in found}

    def lock(self, who):
        before = len(self.homes(".locked"))
        card = f"[...document.querySelectorAll('.card')].find(c => c.textContent.includes({who!r}))"
        self.browser.run(f"{card}.querySelector('button').click()")
        self.browser.wait(f"return document.querySelectorAll('.locked').length === {before + 1}")

    def part(self, home):
        """Keep two people apart, once what it costs was read."""
        before = self.homes()
        for place, who in zip(("first", "second"), sorted(home), strict=True):
            self.browser.run(f"document.getElementById({place!r}).value = {who!r}")
        self.browser.run("document.getElementById('apart').click()")
        self.browser.wait("return document.getElementById('do')")
        said = self.browser.run("return document.getElementById('cost').textContent")
        assert self.homes() == before
        known = len(self.decisions())
        self.browser.run("document.getElementById('do').click()")
        found = "document.querySelectorAll('#decisions li').length"
        self.browser.wait(f"return {found} === {known + 1}")
        assert home not in self.homes()
        assert all(who in said for new in self.homes() - before for who in new)

    def decisions(self):
        """Sentences on what was decided, and whether each is one that does not fit."""
        items = "[...document.querySelectorAll('#decisions li')]"
        return self.browser.run(f"return {items}.map(one => [one.textContent, one.className])")


def test_what_was_decided_on_the_page_outlives_corrected_tables(tmp_path):
    rng = np.random.default_rng(3)
    office = Office(rng, "two", "Geschl.")
    with Server(Project.own(tmp_path / "project")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(tmp_path / "profile") as browser:
            page = Page(browser, office, tmp_path / "tables")
            browser.open(server.address)
            page.drop()
            page.use("Geschl.", "same")
            page.use("q3", "ignore")  # a question that nobody wants to be asked about
            page.learn()
            locked = [sorted(home) for home in sorted(page.homes(), key=sorted)[:3]]
            for a, _ in locked:
                page.lock(a)
            free = [home for home in sorted(page.homes(), key=sorted) if sorted(home) not in locked]
            apart = [sorted(home) for home in free[:2]]
            for home in apart:
                page.part(frozenset(home))

            def holds(gone=()):
                homes, all_ = page.homes(), page.decisions()
                decisions = [one for one in all_ if "q1" not in one[0]]  # a column, once renamed
                assert len(decisions) == len(locked) + len(apart)
                for two in (*locked, *apart):
                    (unfit,) = [one for text, one in decisions if all(who in text for who in two)]
                    assert bool(unfit) == bool(set(two) & set(gone))
                    assert unfit or (frozenset(two) in homes) == (two in locked)

            by_id = {row["id"]: row for row in office.rows}
            by_id[locked[0][0]]["q1"] = str(rng.integers(1, 6))  # an answer is corrected
            office.add(2, 0)
            office.add(2, 1)
            page.drop()
            assert page.used()["Geschl."] == "same"
            assert page.used()["q3"] == "ignore"
            page.learn()
            holds()
            left = locked[1][0], apart[0][0]  # two people are removed
            office.rows = [row for row in office.rows if row["id"] not in left]
            page.drop()
            page.learn()
            holds(gone=left)
            for row in office.rows:  # a question has another name
                row["tidy"] = row.pop("q1")
            page.drop()
            assert [unfit for text, unfit in page.decisions() if "q1" in text] == ["first"]
            page.use("tidy", "ordinal")
            page.learn()
            holds(gone=left)
            assert browser.log() == []
        server.shutdown()
