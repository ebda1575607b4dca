"""From the environment to a recording, or to the reason why there is none."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from machine import has_user, small_disk
from tracing import Traced, environment, events_of, run_in, write_program

from interpose.config import state, trust
from interpose.config.program import is_exempt, program_name, split_command
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

WRITING = "import os; os.write(1, b'written')"


def run(tmp_path, *words, **variables):
    """Run a command in `tmp_path` with a state directory of its own."""
    return run_in(tmp_path, words, **{"XDG_STATE_HOME": str(tmp_path / "state"), **variables})


def reasons(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return [(note.program, note.reason) for note in state.not_recorded()]


def experiments(directory):
    return sorted(name for name in os.listdir(directory) if name.endswith(".er"))


@pytest.mark.parametrize("value", ["", "0"])
def test_nothing_is_recorded_and_nothing_of_ours_is_imported_unless_asked(tmp_path, value):
    done = run(tmp_path, sys.executable, "-c", "import sys; print('interpose' in sys.modules)", INTERPOSE=value)

    assert done.stdout == "False\n"
    assert experiments(tmp_path) == []


def test_the_bare_variable_records(tmp_path):
    done = run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1")

    assert (done.stdout, done.stderr) == ("written", "")
    assert experiments(tmp_path) == ["test.1.er"]
    founder = Experiment(str(tmp_path / "test.1.er")).founder
    assert [event.bytes for event in events_of(founder, "os.write")] == [7]


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-s"], ["-O"], ["-X", "dev"], ["-W", "error"]])
def test_it_begins_whatever_the_interpreters_options(tmp_path, options):
    done = run(tmp_path, sys.executable, *options, "-c", WRITING, INTERPOSE="1")

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert experiments(tmp_path) == ["test.1.er"]


def test_directory_and_name_are_as_set(tmp_path):
    place = tmp_path / "elsewhere"
    run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1", INTERPOSE_DIR=str(place), INTERPOSE_NAME="orders")

    assert experiments(place) == ["orders.1.er"]


def test_the_nearest_project_file_counts_as_under_run(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.interpose]\nname = "ours"\n')
    (tmp_path / "below").mkdir()
    run(tmp_path / "below", sys.executable, "-c", WRITING, INTERPOSE="1")
    run(tmp_path / "below", sys.executable, "-m", "interpose", "run", sys.executable, "-c", WRITING)

    assert experiments(tmp_path / "below") == ["ours.1.er", "ours.2.er"]


@pytest.mark.long
def test_a_hundred_founders_at_once_have_a_hundred_experiments(tmp_path):
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1"), range(100)))

    assert all((each.stdout, each.stderr) == ("written", "") for each in done)
    assert len(experiments(tmp_path)) == 100
    for name in experiments(tmp_path):
        assert len(list(events_of(Experiment(str(tmp_path / name)).founder, "os.write"))) == 1


def test_a_setting_that_means_nothing_leaves_the_program_alone_and_is_kept(tmp_path, monkeypatch):
    program = write_program(tmp_path, WRITING)
    done = run(tmp_path, sys.executable, str(program), INTERPOSE="1", INTERPOSE_CLOCK="sundial")

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert experiments(tmp_path) == []
    assert reasons(tmp_path, monkeypatch) == [
        ("program.py", "INTERPOSE_CLOCK=sundial: not one of auto, tsc, rseq, perf, syscall")
    ]


def test_a_name_that_is_taken_leaves_the_program_alone_and_is_kept(tmp_path, monkeypatch):
    (tmp_path / "one.er").mkdir()
    done = run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1", INTERPOSE_NAME="one.er")

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert reasons(tmp_path, monkeypatch) == [("-c", f"{tmp_path}/one.er: File exists")]


def test_where_the_directory_cannot_be_written_the_state_directory_has_the_experiment(tmp_path):
    place = "/proc/interpose-cannot-be-here"
    done = run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1", INTERPOSE_DIR=place)

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert experiments(tmp_path / "state/interpose/experiments") == ["test.1.er"]


def test_where_nothing_can_be_written_the_program_runs_all_the_same(tmp_path):
    variables = {"INTERPOSE": "1", "INTERPOSE_DIR": "/proc/none", "XDG_STATE_HOME": "/proc/none", "HOME": "/proc/none"}
    done = run(tmp_path, sys.executable, "-c", WRITING, **variables)

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")


def test_the_working_directory_may_be_gone(tmp_path):
    program = write_program(tmp_path, WRITING)
    script = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} {program}"
    done = run(tmp_path, "sh", "-c", script, INTERPOSE="1")

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give")
@pytest.mark.skipif(not has_user(65534), reason="user 65534 does not exist in this namespace")
def test_with_other_rights_than_the_callers_nothing_is_written_at_all(tmp_path):
    variables = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getresuid())"],
        cwd=tmp_path,
        env=variables,
        preexec_fn=lambda: os.setresuid(65534, 0, 0),
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "(65534, 0, 0)\n", "")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("secure", "other"), [(0, False), (1, True)])
def test_rights_that_the_kernel_gave_a_program_are_other_rights(monkeypatch, secure, other):
    words = [(6, 4096), (trust.AT_SECURE, secure), (0, 0)]
    auxv = b"".join(word.to_bytes(8, sys.byteorder) for pair in words for word in pair)
    monkeypatch.setattr(trust, "_auxiliary_vector", lambda: auxv)

    assert trust.has_other_rights() is other


@pytest.mark.long
@pytest.mark.parametrize("words", [["-m", "interpose", "--version"], ["-m", "pip", "--version"]])
def test_what_serves_us_never_traces_itself_nor_what_it_starts(tmp_path, words):
    done = run(tmp_path, sys.executable, *words, INTERPOSE="1")

    assert done.returncode == 0 or "No module named pip" in done.stderr
    assert experiments(tmp_path) == []
    assert not (tmp_path / "state").exists()


def test_what_run_is_told_to_run_is_recorded_even_if_it_is_exempt_otherwise(tmp_path):
    program = tmp_path / "tox.py"
    program.write_text(WRITING)
    run(tmp_path, sys.executable, str(program), INTERPOSE="1")
    bare = experiments(tmp_path)
    done = run(tmp_path, sys.executable, "-m", "interpose", "run", str(program))

    assert bare == []
    assert done.stdout == "written"
    assert experiments(tmp_path) == ["test.1.er"]


COMMANDS = [
    (["python", "app.py", "-m", "x"], ("script", "app.py"), "app.py"),
    (["python", "-m", "http.server", "80"], ("-m", "http.server"), "-m http.server"),
    (["python", "-I", "-W", "error", "-X", "dev", "a/b.py"], ("script", "a/b.py"), "b.py"),
    (["python", "-c", "print(1)"], ("-c", ""), "-c"),
    (["python", "-Im", "pip"], ("-m", "pip"), "-m pip"),
    (["python", "-Ec", "1"], ("-c", ""), "-c"),
    (["python", "-"], ("script", "-"), "script"),
    (["python"], ("", ""), "python"),
    (["python", "-cimport m", "x.py"], ("-c", ""), "-c"),
    (["python", "-mpip", "x.py"], ("-m", "pip"), "-m pip"),
    (["python", "-Wm", "x.py"], ("script", "x.py"), "x.py"),
    (["python", "-XW", "-Wc", "x.py"], ("script", "x.py"), "x.py"),
    (["python", "-I", "--", "-x.py"], ("script", "-x.py"), "-x.py"),
    (["python", "--check-hash-based-pycs", "never", "x.py"], ("script", "x.py"), "x.py"),
]


@pytest.mark.parametrize(("command", "split", "name"), COMMANDS)
def test_the_program_is_found_in_the_command_line(command, split, name):
    assert split_command(command) == split
    assert program_name(command) == name


@pytest.mark.parametrize(
    ("command", "exempt"),
    [
        (["python", "-m", "pip", "install", "x"], True),
        (["python", "/venv/bin/pip3.11", "install"], True),
        (["python", "/venv/bin/tox"], True),
        (["python", "/venv/bin/interpose", "report"], True),
        (["python", "-m", "interpose.cli"], True),
        (["python", "pipeline.py"], False),
        (["python", "app.py", "pip"], False),
        (["python", "-c", "pip"], False),
    ],
)
def test_few_programs_are_exempt(command, exempt):
    assert is_exempt(command) is exempt


def test_the_command_is_described_whatever_characters_it_has(tmp_path):
    words = [sys.executable, "-c", WRITING, "<&\">", "\x01\x1b[31m", os.fsdecode(b"\xff"), "ü", "--secret=canary"]
    done = run(tmp_path, *words, INTERPOSE="1")
    log = Experiment(str(tmp_path / "test.1.er")).founder.log

    assert done.stderr == ""
    assert log.arguments == ["-c", *"?????", "--secret=?"]
    run(tmp_path, *words, INTERPOSE="1", INTERPOSE_ARGUMENTS="process=whole")
    log = Experiment(str(tmp_path / "test.2.er")).founder.log
    assert log.arguments[-5:] == ['<&">', "??[31m", "?", "ü", "--secret=canary"]


def test_cpu_time_agrees_with_the_kernels_over_mixed_work_in_four_threads(tmp_path):
    program = write_program(
        tmp_path,
        """
        import os, sqlite3, threading, time
        nothing = os.open(os.devnull, os.O_WRONLY)
        kernel = {}
        def work():
            begun = time.thread_time_ns()
            until = time.monotonic() + 1
            cursor = sqlite3.connect(":memory:").cursor()
            turn = 0
            while time.monotonic() < until:
                turn += 1
                os.write(nothing, b"x")
                cursor.execute("select 1")
                if turn % 100 == 0: time.sleep(0.0002)
                if turn % 7 == 0: sum(range(500))
            kernel[threading.get_ident()] = time.thread_time_ns() - begun
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(*kernel.values())
        """,
    )
    done = Traced(tmp_path, run(tmp_path, sys.executable, str(program), INTERPOSE="1"))
    kernel_ns = sum(map(int, done.stdout.split()))
    threads = [thread.record for thread in done.experiment.founder.threads if not thread.record.main]
    ours_ns = sum(record.end_cpu_ns - record.start_cpu_ns for record in threads)

    # Ours begins a little before the function and ends a little after it.
    assert len(threads) == 4
    assert abs(ours_ns - kernel_ns) <= max(kernel_ns / 1000, 20_000) + 4 * 500_000


def test_names_found_are_those_that_were_made(tmp_path):
    run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1")

    assert names.newest(str(tmp_path)) == str(tmp_path / "test.1.er")


SUBINTERPRETER = """
    import os, time, warnings
    warnings.simplefilter("ignore")
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    time.sleep(0)
    other = interpreters.create()
    interpreters.run_string(other, "import time, _sqlite3, threading; time.sleep(0.001); print('there', flush=True)")
    interpreters.destroy(other)
    time.sleep(0)
"""


def test_other_interpreters_of_the_process_begin_no_recording_of_their_own(tmp_path, monkeypatch):
    program = write_program(tmp_path, SUBINTERPRETER)
    off = run(tmp_path, sys.executable, str(program), INTERPOSE="0")
    done = Traced(tmp_path, run(tmp_path, sys.executable, str(program), INTERPOSE="1"))

    assert (done.returncode, done.stdout, done.stderr) == (off.returncode, off.stdout, off.stderr)
    assert len(done.events("time.sleep")) == 3
    assert [process.lineage for process in done.experiment.processes] == [""]
    assert reasons(tmp_path, monkeypatch) == []


def test_a_disk_that_is_full_from_the_beginning_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk", "60k") as disk:
        done = run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1", INTERPOSE_DIR=str(disk))
        left = os.listdir(disk)

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert left == []
    ((_, reason),) = reasons(tmp_path, monkeypatch)
    assert reason.endswith("No space left on device")


def test_a_copied_environment_keeps_a_child_in_the_family(tmp_path):
    program = write_program(
        tmp_path,
        """
        import os, subprocess, sys, tempfile
        place = tempfile.mkdtemp(dir=".")
        code = "import time; time.sleep(0.001)"
        copied = dict(os.environ)
        subprocess.run([sys.executable, "-c", code], cwd=place, env=copied)
        subprocess.run(["sh", "-c", f"{sys.executable} -c '{code}'; true"], cwd=place, env=copied)
        if os.fork() == 0:
            subprocess.run([sys.executable, "-c", code], cwd=place, env=copied)
            os._exit(0)
        os.wait()
        os.rmdir(place)
        """,
    )
    done = Traced(tmp_path, run(tmp_path, sys.executable, str(program), INTERPOSE="1"))

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(process.lineage for process in done.experiment.processes) == ["", "_c1", "_c2", "_f1", "_f1_c1"]


@pytest.mark.parametrize("umask", ["0000", "0777"])
def test_modes_do_not_depend_on_the_umask(tmp_path, umask):
    home = tmp_path / "home"
    home.mkdir()
    variables = {"INTERPOSE": "1", "INTERPOSE_DIR": "/proc/none", "HOME": str(home), "XDG_STATE_HOME": ""}
    done = run(tmp_path, "sh", "-c", f'umask {umask}; exec "$0" -c "$1"', sys.executable, WRITING, **variables)
    modes = {}
    for directory, _, files in os.walk(home):
        for path in (directory, *(os.path.join(directory, file) for file in files)):
            modes[path] = os.stat(path).st_mode & 0o777
    del modes[str(home)]

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
    assert set(modes.values()) == {0o700, 0o600}
    assert all((mode == 0o700) == os.path.isdir(path) for path, mode in modes.items())


def test_another_interpose_first_on_the_path_is_no_ones_trouble(tmp_path):
    (tmp_path / "shadow/interpose").mkdir(parents=True)
    (tmp_path / "shadow/interpose/__init__.py").write_text("")
    done = run(tmp_path, sys.executable, "-c", WRITING, INTERPOSE="1", PYTHONPATH=str(tmp_path / "shadow"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "written", "")
