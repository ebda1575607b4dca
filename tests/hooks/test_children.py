"""The processes that a process started: what is recorded of each, and how it is read."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from machine import has_user, spawns_in_shared_memory
from starting import told
from tracing import Traced, of_machine, run_in, write_program

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import unfollowed, why_not
from interpose.experiments.format.children import FORK, SHELL, SPAWN

WAYS = """
    import os, signal, subprocess, sys
    me = [sys.executable, "-c", "import sys; sys.exit(4)"]
    child = os.fork()
    if child == 0:
        os._exit(3)
    os.waitpid(child, 0)
    child, _ = os.forkpty()
    if child == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    os.wait4(os.posix_spawn(sys.executable, me, os.environ), 0)
    os.waitid(os.P_PID, os.posix_spawnp("true", ["true"], os.environ), os.WEXITED)
    subprocess.call(me)
    subprocess.call(["sh", "-c", "exit 7"])
    os.system("exit 5")
    child = os.fork()
    if child == 0:
        os.execv(me[0], me)
    os.waitpid(child, 0)
"""


def test_each_way_to_start_a_process_is_recorded_with_its_end(traced):
    done = traced(WAYS).ended_well()
    experiment = done.experiment
    founder = experiment.founder

    assert told(experiment) == [
        ("", "exit", 0),
        ("_f1", "exit", 3),
        ("_f2", "killed", 9),
        ("_c1", "exit", 4),
        (None, "exit", 0),
        ("_c2", "exit", 4),
        (None, "exit", 7),
        (None, "exit", 5),
        ("_f3", "exec", 0),
        ("_f3_x1", "exit", 4),
    ]
    assert [child.record.how for child in founder.children] == [FORK, FORK, SPAWN, SPAWN, SPAWN, SPAWN, SHELL, FORK]
    commands = [os.path.basename(child.command) for child in founder.children[3:7]]
    assert commands == ["true", os.path.basename(sys.executable), "sh", "sh"]
    assert all(child.has_ended for child in founder.children)
    for process in experiment.processes[1:]:
        assert process.started_as is not None
        assert process.started_as.record.start_ns <= process.log.start_ns
        assert process.started_as.record.pid == process.log.pid


def test_a_child_that_outlives_the_program_is_not_said_to_have_ended(traced, interpose_here):
    done = traced("""
        import subprocess
        nothing = subprocess.DEVNULL
        print(subprocess.Popen(["sleep", "60"], stdout=nothing, stderr=nothing).pid)
        subprocess.run(["sleep", "0"])
    """)
    pid = int(done.stdout)

    try:
        assert Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
        shown = interpose_here("processes", done.path).stdout.splitlines()
    finally:
        os.kill(pid, signal.SIGKILL)
    assert [" not waited for  " in line for line in shown if " sleep " in line] == [True, False]
    assert "ended, status unknown" not in "".join(shown)


def test_the_list_and_the_report_last_until_the_last_child_ended(traced, interpose_here):
    done = traced("""
        import os, time
        begin_ns = time.monotonic_ns()
        if os.fork() == 0:
            time.sleep(0.8)
            print(time.monotonic_ns() - begin_ns)
    """)
    (listed,) = json.loads(interpose_here("list", str(done.directory), "--format", "json").stdout)
    report = json.loads(interpose_here("report", done.path, "--format", "json").stdout)

    assert listed["elapsed_ns"] == report["elapsed_ns"] > int(done.stdout)


def test_where_calls_are_wrapped_children_are_recorded_alike(traced):
    pytest.importorskip("wrapt")
    done = traced(WAYS, INTERPOSE_BY="wrapt").ended_well()

    assert ("_f2", "killed", 9) in told(done.experiment)
    assert ("_f3_x1", "exit", 4) in told(done.experiment)


def test_a_process_that_starts_none_has_no_file_for_them(traced):
    done = traced("print(1)")

    assert not os.path.exists(os.path.join(done.path, "children"))
    assert done.experiment.founder.children == []
    assert done.experiment.damages.found == []


needs_vfork = pytest.mark.skipif(not spawns_in_shared_memory(), reason="vfork is a fork here: failures stay unknown")


@needs_vfork
def test_an_attempt_that_failed_is_recorded_with_its_error(traced):
    done = traced("""
        import os, resource, subprocess
        for attempt in (
            lambda: os.execv("/nowhere", ["x"]),
            lambda: os.posix_spawn("/nowhere", ["x"], {}),
            lambda: subprocess.Popen(["nowhere-at-all"]),
            lambda: subprocess.Popen(["/etc"], close_fds=False),
            lambda: os.execv("/bin/true", []),
        ):
            try:
                attempt()
            except (OSError, ValueError) as error:
                print(getattr(error, "errno", 22) or 22)
    """)
    children = done.experiment.founder.children

    assert done.stderr == ""
    assert [str(child.record.error) for child in children] == done.stdout.split()
    assert done.experiment.founder.not_followed == []
    assert ending(done.experiment.founder).state == "exit"


def test_arguments_are_not_kept(traced):
    done = traced("""
        import os, subprocess
        subprocess.call(["true", "canary-one"])
        os.system("true canary-two")
        os.spawnlp(os.P_WAIT, "true", "true", "canary-three")
    """)

    for directory, _, files in os.walk(done.path):
        for file in files:
            if file != "log.xml":
                assert b"canary" not in Path(directory, file).read_bytes()


def compiled(directory, name, *options, source="int main(void) { return 0; }"):
    """A program in C; skips where it cannot be made."""
    path = directory / name
    made = subprocess.run(["cc", "-x", "c", "-", "-o", path, *options], input=source, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"cannot be compiled here: {' '.join(options)}")
    return path


def run_traced(program, **variables):
    run = run_in(program.parent, [sys.executable, program], INTERPOSE="1", **variables)
    return Traced(program.parent, run)


def reasons(tmp_path, *words, **variables):
    """Why the children that ran each of `words` were not followed."""
    program = write_program(
        tmp_path, f"import os, subprocess\nfor word in {list(map(str, words))}: subprocess.call([word])"
    )
    done = run_traced(program, **variables)
    return [why_not(child, process) for process, child in unfollowed(done.experiment)]


def test_what_is_no_python_is_told_by_its_file(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o700)

    assert reasons(tmp_path, "true", script, compiled(tmp_path, "plain")) == [of_machine("not Python")] * 3


@pytest.mark.parametrize("shebang", [sys.executable, "/usr/bin/env -S X=1 python3"])
def test_a_script_of_pythons_is_followed(tmp_path, shebang):
    script = tmp_path / "script"
    script.write_text(f"#!{shebang}\n")
    script.chmod(0o700)

    assert reasons(tmp_path, script, PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}") == []


def test_a_program_that_is_linked_statically(tmp_path):
    assert reasons(tmp_path, compiled(tmp_path, "still", "-static")) == ["linked statically"]


def test_a_program_that_the_address_sanitizer_checks(tmp_path):
    assert reasons(tmp_path, compiled(tmp_path, "checked", "-fsanitize=address")) == [of_machine("address sanitizer")]


def test_a_program_of_another_architecture(tmp_path):
    path = compiled(tmp_path, "foreign")
    head = bytearray(path.read_bytes())
    head[18:20] = (0xF3 if head[18] != 0xF3 else 0x3E).to_bytes(2, "little")  # e_machine
    path.write_bytes(head)
    program = write_program(
        tmp_path,
        f"""
        import os
        if os.fork() == 0:
            try: os.execv({str(path)!r}, ["x"])
            except OSError: os._exit(0)
        os.wait()
        """,
    )
    (attempt,) = run_traced(program).experiment.processes[1].children

    assert attempt.why == "another architecture"
    assert attempt.record.error == 8


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes programs of another user's")
@pytest.mark.skipif(not has_user(65534), reason="user 65534 does not exist in this namespace")
def test_a_program_with_another_users_rights(tmp_path):
    path = compiled(tmp_path, "other")
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)

    assert reasons(tmp_path, path) == ["another user's rights"]


def test_an_interpreter_that_is_told_not_to_record_is_told_as_that(tmp_path):
    program = write_program(
        tmp_path,
        """
        import os, subprocess, sys
        me = [sys.executable, "-c", "pass"]
        subprocess.call(me, env={**os.environ, "INTERPOSE": "0"})
        os.environ["INTERPOSE"] = ""
        subprocess.call(me)
        os.waitpid(os.posix_spawn(me[0], me, os.environ), 0)
        if os.fork() == 0:
            os.execv(me[0], me)
        os.wait()
        """,
    )

    found = unfollowed(run_traced(program).experiment)
    assert [why_not(child, process) for process, child in found] == ["switched off by INTERPOSE"] * 4


def test_an_interpreter_that_left_no_experiment_is_told_as_that(tmp_path):
    program = write_program(
        tmp_path,
        """
        import os, subprocess, sys
        subprocess.call([sys.executable, "-c", "pass"], env={**os.environ, "PYTHONHOME": "/nowhere"})
        """,
    )

    found = unfollowed(run_traced(program).experiment)
    assert [why_not(child, process) for process, child in found] == ["left no experiment"]


@pytest.mark.parametrize(
    ("follow", "why"),
    [
        ("off", "excluded by INTERPOSE_FOLLOW 'off'"),
        ("=worker", "excluded by INTERPOSE_FOLLOW '=worker'"),
        ("==worker", "excluded by INTERPOSE_FOLLOW '==worker'"),
    ],
)
@pytest.mark.parametrize(
    "start",
    [
        "os.wait() if os.fork() else os._exit(0)",
        "subprocess.run([sys.executable, '-c', '1', 'a=b', 'two words', '\\n'])",
        "subprocess.run([sys.executable, '-I', '-S', '-c', '1'])",
    ],
)
def test_a_child_that_nobody_wanted_to_follow_is_told_as_that(traced, interpose_here, follow, why, start):
    done = traced(f"import os, subprocess, sys; {start}", INTERPOSE_FOLLOW=follow)
    whole = interpose_here("processes", "--format", "json", done.path).stdout
    (row,) = [row for row in json.loads(whole) if row["why"]]

    assert [why_not(child, process) for process, child in unfollowed(done.experiment)] == [why]
    assert row["why"] == why
    assert interpose_here("report", done.path).stdout.count("INTERPOSE_FOLLOW") == 1


def test_a_child_that_was_wanted_and_left_no_experiment_is_not_called_excluded(traced):
    done = traced(
        """
        import os, subprocess, sys
        subprocess.call([sys.executable, "-c", "1"], env={**os.environ, "PYTHONHOME": "/nowhere"})
        """,
        INTERPOSE_FOLLOW="=.",
    )

    assert [why_not(child, process) for process, child in unfollowed(done.experiment)] == ["left no experiment"]


def test_a_program_that_was_replaced_is_looked_at_again(tmp_path):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    source = write_program(
        tmp_path,
        f"""
        import subprocess
        subprocess.call([{str(program)!r}])
        open({str(program)!r}, "w").write("#!{sys.executable}\\n")
        subprocess.call([{str(program)!r}])
        """,
    )

    assert [why_not(child, process) for process, child in unfollowed(run_traced(source).experiment)] == [
        of_machine("not Python")
    ]


def test_threads_that_start_children_at_once_mix_none_up(traced):
    done = traced("""
        import os, subprocess, threading
        def work(number):
            for turn in range(6):
                child = os.fork()
                if child == 0:
                    os._exit(number)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == number
                assert subprocess.call(["sh", "-c", f"exit {100 + number}"]) == 100 + number
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    founder = done.experiment.founder
    tid = {thread.number: thread.record.tid for thread in founder.threads}

    assert done.returncode == 0
    assert len(founder.children) == 16 * 6 * 2
    assert len({child.record.pid for child in founder.children}) == len(founder.children)
    by_thread = {}
    for child in founder.children:
        status = child.exit_status
        by_thread.setdefault(tid[child.record.thread], set()).add(status % 100)
        assert (status >= 100) == (child.record.how == SPAWN)
    assert sorted(map(sorted, by_thread.values())) == [[number] for number in range(16)]
    for process in done.experiment.processes[1:]:
        assert process.started_as.record.pid == process.log.pid


def test_a_child_that_another_thread_waits_for_first_has_its_end(traced):
    done = traced("""
        import os, threading
        ended = []
        def reap():
            while len(ended) < 100:
                try: ended.append(os.wait())
                except ChildProcessError: pass
        reaper = threading.Thread(target=reap)
        reaper.start()
        for _ in range(100):
            if os.fork() == 0:
                os._exit(6)
        reaper.join()
    """, timeout_s=60)
    children = done.experiment.founder.children

    assert [child.exit_status for child in children] == [6] * 100
