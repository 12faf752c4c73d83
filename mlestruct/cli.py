"""The command line; every command's machinery is imported only when it runs."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from mlestruct import __version__
from mlestruct.errors import ConvergenceWarning, refuse_removed, visible
from mlestruct.roommates.commands import add, for_shell


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mlestruct …``; returns the exit code.

    2 for whatever the user can put right; 1 where ``--strict`` was given and something was warned
    of, such as a fit that has not converged.
    """
    parser = argparse.ArgumentParser(
        prog="mlestruct", description="Learn who goes with whom, and prove how well it was learned."
    )
    parser.add_argument("--version", action="version", version=f"mlestruct {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add(commands)
    try:
        written = sys.argv[1:] if arguments is None else arguments
        for words in (written[:1], written[:2]):
            refuse_removed(" ".join(["mlestruct", *words]))
        for argument in written:
            refuse_removed(argument.partition("=")[0])
        given = parser.parse_args(arguments)
        given.typed = ["mlestruct", *written]
        return _heard(given)
    except TimeoutError as error:
        return _refused(for_shell(str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refused(f"{where}{error.strerror or error}")
    except ValueError as error:
        return _refused(for_shell(str(error)))
    except KeyboardInterrupt:
        print("mlestruct: stopped", file=sys.stderr)
        return 130


def _heard(given: argparse.Namespace) -> int:
    """Run a command; its warnings are printed, and one of convergence fails a strict command."""
    missed = False

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        nonlocal missed
        missed |= issubclass(category, ConvergenceWarning)
        print(f"mlestruct: warning: {visible(for_shell(str(message)))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = show
        code = int(given.run(given))
    return max(code, 1) if missed and getattr(given, "strict", False) else code


def _refused(why: str) -> int:
    print(f"mlestruct: {visible(why)}", file=sys.stderr)
    return 2
