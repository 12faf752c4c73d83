"""``mlestruct roommates serve``: the same as a page in a browser, on this machine only."""

from __future__ import annotations

import argparse
from typing import Any


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    parser.add_argument(
        "--project", default="roommates-project", metavar="FOLDER",
        help="where files, choices and the model are kept; default: roommates-project",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    parser.add_argument(
        "--language", choices=("en", "de"), default="en",
        help="of the page, where none was chosen on it (default: en)",
    )  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from mlestruct.serve import serve

    def ready(address: str) -> None:
        print(f"open {address}\nCtrl-C ends it; {given.project} keeps everything", flush=True)
        if not given.no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(given.project, given.port, ready, given.language)
    return 0
