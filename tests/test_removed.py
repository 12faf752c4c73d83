"""Names and settings that were removed say what serves instead."""

import pytest

import mlestruct as ms
from mlestruct.cli import main
from mlestruct.errors import REMOVED
from mlestruct.roommates.report import Report

USES = {
    "mlestruct.doctor": lambda: ms.doctor,
    "Report.of(language=)": lambda: Report.of(ms.RoommateModel(), [], language="de"),
}


@pytest.mark.parametrize("name", USES)
def test_a_removed_name_says_what_serves_instead(name):
    with pytest.raises((ValueError, ImportError)) as caught:
        USES[name]()
    assert str(caught.value) == f"{name} was removed: {REMOVED[name]}"


@pytest.mark.parametrize("command", ["assign people.csv", "serve"])
@pytest.mark.parametrize("language", ["--language de", "--language=en"])
def test_a_removed_option_says_what_serves_instead(command, language, capsys):
    assert main(["roommates", *command.split(), *language.split()]) == 2
    said = f"mlestruct: --language was removed: {REMOVED['--language']}\n"
    assert capsys.readouterr().err == said
