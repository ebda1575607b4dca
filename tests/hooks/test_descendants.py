"""Children are followed, however they are started, and do not see that they are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from families import lineages, run
from tracing import has_own_library, write_program

from interpose.analysis.recording.lineage import unfollowed, why_not
from interpose.config import state
from interpose.experiments.model.experiment import Experiment

DEBIANS = "/usr/bin/python3"
OPTIONS = ([], ["-I"], ["-E"], ["-S"], ["-I", "-S", "-E"])

# What each child is asked: its environment, where it imports from, its words, and which descriptors it has.
SAY = """
import json, os, sys
sys.stdout.write(json.dumps([dict(os.environ), sys.path, sys.argv, sorted(os.listdir("/proc/self/fd"))]))
"""

# Every way to start a program with every option of the interpreter and both environments, from one founder.
MATRIX = """
import json, os, subprocess, sys

interpreter, say, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def forked(start):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        start()
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said

def spawned(words, environment):
    reading, writing = os.pipe()
    child = os.posix_spawn(interpreter, words, environment, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said

results = {}
for option in options:
    words = [interpreter, *option, "-c", say, "x"]
    for name, given in (("inherited", None), ("empty", {})):
        mapping = os.environ if given is None else given
        label = f"{' '.join(option)} {name}"
        results[f"fork {label}"] = forked(lambda: os.execve(interpreter, words, mapping))
        results[f"spawn {label}"] = spawned(words, mapping)
        results[f"subprocess {label}"] = subprocess.run(words, env=given, capture_output=True, text=True).stdout
        assert mapping is os.environ or mapping == {}
print(json.dumps(results))
"""


def matrix(tmp_path: Path, interpreter: str, on: bool) -> dict[str, list]:
    program = write_program(tmp_path, MATRIX)
    words = (sys.executable, str(program), interpreter, SAY, json.dumps(OPTIONS))
    done = run(tmp_path / "run", *words, **({"INTERPOSE": "1"} if on else {}))
    assert (done.returncode, done.stderr) == (0, "")
    shutil.move(tmp_path / "run", tmp_path / ("on" if on else "off"))
    results = {label: json.loads(said) for label, said in json.loads(done.stdout).items()}
    for variables, *_ in results.values():
        variables.pop("INTERPOSE", None)
    return results


def version_of(interpreter: str) -> tuple[int, ...]:
    show = "import sys; print(*sys.version_info[:2])"
    return tuple(map(int, subprocess.run([interpreter, "-c", show], capture_output=True).stdout.split()))


@pytest.fixture
def debians() -> str:
    if not os.path.exists(DEBIANS) or not os.path.exists("/etc/debian_version"):
        pytest.skip("not a Debian with a python3 of its own")
    return DEBIANS


@pytest.mark.long
def test_every_child_is_followed_and_sees_nothing_of_it(tmp_path):
    off, on = matrix(tmp_path, sys.executable, on=False), matrix(tmp_path, sys.executable, on=True)

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10, "_f_x": 10, "_c": 20}
    assert not (tmp_path / "on" / "interpose").exists()


def test_an_interpreter_that_has_no_interpose_is_followed_too(tmp_path, debians):
    if version_of(debians) != sys.version_info[:2]:
        pytest.skip(f"{debians} is of another version")
    off, on = matrix(tmp_path, debians, on=False), matrix(tmp_path, debians, on=True)

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10, "_f_x": 10, "_c": 20}


@pytest.mark.long
def test_a_python_for_which_nothing_is_compiled_runs_undisturbed(tmp_path, monkeypatch, debians):
    if version_of(debians) == sys.version_info[:2]:
        pytest.skip(f"{debians} is of our own version")
    if has_own_library():
        pytest.skip(f"{debians} has another C library than we: the boot library is not preloaded into it")
    off, on = matrix(tmp_path, debians, on=False), matrix(tmp_path, debians, on=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "on"))

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10}
    assert " has no interpose; install it there: " in state.not_recorded()[-1].reason
    experiment = Experiment(str(tmp_path / "on" / "test.1.er"))
    reasons = {why_not(child, process) for process, child in unfollowed(experiment)}
    assert any(f"{debians} -m pip install interpose" in why for why in reasons), reasons


# --- environments

CLEARED = """
import os, subprocess, sys
copied = {**os.environ, "INTERPOSE": "0"}
show = f"{sys.executable} -c 'import os, sys; sys.exit(len(os.environ))'"
os.environ.clear()
print(os.waitstatus_to_exitcode(os.system(show)), dict(os.environ))
print(subprocess.run(show, shell=True).returncode)
print(subprocess.run(show, shell=True, env=copied).returncode == len(copied))
print(os.spawnve(os.P_WAIT, sys.executable, show.replace("'", "").split(" ", 2), {"A": "1"}))
"""


def test_what_is_started_after_the_environment_was_cleared_is_followed(traced):
    off = traced(CLEARED, INTERPOSE="0")
    done = traced(CLEARED)

    assert (done.stdout, done.stderr) == (off.stdout, "")
    assert [process.lineage for process in done.experiment.processes] == ["", "_c1", "_c2", "_f1", "_f1_x1"]


def test_grandchildren_are_followed_through_a_shell(traced):
    done = traced("""
        import subprocess, sys
        inner = f"{sys.executable} -c 'import os; print(sorted(os.environ))'"
        outer = f'import subprocess; subprocess.run(["sh", "-c", {inner!r}], env={{}})'
        subprocess.run([sys.executable, "-c", outer], env={})
    """)

    assert done.stdout == "['LC_CTYPE', 'PWD']\n" or "INTERPOSE" not in done.stdout
    assert [process.lineage for process in done.experiment.processes] == ["", "_c1", "_c1_c1"]


BAD_ARGUMENTS = """
import _posixsubprocess, os, sys

class Mapping:
    def __getitem__(self, key):
        raise KeyError(key)
    def keys(self):
        print("keys")
        return ["A"]
    def values(self):
        return ["b"]
    def __len__(self):
        return 1

def attempt(function, *arguments, **keywords):
    try:
        print(function.__name__, function(*arguments, **keywords))
    except BaseException as error:
        print(function.__name__, type(error), error)

WRONG = [{1: "b"}, {"A": 1}, {"A=B": "c"}, {"": "c"}, {"A": "b\\0"}, {"A\\0": "b"}]
for given in (None, 1, [], [b"A=1"], *WRONG, Mapping()):
    attempt(os.execve, "/none", ["none"], given)
    attempt(os.execve, "/none", ["none"], env=given)
    attempt(os.execve, path="/none", argv=["none"], env=given)
    attempt(os.posix_spawn, "/none", ["none"], given)
    attempt(os.posix_spawnp, "none", ["none"], given)
    attempt(os.execve, "/none", (), given)
attempt(os.execve, "/none")
attempt(os.execv, "/none", [])
attempt(os.execv, "/none", 5)
attempt(os.system)
attempt(os.system, "a\\0")
attempt(_posixsubprocess.fork_exec)
print(sorted(name for name in os.environ if name.startswith("INTERPOSE_")))
"""


def test_bad_arguments_are_what_they_were(traced):
    off = traced(BAD_ARGUMENTS, INTERPOSE="0")
    done = traced(BAD_ARGUMENTS)

    assert (done.stdout, done.stderr, done.returncode) == (off.stdout, off.stderr, off.returncode)


def test_what_the_user_preloads_stays_and_comes_first(traced):
    show = "import os; print(os.environ.get('LD_PRELOAD'), 'libinterpose_boot' in open('/proc/self/maps').read())"
    done = traced(f"""
        import subprocess, sys
        for preload in ("", "libm.so.6"):
            subprocess.run([sys.executable, "-S", "-c", {show!r}], env={{"LD_PRELOAD": preload}})
    """)

    assert (done.stdout, done.stderr) == (" True\nlibm.so.6 True\n", "")


@pytest.mark.parametrize("options", [["-X", "dev"], ["-i"], ["-O"], ["-X", "frozen_modules=off"]])
@pytest.mark.parametrize(
    "given",
    [{}, {"PYTHONMALLOC": "debug"}, pytest.param({"PYTHONMALLOC": "malloc"}, marks=pytest.mark.interpreter_lock)],
)
def test_whatever_the_interpreter_allocates_with_it_ends_as_ever(traced, options, given):
    words = [sys.executable, "-S", *options, "-c", "print(1)"]
    program = f"import subprocess; print(subprocess.run({words!r}, env={given!r}, stdin=-3).returncode)"
    done, off = traced(program), traced(program, INTERPOSE="0")

    assert (done.stdout, done.stderr) == (off.stdout, off.stderr)
    assert len(Experiment(str(done.directory / "test.1.er")).processes) == 2
