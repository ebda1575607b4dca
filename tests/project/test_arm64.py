"""tools/arm64: what it says where it cannot build for arm64, and how a command reaches the emulated system."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

MACHINE = platform.machine()
pytestmark = pytest.mark.skipif(MACHINE != "x86_64", reason=f"it runs on x86-64, not on {MACHINE}")

SCRIPT = Path(__file__).parents[2] / "tools" / "arm64"
STAND_IN = '#!/bin/sh\nfor word; do last=$word; done\necho "of $0: $last"\nexit 3\n'
NEEDED = ("apt-get", "dpkg-deb", "unshare", "chroot")


def arm64(*words, **variables):
    done = [sys.executable, "-B", str(SCRIPT), *words]
    return subprocess.run(done, capture_output=True, text=True, env={**os.environ, **variables})


@pytest.fixture
def commands(tmp_path):
    """A directory with a stand-in for each command that the script needs."""
    directory = tmp_path / "commands"
    directory.mkdir()
    for name in NEEDED:
        (directory / name).write_text(STAND_IN)
        (directory / name).chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("words", "said"),
    [(["three"], "three: not a version such as 3.13"), (["--keep", "3.13"], "which command?")],
)
def test_what_it_cannot_do_is_refused_by_name(words, said):
    done = arm64(*words)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"tools/arm64: error: {said}"


def test_what_it_lacks_is_told_in_a_line_with_the_package(tmp_path):
    done = arm64("3.13", PYTHONS_CACHE=str(tmp_path), PATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/arm64: no apt-get here: install the package apt\n"


def test_it_builds_with_the_same_version_of_python(tmp_path, commands):
    done = arm64("3.13", PYTHONS_CACHE=str(tmp_path), PATH=str(commands))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/arm64: no python3.13 here to build with; tools/pythons 3.13 fetches one\n"


def test_it_does_not_build_with_a_command_that_is_no_interpreter(tmp_path, commands):
    shim = commands / "python3.13"  # as that of pyenv where another version is chosen
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    done = arm64("3.13", PYTHONS_CACHE=str(tmp_path), PATH=str(commands))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/arm64: no python3.13 here to build with; tools/pythons 3.13 fetches one\n"


def test_a_command_runs_in_a_namespace_of_its_own_and_gives_its_exit_code(tmp_path, commands):
    done = arm64("--keep", "3.13", "python", "-c", "print(1)", PYTHONS_CACHE=str(tmp_path), PATH=str(commands))

    assert (done.returncode, done.stdout, done.stderr) == (3, f"of {commands}/unshare: print(1)\n", "")
