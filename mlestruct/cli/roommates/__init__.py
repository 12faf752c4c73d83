"""``mlestruct roommates``: learn who shares with whom, and pair up the next cohort."""

from __future__ import annotations

from typing import Any

from mlestruct.cli.roommates import assign, evaluate, example, explain, fit, generate, serve


def add(commands: Any) -> None:
    """The command and its parts."""
    parser = commands.add_parser(
        "roommates",
        help="learn who shares with whom, pair up the next cohort; alone: a shipped example",
        description="Without a command: learn two years of a shipped example, predict the third.",
    )
    example.add(parser)
    parts = parser.add_subparsers(metavar="COMMAND")
    for part in (fit, assign, evaluate, explain, generate, serve):
        part.add(parts)
