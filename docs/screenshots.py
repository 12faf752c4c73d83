"""Screenshots of the example's report, for the manual: python docs/screenshots.py [BROWSER]."""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from mlestruct.cli import main

PICTURES = Path(__file__).parent / "pictures"
VIEWS = {"report.png": (800, 2700), "report_phone.png": (500, 1600)}  # Chromium's least width


def take(browser: str = "chromium") -> None:
    """The top of the report, on a desk and on a telephone."""
    with tempfile.TemporaryDirectory() as folder:
        main(["roommates", "--out", folder])
        for name, (width, height) in VIEWS.items():
            options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            size = [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
            shot = f"--screenshot={PICTURES / name}"
            page = (Path(folder) / "report.html").as_uri()
            subprocess.run([browser, *options, *size, shot, page], check=True)
            picture = Image.open(PICTURES / name).convert("P", palette=Image.Palette.ADAPTIVE)
            picture.save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
