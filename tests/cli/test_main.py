"""The command line: quick to say what it can do, plain about what it cannot."""

import json
import subprocess
import sys

import pytest

from mlestruct.cli import main

HEAVY = ["scipy.optimize", "scipy.sparse", "ortools", "networkx", "matplotlib", "sklearn"]
COMMANDS = [
    [],
    ["roommates"],
    *(["roommates", part] for part in ("fit", "assign", "evaluate", "explain")),
    ["check"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(['mlestruct', *command])} [-h]")


def test_help_loads_no_machinery():
    code = (
        "import sys, json\n"
        "from mlestruct.cli import main\n"
        "try: main(['roommates', 'fit', '--help'])\n"
        f"finally: print(json.dumps([m for m in {HEAVY} if m in sys.modules]), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stderr) == []


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["dance"])
    assert ended.value.code == 2
    assert "invalid choice: 'dance'" in capsys.readouterr().err
