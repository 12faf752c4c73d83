"""Screenshots for the manual: python docs/screenshots.py [BROWSER].

The example's report on a desk and on a telephone; the page, by its own test; and, where
`sphinx-build docs docs/_build` was run before, the manual's first page.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from mlestruct.cli import main

HERE = Path(__file__).resolve().parent
PICTURES, SITE = HERE / "pictures", HERE / "_build" / "index.html"
VIEWS = {  # of the report; 500 is Chromium's least width
    "report_top.png": (1100, 640),
    "report.png": (800, 2700),
    "report_phone.png": (500, 1600),
}
PAGE = ["serve_files_1280", "serve_columns_1280", "serve_plan_1280", "serve_cost_360"]


def take(browser: str = "chromium") -> None:
    """All of them."""
    with tempfile.TemporaryDirectory() as folder:
        main(["roommates", "--out", folder])
        page = (Path(folder) / "report.html").as_uri()
        for name, size in VIEWS.items():
            shoot(browser, page, PICTURES / name, size)
        if SITE.exists():
            shoot(browser, SITE.as_uri(), PICTURES / "landing.png", (1280, 1100))
        test = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            str(HERE.parent / "tests/serve/test_browser.py"),
        ]
        seen = {**os.environ, "MLESTRUCT_PICTURES": folder}
        subprocess.run(test, check=True, env=seen, cwd=HERE.parent)
        for name in PAGE:
            kept(Path(folder) / f"{name}.png", PICTURES / f"{name}.png")


def shoot(browser: str, page: str, picture: Path, size: tuple[int, int]) -> None:
    """The top of a page."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--window-size={size[0]},{size[1]}"]
    with tempfile.TemporaryDirectory() as profile:
        shot = [f"--user-data-dir={profile}", f"--screenshot={picture}", page]
        subprocess.run([browser, *options, *shot], check=True)
    kept(picture, picture)


def kept(seen: Path, picture: Path) -> None:
    """In few colours, so that it is small."""
    small = Image.open(seen).convert("P", palette=Image.Palette.ADAPTIVE)
    small.save(picture, optimize=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
