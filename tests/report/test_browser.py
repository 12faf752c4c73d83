"""report.html in a real browser: no error, every section seen, nothing wider than a telephone."""

import json
import re
import shutil
import subprocess

import pytest

from mlestruct import data
from mlestruct.estimators import RoommateModel
from mlestruct.roommates.report import Report
from mlestruct.tables import table

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
LONG = "GETS UP EARLY, AND SINGS"
PROBE = """<!DOCTYPE html><body><iframe id="f" src="report.html" style="width:360px;height:640px">
</iframe><script>
document.getElementById("f").onload = event => {
  const page = event.target.contentDocument, root = page.documentElement;
  const high = [...page.querySelectorAll("section")].map(s => [s.id, s.offsetHeight]);
  document.body.textContent = "@" + JSON.stringify({
    high, wide: root.scrollWidth - root.clientWidth,
  }) + "@";
};
</script>"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    return found


def test_report_in_a_browser(browser, tmp_path, sections):
    people, pairs, _ = data.roommates(n=40, years=2, seed=2)
    people[LONG] = people.pop("q1")
    before, after = (
        table({name: column[people["year"] == year] for name, column in people.items()})
        for year in (1, 2)
    )
    model = RoommateModel(cohort="year", same="gender", ordinal=["q*", LONG], alpha=10.0)
    Report.of(model.fit(before, pairs), after, table(pairs)).write(tmp_path)
    (tmp_path / "probe.html").write_text(PROBE)
    ran = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=5000",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            (tmp_path / "probe.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in ran.stderr
    seen = json.loads(re.search("@(.*)@", ran.stdout)[1])
    assert [name for name, _ in seen["high"]] == sections
    assert min(height for _, height in seen["high"]) > 50
    assert seen["wide"] == 0
