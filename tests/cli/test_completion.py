"""A shell completes commands, options, their values and files by what `interpose completion` prints."""

import subprocess

import pytest

from interpose.cli.main import COMMANDS, main

pytestmark = [pytest.mark.any_python, pytest.mark.packages]

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_shtab_interpose
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def completed(tmp_path, capsys):
    """What bash offers for the last of some words."""
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)

    def complete(*words):
        command = ["bash", "-c", ASK, "bash", str(tmp_path / "script"), "interpose", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return set(done.stdout.split())

    return complete


def test_commands_are_completed(completed):
    assert set(COMMANDS) <= completed("")
    assert completed("exp") == {"export"}


def test_options_and_their_values_are_completed(completed):
    assert "--format" in completed("report", "--")
    assert {"perfetto", "pprof"} <= completed("export", "--to", "p")


def test_files_are_completed(completed, tmp_path):
    (tmp_path / "test.1.er").mkdir()

    assert "test.1.er" in completed("report", "te")


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_get_a_script_that_names_every_command(capsys, shell):
    pytest.importorskip("shtab")

    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
