"""The script that fetches interpreters: what it says without fetching any."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

SCRIPT = Path(__file__).parents[2] / "tools" / "pythons"


def pythons(*words, **variables):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, env={**os.environ, **variables}
    )


def test_it_says_what_to_put_before_the_path(tmp_path):
    assert pythons("--path", PYTHONS_CACHE=str(tmp_path)).stdout == f"{tmp_path}/bin\n"


def test_one_that_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.14").touch()

    done = pythons("3.14", PYTHONS_CACHE=str(tmp_path), PATH="")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/bin/python3.14\n", "")


@pytest.mark.parametrize(("words", "said"), [(["three"], "three: not a version such as 3.14"), ([], "which version?")])
def test_what_is_no_version_is_refused_by_name(words, said):
    done = pythons(*words)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"tools/pythons: error: {said}"


def test_what_it_lacks_is_told_in_a_line_with_the_package(tmp_path):
    done = pythons("3.14", PYTHONS_CACHE=str(tmp_path), PATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/pythons: no apt-get here: install the package apt\n"
    assert not list(tmp_path.iterdir())
