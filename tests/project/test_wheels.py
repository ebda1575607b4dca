"""tools/wheels: which interpreters it builds for, and what it says where it cannot."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

SCRIPT = Path(__file__).parents[2] / "tools" / "wheels"


def wheels(*words, **variables):
    return subprocess.run([sys.executable, SCRIPT, *words], env=variables, capture_output=True, text=True)


def test_an_interpreter_that_is_not_there_is_told_in_a_line(tmp_path):
    done = wheels("-o", str(tmp_path), "/nonexistent/python", PATH=str(tmp_path))

    assert done.returncode == 1
    assert done.stderr == "tools/wheels: /nonexistent/python: No such file or directory\n"


def test_without_interpreters_it_says_so(tmp_path):
    script = SCRIPT.read_text().replace("/opt/python", str(tmp_path))
    (tmp_path / "wheels").write_text(script)

    done = subprocess.run(
        [sys.executable, tmp_path / "wheels"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert done.stderr == "tools/wheels: no interpreter from python3.11 on is there\n"
