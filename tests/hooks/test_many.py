"""Many processes: children of a process whose threads are busy, many users' programs in one directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from tracing import environment, events_of, write_program

from interpose.analysis.recording.ending import ending
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

STORM = """
    import os, subprocess, sys, threading, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, of forks where there are threads
    sys.setswitchinterval(1e-4)
    forks, spawns = int(sys.argv[1]), int(sys.argv[2])
    nothing = os.open(os.devnull, os.O_WRONLY)
    over = False
    def busy():
        while not over:
            os.write(nothing, b"x")
            sum(range(2000))
    threads = [threading.Thread(target=busy) for _ in range(16)]
    for thread in threads: thread.start()
    wrong = 0
    for number in range(forks):
        child = os.fork()
        if child == 0:
            os.write(nothing, b"child")
            os._exit(number % 200)
        wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != number % 200
    for number in range(spawns):
        code = f"import os; os._exit({number % 200})"
        wrong += subprocess.call([sys.executable, "-c", code]) != number % 200
    over = True
    for thread in threads: thread.join()
    print(wrong)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "forks, spawns", [(60, 6), pytest.param(2000, 500, marks=[pytest.mark.slow, pytest.mark.reach])]
)
def test_children_of_a_process_with_busy_threads_are_all_there_and_once(traced, forks, spawns):
    done = traced(STORM, str(forks), str(spawns), timeout_s=500)
    experiment = done.experiment
    children = experiment.processes[1:]

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    expected = {f"_f{number}" for number in range(1, forks + 1)} | {f"_c{number}" for number in range(1, spawns + 1)}
    assert {child.lineage for child in children} == expected
    assert len(experiment.founder.children) == forks + spawns
    assert experiment.founder.not_followed == []
    for child in children:
        attempt = child.started_as
        assert attempt is not None
        assert attempt.record.pid == child.log.pid
        assert attempt.exit_status == ending(child).status
        if attempt.record.number:
            assert attempt.exit_status == (attempt.record.number - 1) % 200
            assert [event.bytes for event in events_of(child, "os.write")] == [5]
    calls = Counter((event.thread, event.call) for event in events_of(experiment.founder))
    assert set(calls.values()) == {1}
    assert len(calls) == sum(thread.record.recorded for thread in experiment.founder.threads)
    assert experiment.damages.found == []


USERS = 20


LENT = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def as_user(user, *options):
    """The words before a command that another user runs."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *options]


def options_for_users():
    """What lets other users run our interpreter, which may be one that only we may read."""
    for options in ([], LENT):
        words = as_user(50_000, *options)
        # One that cannot read its virtual environment runs without it, and so without us.
        if subprocess.run([*words, sys.executable, "-c", "import interpose"], capture_output=True).returncode == 0:
            return options
    pytest.skip("other users cannot run this interpreter")


@pytest.mark.long
@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root becomes other users")
def test_programs_of_many_users_at_once_share_a_directory():
    options = options_for_users()
    directory = Path(tempfile.mkdtemp())
    try:
        directory.chmod(0o755)
        shared = directory / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        program = write_program(directory, "import os\nif os.fork() == 0: os._exit(3)\nos.wait()\nprint(os.getuid())")
        variables = environment(INTERPOSE="1", INTERPOSE_DIR=str(shared), XDG_STATE_HOME="/nonexistent")
        users = range(50_000, 50_000 + USERS)
        running = [
            subprocess.Popen(
                [*as_user(user, *options), sys.executable, str(program)],
                cwd=shared,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for user in users
        ]
        outcomes = [(each.communicate(timeout=60), each.returncode) for each in running]
        found = [Experiment(path) for path in names.list_experiments(str(shared))]
        owners = [os.stat(each.directory) for each in found]
    finally:
        shutil.rmtree(directory)

    assert outcomes == [((f"{user}\n", ""), 0) for user in users]
    assert sorted(owner.st_uid for owner in owners) == list(users)
    assert {stat.S_IMODE(owner.st_mode) for owner in owners} == {0o700}
    assert [each.damages.found for each in found] == [[]] * USERS
    assert {tuple(process.lineage for process in each.processes) for each in found} == {("", "_f1")}
