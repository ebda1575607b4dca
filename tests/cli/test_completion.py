"""A shell completes commands, options, their values and files by what `interpose completion` prints."""

import os
import shutil
import subprocess

import pytest

from interpose.cli.main import COMMANDS, main

pytestmark = pytest.mark.packages

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


@pytest.mark.parametrize("shell", ["zsh", "tcsh", "fish"])
def test_other_shells_get_a_script_that_names_every_command(capsys, shell):
    if shell not in pytest.importorskip("shtab").SUPPORTED_SHELLS:
        pytest.skip(f"this shtab does not know {shell}")

    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)


def test_fish_completes_commands_and_options(tmp_path, capsys):
    if "fish" not in pytest.importorskip("shtab").SUPPORTED_SHELLS or not shutil.which("fish"):
        pytest.skip("no fish, or a shtab that does not know it")
    assert main(["completion", "fish"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)

    def completed(words):
        asked = ["fish", "--no-config", "-c", f"source script; complete -C '{words}'"]
        home = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path, env=home)
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    assert completed("interpose vi") == {"view"}
    assert "--format" in completed("interpose report --")


def test_a_shtab_that_does_not_know_the_shell_is_told_in_a_line(capsys, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("shtab"), "SUPPORTED_SHELLS", ["bash"])

    assert main(["completion", "fish"]) == 2
    assert capsys.readouterr().err == "interpose: this shtab does not know fish: pip install --upgrade shtab\n"
