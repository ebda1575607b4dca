"""In a free-threaded interpreter nothing is recorded yet: it stays so, and who asked for a recording is told."""

import subprocess
import sys

import pytest
from tracing import environment

pytestmark = pytest.mark.skipif("t" not in sys.abiflags, reason="not a free-threaded interpreter")
WHY = "a free-threaded interpreter is not supported yet"
PROGRAM = """
import interpose, os, sys, threading
with interpose.transaction("x"):
    threads = [threading.Thread(target=os.stat, args=("/",)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(sys._is_gil_enabled())
"""


def run(*words, **variables):
    done = subprocess.run(
        [sys.executable, "-W", "error", *words], env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_program_runs_as_ever_and_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("-c", PROGRAM, INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))

    assert (done.stdout, done.stderr) == ("False\n", "")
    assert not list(tmp_path.glob("*.er"))


def test_the_command_runs_it_and_tells_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("-m", "interpose", "run", "--", sys.executable, "-c", PROGRAM)

    assert done.stdout == "False\n"
    assert [line for line in done.stderr.splitlines() if WHY not in line] == []
    assert WHY in done.stderr


def test_pytest_tells_why_and_leaves_the_lock_off(tmp_path, monkeypatch):
    (tmp_path / "test_it.py").write_text("import sys\ndef test_it(): assert not sys._is_gil_enabled()\n")
    monkeypatch.chdir(tmp_path)
    done = run("-m", "pytest", "-p", "no:cacheprovider", "--interpose", "test_it.py")

    assert f"interpose: nothing is recorded: {WHY}" in done.stdout
