"""``mlestruct roommates serve``: the same as a page in a browser, on this machine only."""

from __future__ import annotations

import argparse
from typing import Any

from mlestruct.cli.options import add_json, say, tell, whole


def add(parts: Any) -> None:
    """The command's options."""
    parser = parts.add_parser("serve", help="a page on this machine, from files to a plan")
    parser.add_argument(
        "--project", default="roommates-project", metavar="FOLDER",
        help="where files, choices and the model are kept; default: roommates-project",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=whole(0, 65535), default=0, metavar="N", help="default: any that is free"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from mlestruct.serve import serve

    def ready(address: str) -> None:
        say(given, f"open {address}", f"Ctrl-C ends it; {given.project} keeps everything")
        tell(given, address=address, project=given.project)
        if not given.no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(given.project, given.port, ready)
    return 0
