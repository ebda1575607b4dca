"""`interpose run`: the program starts, is signalled and ends as it would without us."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from machine import small_disk

from interpose.config.schema import SETTINGS
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

PRINT_WORDS = "import json, sys; print(json.dumps(sys.argv))"


@pytest.fixture
def start(started, own_environment):
    """A function that starts `interpose run WORDS`; the program has written a line before it returns."""
    run = [sys.executable, "-m", "interpose", "run"]
    return lambda *words, **options: started([*run, *words], env=own_environment, stderr=subprocess.PIPE, **options)


def experiments(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.er"))


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["app.py"], []),
        (["app.py", "--clock", "x", "-m", "--", "--help"], ["--clock", "x", "-m", "--", "--help"]),
        (["--", "app.py", "--name", "x"], ["--name", "x"]),
        (["--clock", "perf", "app.py", "--dir=x"], ["--dir=x"]),
        (["--clock=perf", "--name", "n", "--", "app.py", "--", "y"], ["--", "y"]),
        (["-m", "app", "-m", "x", "--version"], ["-m", "x", "--version"]),
        (["--stack", "none", "-m", "app", "--", "-h"], ["--", "-h"]),
        (["--", "-m", "app", "--clock", "x"], ["--clock", "x"]),
        (["app.py", "", "a b", "*"], ["", "a b", "*"]),
    ],
)
def test_everything_after_the_program_belongs_to_the_program(interpose, tmp_path, given, left):
    (tmp_path / "work" / "app.py").write_text(PRINT_WORDS)

    done = interpose("run", *given)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[1:] == left


def test_a_command_is_looked_for_in_the_path_and_a_script_has_our_interpreter(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text("import sys; print(sys.executable)")

    assert interpose("run", "echo", "a", "--b").stdout == "a --b\n"
    assert interpose("run", "app.py").stdout == f"{sys.executable}\n"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_passed_through(interpose, code):
    assert interpose("run", sys.executable, "-c", f"raise SystemExit({code})").returncode == code


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE]
)
def test_the_signal_that_kills_the_program_kills_run_without_another_core(interpose, tmp_path, number):
    reset = f"signal.signal({number}, signal.SIG_DFL)" if number != signal.SIGKILL else "pass"
    program = f"import os, signal; {reset}; os.kill(os.getpid(), {number})"

    done = interpose("run", sys.executable, "-c", program)

    assert done.returncode == -number
    assert not list((tmp_path / "work").glob("core*"))


def test_a_program_that_is_not_there_or_cannot_be_run(interpose, tmp_path):
    (tmp_path / "work" / "data").touch()

    missing = interpose("run", "nosuch-command", "x")
    no_file = interpose("run", "./nosuch")
    not_executable = interpose("run", "./data")

    assert (missing.returncode, missing.stderr) == (127, "interpose: nosuch-command: command not found\n")
    assert (no_file.returncode, no_file.stderr) == (127, "interpose: ./nosuch: No such file or directory\n")
    assert (not_executable.returncode, not_executable.stderr) == (
        126,
        "interpose: ./data: Permission denied; if it is Python: interpose run python ./data\n",
    )
    assert experiments(tmp_path / "work") == []


@pytest.mark.parametrize("words", [[], ["--"], ["-m"], ["--clock", "perf"]])
def test_without_a_program_it_says_how_it_is_used(interpose, words):
    done = interpose("run", *words)

    assert done.returncode == 2
    assert done.stderr.startswith("interpose: a program is needed: interpose run")


@pytest.mark.parametrize(("option", "program"), [("--lines", "app.py"), ("--profile", "/bin/sh")])
def test_an_option_that_took_the_program_for_its_value_is_told(interpose, option, program):
    done = interpose("run", option, program)

    told = f"interpose: {option} needs a value before the program: interpose run {option} VALUE {program}\n"
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["--clock", "sundial"], {}, "--clock sundial: not one of auto, tsc, rseq, perf, syscall"),
        ([], {"INTERPOSE_CLOCK": "sundial"}, "INTERPOSE_CLOCK=sundial: not one of auto, tsc, rseq, perf, syscall"),
        (
            [],
            {"INTERPOSE": "tea"},
            "INTERPOSE=tea: 'tea' is not one of 0, 1, calls, native, lines, coverage, profile, heap",
        ),
        (["--name", "a/b"], {}, "--name a/b: a name cannot contain a slash; INTERPOSE_DIR, or --dir, is the directory"),
    ],
)
def test_a_setting_that_means_nothing_is_told_before_anything_starts(
    interpose, tmp_path, words, variables, said
):
    done = interpose("run", *words, "echo", "started", variables=variables)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"interpose: {said}\n"
    assert experiments(tmp_path / "work") == []


def test_a_directory_in_which_nothing_can_be_made_is_told_before_anything_starts(interpose, tmp_path):
    (tmp_path / "file").touch()

    done = interpose("run", "--dir", str(tmp_path / "file"), "echo", "started")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"interpose: {tmp_path}/file: Not a directory")
    assert done.stderr.count("\n") == 1


def test_the_program_is_recorded_elsewhere_if_the_directory_of_the_settings_is_not_writable(interpose, tmp_path):
    (tmp_path / "file").touch()
    variables = {"INTERPOSE_DIR": f"{tmp_path}/file", "XDG_STATE_HOME": f"{tmp_path}/state"}

    done = interpose("run", sys.executable, "-c", "print('started')", variables=variables)

    elsewhere = tmp_path / "state" / "interpose" / "experiments"
    assert (done.returncode, done.stdout) == (0, "started\n")
    said = f"{tmp_path}/file: Not a directory; the experiment is {elsewhere}/test.1.er"
    assert done.stderr == f"interpose: {said}\n"
    assert names.is_recorded(str(elsewhere / "test.1.er"))


def test_the_program_runs_if_there_is_no_place_for_an_experiment(interpose, tmp_path):
    (tmp_path / "file").touch()
    variables = {"INTERPOSE_DIR": f"{tmp_path}/file", "XDG_STATE_HOME": f"{tmp_path}/file"}

    done = interpose("run", "-C", "a note", sys.executable, "-c", "print('started')", variables=variables)

    assert (done.returncode, done.stdout) == (0, "started\n")
    assert done.stderr == f"interpose: {tmp_path}/file: Not a directory; nothing is recorded\n"


@pytest.mark.parametrize("free_bytes", [0, 8192, 32768], ids=str)
def test_the_program_runs_on_a_full_disk(interpose, tmp_path, free_bytes):
    with small_disk(tmp_path / "full", "64k") as place:
        (place / "filled").write_bytes(bytes(65536 - free_bytes))
        program = (sys.executable, "-c", "print('started')")
        done = interpose("run", *program, cwd=place, variables={"XDG_STATE_HOME": f"{place}/state"})

    assert (done.returncode, done.stdout) == (0, "started\n")
    assert "recorded" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_experiment_that_is_there_is_not_overwritten(interpose, tmp_path):
    (tmp_path / "work" / "mine.er").mkdir()

    done = interpose("run", "--name", "mine.er", "echo", "started")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"interpose: {tmp_path}/work/mine.er: already exists\n"


def test_a_numbered_experiment_that_is_there_gives_way_to_the_next_number(interpose, tmp_path):
    (tmp_path / "out" / "job.4.er").mkdir(parents=True)

    done = interpose("run", "-o", f"{tmp_path}/out/job.4.er", sys.executable, "-c", "pass")

    assert done.stderr == "interpose: job.4.er already exists: this experiment is job.5.er\n"
    assert experiments(tmp_path / "out") == ["job.4.er", "job.5.er"]


@pytest.mark.parametrize("path", ["mine", "out/", "out/.er", "a\nb.er"])
def test_a_path_that_cannot_be_an_experiment_is_refused(interpose, tmp_path, path):
    done = interpose("run", "-o", path, "echo", "started")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("interpose: -o ")
    assert done.stderr.count("\n") == 1
    assert experiments(tmp_path / "work") == []


def test_a_dry_run_says_what_would_be_and_runs_nothing(interpose, tmp_path):
    done = interpose("run", "-n", "-d", "there", "--clock", "perf", "app.py", "a b")

    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == f"{sys.executable} app.py 'a b'"
    assert [line.split() for line in lines if "option" in line] == [
        ["INTERPOSE_DIR", f"{tmp_path}/work/there", "option"],
        ["INTERPOSE_CLOCK", "perf", "option"],
    ]
    assert list((tmp_path / "work").iterdir()) == []


def test_the_program_gets_the_settings_and_its_experiment(interpose, tmp_path):
    (tmp_path / "work" / "pyproject.toml").write_text('[tool.interpose]\nclock = "perf"\ndir = "e e"\n')

    done = interpose("run", "--stack-above", "off", "env")

    environment = dict(
        line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("INTERPOSE")
    )
    pid, path = environment.pop("INTERPOSE_LINEAGE").split(" ", 1)
    assert pid.isdecimal()
    assert path == f"{tmp_path}/work/e e/test.1.er "
    assert environment == {setting.variable: setting.default for setting in SETTINGS} | {
        "INTERPOSE": "calls",
        "INTERPOSE_DIR": f"{tmp_path}/work/e e",
        "INTERPOSE_CLOCK": "perf",
        "INTERPOSE_STACK_ABOVE": "off",
    }


def test_where_nothing_was_recorded_it_says_so_and_leaves_nothing(interpose, tmp_path):
    done = interpose("run", "sh", "-c", "exit 3", variables={"INTERPOSE": "1"})

    assert done.returncode == 3
    assert "nothing was recorded" in done.stderr
    assert done.stderr.count("\n") == 1
    assert experiments(tmp_path / "work") == []


def test_what_is_not_compressed_or_sampled_for_lack_of_a_package_is_one_line(interpose, tmp_path):
    (tmp_path / "zstandard.py").write_text("raise ImportError('no zstandard')\n")

    done = interpose("run", "--", sys.executable, "-c", "print()", variables={"PYTHONPATH": str(tmp_path)})

    assert (done.returncode, done.stdout) == (0, "\n")
    assert done.stderr == "interpose: nothing is compressed or sampled: no zstandard (see: interpose doctor)\n"
    assert len(experiments(tmp_path / "work")) == 1


def test_an_interpreter_without_interpose_is_recorded_all_the_same(interpose, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    python = str(bare / "bin" / "python")

    done = interpose("run", python, "-c", "print(1)")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert names.is_recorded(str(tmp_path / "work" / "test.1.er"))


@pytest.fixture
def python_of_another_version() -> str:
    """An interpreter without interpose, of a version that interpose records and that is not ours."""
    ours = f"python3.{sys.version_info.minor}"
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        for path in (shutil.which(name), *map(str, Path(sys.base_prefix).parent.glob(f"{name[6:]}.*/bin/{name}"))):
            if path and name != ours and not subprocess.run([path, "-c", "0"], capture_output=True).returncode:
                return path
    pytest.skip("no interpreter of another version")


def test_an_interpreter_of_another_version_without_interpose_is_told_how_to_install_it(
    interpose, tmp_path, python_of_another_version
):
    subprocess.run([python_of_another_version, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"

    done = interpose("run", str(python), "-c", "print(1)")

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.endswith(f" has no interpose; install it there: {python} -m pip install interpose\n")
    assert done.stderr.count("\n") == 1


def test_a_script_that_does_not_run_in_the_active_environment_is_told(interpose, tmp_path):
    (tmp_path / "work" / "app.py").write_text("print(1)")

    there = interpose("run", "app.py", variables={"VIRTUAL_ENV": f"{tmp_path}/venv"})
    here = interpose("run", "app.py", variables={"VIRTUAL_ENV": sys.prefix})

    told = f"app.py runs with {sys.executable}; to run it in {tmp_path}/venv: interpose run python app.py"
    assert there.stderr == f"interpose: {told}\n"
    assert here.stderr == ""


@pytest.mark.parametrize("options", [("-S",), ("-I", "-S", "-E")])
def test_an_interpreter_that_reads_no_start_up_files_is_recorded(interpose, tmp_path, options):
    show = "import os, sys; print('LD_PRELOAD' in os.environ, [p for p in sys.path if 'site-packages' in p])"

    done = interpose("run", sys.executable, *options, "-c", show)

    assert (done.returncode, done.stdout, done.stderr) == (0, "False []\n", "")
    assert names.is_recorded(str(tmp_path / "work" / "test.1.er"))


JOB = "for program in app01 app02 app03; do $PYTHON $program.py; done"


@pytest.mark.parametrize("option", ["-F", "--follow"])
def test_of_a_job_the_programs_that_match_are_recorded(interpose, tmp_path, option):
    for program in ("app01", "app02", "app03"):
        (tmp_path / "work" / f"{program}.py").write_text(f"print('{program}')\n")

    done = interpose("run", option, "=app02", "sh", "-c", JOB, variables={"PYTHON": sys.executable})

    (process,) = Experiment(str(tmp_path / "work" / "test.1.er")).processes
    assert (done.stdout, done.stderr) == ("app01\napp02\napp03\n", "")
    assert process.log.arguments[-1] == "app02.py"


def test_a_pattern_that_is_none_is_one_line(interpose):
    done = interpose("run", "-F", "=(", "true")

    assert done.returncode == 2
    assert done.stderr == "interpose: --follow =(: Unmatched ( or \\(\n"


def test_the_reason_that_the_program_kept_is_told(interpose, tmp_path):
    note = (
        'mkdir -m 700 -p $XDG_STATE_HOME/interpose; cd $XDG_STATE_HOME/interpose; printf "%s" >> not-recorded'
    )
    line = rf"$(date +%s)\t$$\tapp.py\tno room\t{tmp_path}/work\n"

    done = interpose("run", "sh", "-c", note % line, variables={"INTERPOSE": "1"})

    assert done.returncode == 0
    assert done.stderr.startswith("interpose: app.py, process ")
    assert done.stderr.endswith(": not recorded: no room\n")


def test_an_interpreter_that_does_not_answer_is_named_with_the_remedy(interpose, tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "python").chmod(0o700)

    done = interpose("run", str(tmp_path / "python"), "app.py")

    assert done.stdout == "hello\n"
    said = f"{tmp_path}/python does not say whether it has interpose; install it there"
    assert done.stderr == f"interpose: nothing was recorded: {said}: {tmp_path}/python -m pip install interpose\n"


def test_with_the_variable_exported_run_does_not_record_itself(interpose, tmp_path):
    interpose("run", sys.executable, "-c", "pass", variables={"INTERPOSE": "1"})
    interpose("list", variables={"INTERPOSE": "1"})

    assert experiments(tmp_path / "work") == ["test.1.er"]


def test_switched_off_the_program_runs_and_nothing_is_recorded(interpose, tmp_path):
    done = interpose("run", "echo", "x", variables={"INTERPOSE": "0"})

    assert (done.returncode, done.stdout) == (0, "x\n")
    assert done.stderr == "interpose: not recorded: INTERPOSE is 0\n"
    assert experiments(tmp_path / "work") == []


def ignore_hangups_and_children() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM, signal.SIGWINCH})


@pytest.mark.parametrize("prepare", [None, ignore_hangups_and_children])
def test_the_program_has_the_signals_as_run_got_them(interpose, tmp_path, prepare):
    words = ["grep", "^Sig[BIC]", "/proc/self/status"]
    direct = subprocess.run(words, capture_output=True, text=True, preexec_fn=prepare)

    through = interpose("run", *words, preexec_fn=prepare)

    assert through.returncode == 0
    assert through.stdout == direct.stdout


def test_the_program_has_our_files_and_our_group(interpose):
    read, write = os.pipe()
    program = (
        f"import os; os.write({write}, b'{{}}'.replace(b'{{}}', str(os.getpgrp()).encode())); print(input())"
    )

    done = interpose("run", sys.executable, "-c", program, pass_fds=[write], input="line\n")

    os.close(write)
    assert os.read(read, 100).decode() == str(os.getpgrp())
    os.close(read)
    assert done.stdout == "line\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_sent_to_run_alone_reaches_the_program(start, number):
    program = (
        "import signal, sys, time\n"
        f"signal.signal({number}, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    process = start(sys.executable, "-c", program)

    process.send_signal(number)

    assert process.wait(30) == 5


def test_an_interrupt_is_for_the_program(start):
    program = "import signal, sys; print('ready', flush=True); sys.stdin.read(); sys.exit(4)"
    process = start(sys.executable, "-c", program, stdin=subprocess.PIPE)

    process.send_signal(signal.SIGINT)

    assert process.wait(30) == -signal.SIGINT


def test_an_interrupt_of_the_group_ends_both(start):
    process = start("sh", "-c", "echo ready; exec sleep 60", start_new_session=True)

    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(30) == -signal.SIGINT


def test_a_killed_program_leaves_a_log_that_says_so(interpose, tmp_path):
    done = interpose("run", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")

    assert done.returncode == -signal.SIGKILL
    assert 'signal="9"' in (tmp_path / "work" / "test.1.er" / "log.xml").read_text()


def test_nothing_is_written_to_stderr_that_is_no_terminal(interpose, tmp_path):
    done = interpose("run", sys.executable, "-c", "pass")

    assert (done.stdout, done.stderr) == ("", "")
    assert experiments(tmp_path / "work") == ["test.1.er"]


def test_on_a_terminal_it_ends_with_the_beginning_of_the_report(tmp_path, own_environment):
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "interpose", "run", sys.executable, "-c", "pass"]

    subprocess.run(
        words, cwd=tmp_path, env=own_environment, stdout=subprocess.DEVNULL, stderr=theirs, check=True
    )

    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    first, *_, totals, following = shown.splitlines()
    assert "test.1.er" in first
    assert totals.startswith("elapsed ")
    assert following.startswith(" next: interpose ")
