"""Programs that cannot be attached to, or may not be: each is told in a line, and nothing is done to them."""

import argparse
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from attaching import BUSY, by_ptrace_only, by_remote_exec, until_recorded
from tracing import environment, until

from interpose.attach import remote
from interpose.attach.code import code, refuse_what_others_could_change
from interpose.attach.reach import by_ptrace
from interpose.attach.tracee import CannotAttach, Tracee
from interpose.cli.commands import attach

AGAIN_WITHOUT_REMOTE_DEBUGGING = """
import os, sys
if "disable-remote-debug" not in sys._xoptions:
    os.execv(sys.executable, [sys.executable, "-X", "disable-remote-debug", *sys.argv])
"""


def test_one_that_is_recorded_already_is_not_begun_again(running):
    program = running(BUSY, INTERPOSE="1")

    done = program.interpose("attach", str(program.pid))

    assert (done.returncode, done.stderr) == (1, f"interpose: {program.pid}: is recorded already\n")
    assert program.end() == (7, "True\n", "")


BLOCKED = """
import select
print("ready", flush=True)
select.select([], [], [], 300)
"""


@pytest.mark.parametrize(
    ("command", "why", "variables"),
    [("detach", "is not recorded", {}), ("attach", "is recorded already", {"INTERPOSE": "1"})],
)
def test_what_its_maps_show_is_told_without_a_wait_for_the_program(running, command, why, variables):
    program = running(BLOCKED, **variables)

    done = program.interpose(command, "--wait", "1", str(program.pid))

    assert (done.returncode, done.stderr) == (1, f"interpose: {program.pid}: {why}\n")


@by_remote_exec
def test_from_3_14_on_python_itself_is_asked_and_nothing_is_left_of_that(running):
    program = running(BUSY)
    directory = program.directory / "asked"
    directory.mkdir()
    variables = {"PATH": "/nonexistent", "TMPDIR": str(directory)}

    attached = program.interpose("attach", str(program.pid), **variables)
    path = attached.stdout.split("   ")[0]
    until_recorded(path, "sqlite3.Connection.execute")
    detached = program.interpose("detach", str(program.pid), **variables)

    took = r"took [\d.,]+ m?s; the program stood still for [\d.]+ ms of it\n"
    assert re.search(f"^attaching {took}", attached.stdout, re.MULTILINE)
    assert re.search(f"^detaching {took}", detached.stdout, re.MULTILINE)
    assert not list(directory.iterdir())
    assert program.end() == (7, "True\n", "")


@by_remote_exec
@pytest.mark.parametrize("switched_off_by", ["variable", "option"])
def test_a_program_that_may_not_be_asked_is_refused(switched_off_by, running, tmp_path):
    variables = {"PYTHON_DISABLE_REMOTE_DEBUG": "1"} if switched_off_by == "variable" else {}
    source = BUSY if variables else AGAIN_WITHOUT_REMOTE_DEBUGGING + BUSY
    program = running(source, **variables)

    done = program.interpose("attach", str(program.pid))

    assert (done.returncode, done.stderr) == (
        1,
        f"interpose: {program.pid}: remote debugging is switched off in it"
        " (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug): it cannot be reached\n",
    )
    assert program.end() == (7, "True\n", "")


@by_remote_exec
def test_an_interpose_that_may_not_ask_says_so(running, tmp_path):
    program = running(BUSY)

    words = [sys.executable, "-m", "interpose", "attach", str(program.pid)]
    variables = environment(PYTHON_DISABLE_REMOTE_DEBUG="1")
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (
        1,
        f"interpose: {program.pid}: remote debugging is switched off in the Python that this interpose runs on"
        " (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug)\n",
    )
    assert program.end() == (7, "True\n", "")


@pytest.mark.parametrize("command", ["attach", "detach"])
def test_what_is_no_python_program_is_refused(command, interpose):
    sleeper = subprocess.Popen(["sleep", "60"])

    done = interpose(command, str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    gone = interpose(command, str(sleeper.pid))

    assert (done.returncode, gone.returncode) == (1, 1)
    assert f"interpose: process {sleeper.pid} is not a Python process" in done.stderr
    assert gone.stderr == f"interpose: {sleeper.pid}: no such process\n"


def test_one_that_ends_meanwhile_is_told_in_a_line(running):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    program.process.kill()
    program.process.wait()

    with pytest.raises(CannotAttach, match=f"^{program.pid}: (has ended|no such process)$"):
        by_ptrace(tracee, code("end", ()), 1.0)


@by_remote_exec
def test_one_that_ends_before_it_is_asked_is_told_in_a_line(running):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    program.process.kill()
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(CannotAttach, match=f"^{program.pid}: has ended$"):
        remote.run(tracee, code("end", ()), 1.0)


def test_one_whose_first_thread_has_ended_is_told_in_a_line():
    program = """
import ctypes, sys, threading
def work():
    while ") Z " not in open("/proc/self/stat").read(): pass
    print(flush=True)
    sys.stdin.read()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    act = [sys.executable, "-c", program]
    with subprocess.Popen(act, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()

        with pytest.raises(CannotAttach, match=f"^{process.pid}: its first thread has ended$"):
            Tracee(process.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root directory")
def test_attach_names_a_root_without_interpose_in_one_line(tmp_path, interpose):
    program = "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); print(flush=True); sys.stdin.read()"
    act = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(act, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        addresses = Tracee(program.pid).addresses(["Py_Initialize"])
        done = interpose("attach", str(program.pid))
        program.communicate()

    assert addresses["Py_Initialize"].offset > 0
    assert done.returncode == 1
    why = f"{program.pid}: interpose is not in its root {tmp_path}: install it there, as /"
    assert done.stderr.startswith(f"interpose: {why}")
    assert done.stderr.count("\n") == 1


def test_one_that_becomes_another_program_meanwhile_is_told_in_a_line():
    act = [sys.executable, "-c", "import os; print(flush=True); os.read(0, 1); os.execv('/bin/cat', ['cat'])"]
    with subprocess.Popen(act, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        tracee = Tracee(program.pid)
        program.stdin.write(b"-it is cat\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"it is cat\n"

        with pytest.raises(CannotAttach, match=f"^{program.pid}: has started another program in its place$"):
            tracee.read(tracee.addresses(["Py_Initialize"])["Py_Initialize"].offset, 8)


def test_memory_that_cannot_be_written_and_a_program_that_ended_are_told_apart():
    act = [sys.executable, "-c", "input('ready\\n')"]
    with subprocess.Popen(act, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        tracee = Tracee(program.pid)

        with pytest.raises(CannotAttach, match=f"^{program.pid}: its memory cannot be reached: Input/output error$"):
            tracee.write(0, b"x")
        program.communicate(b"\n")
        ended = f"^{program.pid}: no such process$"
        with pytest.raises(CannotAttach, match=ended):
            tracee.write(0, b"x")
        with pytest.raises(CannotAttach, match=ended):
            _ = tracee.user
        with pytest.raises(CannotAttach, match=ended):
            tracee.entry()


def test_a_stopped_program_is_refused(running):
    program = running(BUSY)
    program.process.send_signal(signal.SIGSTOP)
    until(lambda: "T" in Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[0])

    done = program.interpose("attach", str(program.pid))
    program.process.send_signal(signal.SIGCONT)

    assert done.stderr == f"interpose: {program.pid}: is stopped; kill -CONT {program.pid} lets it go on\n"
    assert program.end() == (7, "True\n", "")


SEIZING = """
import sys
from interpose.attach import ptrace
ptrace.request(ptrace.SEIZE, int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


@by_ptrace_only
def test_a_program_that_somebody_traces_is_refused(running):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    tracer = subprocess.Popen(
        [sys.executable, "-c", SEIZING, str(program.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert tracer.stdout is not None and tracer.stdout.readline() == b"ready\n"

    done = program.interpose("attach", str(program.pid))
    with pytest.raises(CannotAttach) as raised:
        by_ptrace(tracee, code("end", ()), 1.0)
    name = Path(f"/proc/{tracer.pid}/comm").read_text().strip()
    tracer.communicate(b"")

    told = f"{program.pid}: is traced already, by {name} ({tracer.pid})"
    assert (done.returncode, done.stderr) == (1, f"interpose: {told}\n")
    assert str(raised.value) == told  # where both came at the same time
    assert program.end() == (7, "True\n", "")


@by_ptrace_only
def test_a_program_with_a_shadow_stack_is_refused(running, monkeypatch):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    monkeypatch.setattr(tracee, "_status", lambda: {"x86_Thread_features": "shstk"})

    with pytest.raises(CannotAttach, match=f"^{program.pid}: has a shadow stack"):
        by_ptrace(tracee, code("end", ()), 1.0)


@by_ptrace_only
@pytest.mark.parametrize(("flags", "is_refused"), [("rd wr mr mw me ss", True), ("rd wr mr mw me ac sd", False)])
def test_a_shadow_stack_of_arm64_is_found_by_the_flags_of_its_memory(running, monkeypatch, tmp_path, flags, is_refused):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    files = {"_PROCESSORS": "Features\t: fp asimd gcs\n", "_AREAS": f"Rss: 4 kB\nVmFlags: {flags} \n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(f"interpose.attach.tracee.{name}", str(tmp_path / name))

    refused = pytest.raises(CannotAttach, match=f"^{program.pid}: has a shadow stack") if is_refused else nullcontext()
    with refused:
        tracee.refuse_shadow_stack()


def test_another_users_program_is_refused(running, monkeypatch):
    program = running(BUSY)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(f"/proc/{program.pid}").st_uid + 1)

    with pytest.raises(CannotAttach, match=rf"{program.pid}: is .*'s; only they, or root, can attach to it"):
        Tracee(program.pid)


def test_another_python_is_refused(running, monkeypatch):
    program = running(BUSY)
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))

    with pytest.raises(CannotAttach, match=r"and this interpose is installed for 3\.99: use one that is"):
        Tracee(program.pid)


def test_code_that_others_could_have_changed_is_refused():
    with pytest.raises(CannotAttach, match="is not only root's and 1's user's to change"):
        mode = os.stat(os.path.dirname(__file__)).st_uid
        refuse_what_others_could_change(1, 12345, 12345) if mode else _refuse_writable_by_all()


def _refuse_writable_by_all() -> None:
    import interpose

    path = os.path.join(os.path.dirname(interpose.__file__), "errors.py")
    before = os.stat(path).st_mode
    os.chmod(path, before | 0o002)
    try:
        refuse_what_others_could_change(1, os.getuid(), os.getgid())
    finally:
        os.chmod(path, before)


def test_lines_are_not_recorded_of_a_program_that_runs_already(interpose):
    done = interpose("attach", "1", variables={"INTERPOSE": "lines"})

    assert done.returncode == 2
    assert "attach records calls, native calls, the profile and the heap" in done.stderr


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ([], "calls"),
        (["--profile=auto"], "calls,profile"),
        (["--profile=9"], "calls,profile"),
        (["--profile=off"], "calls"),
    ],
)
def test_a_profile_that_is_asked_for_is_recorded(given, recorded, monkeypatch):
    monkeypatch.delenv("INTERPOSE", raising=False)
    parser = argparse.ArgumentParser()
    attach.add_arguments(parser)

    assert attach.settings_of(parser.parse_args([*given, "1"]))["INTERPOSE"] == recorded


def test_calls_are_recorded_with_whatever_else_is(interpose):
    done = interpose("attach", "--record", "profile", "1")

    assert done.returncode == 2
    assert done.stderr == "interpose: attach always records calls: use --record calls,profile\n"


def test_how_lines_are_to_be_recorded_has_no_meaning_for_a_program_that_runs_already(interpose):
    done = interpose("attach", "1", "--lines", "shop:*")

    assert done.returncode == 2
    assert done.stderr == (
        "interpose: --lines: attach records calls, native calls, the profile and the heap; lines and coverage need"
        " interpose run from the program's start\n"
    )
