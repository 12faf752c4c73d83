"""The command line; every command's machinery is imported only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mlestruct.cli import check, infer, roommates


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mlestruct …``; returns the exit code: 2 for whatever the user can put right."""
    parser = argparse.ArgumentParser(
        prog="mlestruct", description="Learn who goes with whom, and prove how well it was learned."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (roommates, check, infer):
        command.add(commands)
    given = parser.parse_args(arguments)
    try:
        return int(given.run(given))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refused(f"{where}{error.strerror or error}")
    except ValueError as error:
        return _refused(str(error))
    except KeyboardInterrupt:
        print("mlestruct: stopped", file=sys.stderr)
        return 130


def _refused(why: str) -> int:
    print(f"mlestruct: {why}", file=sys.stderr)
    return 2
