"""In a free-threaded interpreter calls are recorded and the lock stays off; what is not there is told."""

import subprocess
import sys
from collections import Counter

import pytest
from tracing import environment

from interpose.experiments.metadata import names

pytestmark = pytest.mark.skipif("t" not in sys.abiflags, reason="not a free-threaded interpreter")
NOT_YET = "not yet in a free-threaded interpreter"
PROGRAM = """
import interpose, os, sys, threading
def look():
    for _ in range(100): os.stat("/")
with interpose.transaction("x"):
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(sys._is_gil_enabled())
"""
AWAITING = """
import asyncio, os, sys
@__import__("interpose").transaction("whole")
async def work():
    os.stat("/")
    await asyncio.sleep(0.001)
    os.stat("/tmp")
async def all_of_it():
    await asyncio.gather(*[work() for _ in range(3)])
asyncio.run(all_of_it())
print(sys._is_gil_enabled())
"""


def run(*words, **variables):
    done = subprocess.run(
        [sys.executable, "-W", "error", *words], env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_calls_are_recorded_and_the_lock_stays_off(traced):
    done = traced(PROGRAM, PYTHONWARNINGS="error")

    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert Counter(event.thread for event in done.events("os.stat") if event.stack) >= Counter({2: 100, 3: 100})
    assert done.details("interpose.transaction") == ["x"]
    assert len(done.events("os.stat")) >= 400


def test_the_command_records_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("-m", "interpose", "run", "--", sys.executable, "-c", PROGRAM)

    assert done.stdout == "False\n"
    assert names.newest(str(tmp_path))


def test_what_is_awaited_is_not_recorded_and_the_report_says_so(traced, interpose):
    done = traced(AWAITING)

    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert done.events("interpose.transaction") == []
    assert done.details("os.stat").count("/tmp") == 3
    assert len({event.task for event in done.events("os.stat") if event.task}) == 3
    assert "awaits are not yet recorded in a free-threaded interpreter" in interpose("report", done.path).stdout


@pytest.mark.parametrize("wanted", ["lines", "coverage", "lines,coverage"])
def test_where_only_lines_or_coverage_are_wanted_nothing_is_recorded_and_why_is_told(tmp_path, monkeypatch, wanted):
    monkeypatch.chdir(tmp_path)
    done = run("-m", "interpose", "run", "--", sys.executable, "-c", PROGRAM, INTERPOSE=wanted)

    assert done.stdout == "False\n"
    assert NOT_YET in done.stderr
    assert not names.newest(str(tmp_path))


@pytest.mark.parametrize("wanted", ["lines", "coverage", "profile"])
def test_what_is_wanted_beside_calls_is_left_out_with_a_warning(traced, interpose, wanted):
    done = traced(PROGRAM, INTERPOSE=f"calls,{wanted}")

    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert len(done.events("os.stat")) >= 400
    assert f"{wanted}: {NOT_YET}" in interpose("report", done.path).stdout


def test_pytest_records_and_leaves_the_lock_off(tmp_path, monkeypatch):
    (tmp_path / "test_it.py").write_text("import sys\ndef test_it(): assert not sys._is_gil_enabled()\n")
    monkeypatch.chdir(tmp_path)
    done = run("-m", "pytest", "-p", "no:cacheprovider", "--interpose", "test_it.py")

    assert "1 passed" in done.stdout
    assert names.newest(str(tmp_path))
