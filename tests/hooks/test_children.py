"""The processes that a process started: what is recorded of each, and how it is read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tracing import Traced, environment, of_machine, write_program

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import tree, unfollowed, walk, why_not
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.experiments.format.children import EXEC, FORK, SHELL, SPAWN, split_lineage
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build

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


@pytest.fixture
def interpose(interpose_here):
    return interpose_here


def told(experiment):
    """Lineage (or none), state and exit status or signal of each process, in the order of the tree."""
    found = [(node, node.ending) for _, node in walk(tree(experiment))]
    return [
        (node.process.lineage if node.is_followed else None, end.state, end.status or end.signal) for node, end in found
    ]


def test_each_way_to_start_a_process_is_recorded_with_its_end(traced):
    done = traced(WAYS)
    experiment = done.experiment
    founder = experiment.founder

    assert (done.returncode, done.stderr) == (0, "")
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


def test_where_calls_are_wrapped_children_are_recorded_alike(traced):
    pytest.importorskip("wrapt")
    done = traced(WAYS, INTERPOSE_BY="wrapt")

    assert (done.returncode, done.stderr) == (0, "")
    assert ("_f2", "killed", 9) in told(done.experiment)
    assert ("_f3_x1", "exit", 4) in told(done.experiment)


def test_a_process_that_starts_none_has_no_file_for_them(traced):
    done = traced("print(1)")

    assert not os.path.exists(os.path.join(done.path, "children"))
    assert done.experiment.founder.children == []
    assert done.experiment.damages.found == []


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
    run = subprocess.run(
        [sys.executable, program],
        cwd=program.parent,
        env=environment(INTERPOSE="1", **variables),
        capture_output=True,
        text=True,
    )
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
        ("off", "INTERPOSE_FOLLOW=off"),
        ("=worker", "INTERPOSE_FOLLOW==worker, or left no experiment"),
    ],
)
def test_a_child_that_nobody_wanted_to_follow_is_told_as_that(traced, interpose, follow, why):
    done = traced("import os; os.wait() if os.fork() else os._exit(0)", INTERPOSE_FOLLOW=follow)

    assert [why_not(child, process) for process, child in unfollowed(done.experiment)] == [why]
    assert why in interpose("processes", "--format", "json", done.path).stdout


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


# --- reading what was built


def forked(tmp_path, **record):
    """A founder that forked once, and the child, which nobody saw end."""
    build = Build(tmp_path / "t.1.er")
    build.child(how=FORK, pid=77, number=1, **record)
    path = build.write()
    Build(path / "_f1.er", pid=77, start_ns=START_NS + SECOND).write()
    return Experiment(str(path))


def test_the_end_that_the_parent_saw_is_the_childs(tmp_path):
    end = ending(forked(tmp_path, end_ns=START_NS + 9 * SECOND, status=11 | 0x80).processes[1])

    assert (end.state, end.signal, end.end_ns) == ("killed", 11, START_NS + 9 * SECOND)


def test_a_child_that_nobody_waited_for_ended_unseen(tmp_path):
    assert ending(forked(tmp_path).processes[1]).state == "unseen"


def test_of_two_with_the_same_number_each_has_its_own_end(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for turn in range(3):
        start_ns = START_NS + turn * 10 * SECOND
        build.child(how=SPAWN, pid=77, start_ns=start_ns, end_ns=start_ns + 5 * SECOND, status=(turn + 1) << 8)
    path = build.write()
    for number, turn in ((1, 0), (2, 2)):
        Build(path / f"_c{number}.er", pid=77, start_ns=START_NS + (turn * 10 + 1) * SECOND).write()
    experiment = Experiment(str(path))

    assert told(experiment) == [("", "unseen", 0), ("_c1", "exit", 1), (None, "exit", 2), ("_c2", "exit", 3)]


def test_what_a_process_became_has_the_end_of_its_number(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    build.child(how=EXEC, pid=70, error=2)
    build.child(how=EXEC, pid=70, start_ns=START_NS + SECOND, command=build.string("/usr/bin/python3"))
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 8 * SECOND}" signal="15"/>')
    path = build.write()
    Build(path / "_x1.er", pid=70, start_ns=START_NS + 2 * SECOND).write()
    founder, successor = Experiment(str(path)).processes

    assert (ending(founder).state, ending(founder).end_ns) == ("exec", START_NS + SECOND)
    assert ending(founder).command == "/usr/bin/python3"
    assert (ending(successor).state, ending(successor).signal) == ("killed", 15)


def test_what_a_shell_started_is_below_it(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    build.child(how=SPAWN, pid=71, command=build.string("/bin/sh"), why=build.string("not Python"))
    path = build.write()
    Build(path / "_c1.er", pid=72, ppid=71, start_ns=START_NS + SECOND).write()

    rows = list(walk(tree(Experiment(str(path)))))

    assert [(depth, node.pid) for depth, node in rows] == [(0, 70), (1, 71), (2, 72)]


@pytest.mark.parametrize(
    "lineage, parts",
    [
        ("", ("", "", 0)),
        ("_f3", ("", "f", 3)),
        ("_f1_x12", ("_f1", "x", 12)),
        ("_f" + "9" * 99, ("", "f", 10**18 - 1)),
    ],
)
def test_a_lineage_is_its_starters_and_a_step(lineage, parts):
    assert split_lineage(lineage) == parts


def test_the_command_shows_a_tree_and_the_report_who_was_not_followed(interpose, tmp_path):
    build = Build(tmp_path / "work" / "t.1.er", pid=70)
    shell, reason = build.string("/bin/sh"), build.string("not Python")
    started = build.stack(build.site("/home/u/orders.py", 7, "print_all"))
    for pid in (71, 72):
        used = {"cpu_ns": SECOND // 4, "memory_kib": 3 * 1024, "stack": started, "usage": 1, "major_faults": 7}
        used |= {"system_ns": SECOND // 20, "out_blocks": 8}
        build.child(how=SPAWN, pid=pid, command=shell, why=reason, end_ns=START_NS + SECOND, status=3 << 8, **used)
    build.ended(2 * SECOND, SECOND)
    build.write()

    shown = interpose("processes")
    report = interpose("report")

    founder, shown_child = [" ".join(line.split()) for line in shown.stdout.splitlines()[1:3]]
    assert founder.startswith("founder 70 0.000 s 2.000 s exit 0 ")
    assert shown_child == "- 71 0.000 s 1.000 s 250 ms exit 3 /bin/sh not Python"
    told = json.loads(interpose("processes", "--format", "json").stdout)[1]
    assert (told["cpu_ns"], told["memory_bytes"]) == (SECOND // 4, 3 << 20)
    assert (told["system_ns"], told["major_faults"], told["written_bytes"]) == (SECOND // 20, 7, 4096)
    assert (told["is_usage_exact"], told["is_memory_at_most"]) == (True, False)
    assert (told["site"], told["function"]) == ("/home/u/orders.py:7", "print_all")
    assert " not followed  2 processes: /bin/sh (not Python) 2\n" in report.stdout
    assert " CPU of children not followed  500 ms  not in the table: sh 500 ms\n" in report.stdout
    whole = json.loads(interpose("report", "--format", "json").stdout)
    assert whole["children_not_followed"] == [{"program": "sh", "cpu_ns": SECOND // 2, "is_estimated": False}]
    assert " children     2.00 s  2 x sh  orders.py:7  CPU 500 ms, 3.00 MiB, 2 failed\n" in report.stdout


def test_what_each_child_used_is_what_the_kernel_counted(traced):
    """Two at a time in two threads, and one after them."""
    done = traced("""
        import os, subprocess, sys, threading
        BUSY = "import time\\nwhile time.process_time() < %s: pass\\nbytearray(%d << 20)"
        used = {}
        def run(seconds, megabytes):
            child = subprocess.Popen([sys.executable, "-IS", "-c", BUSY % (seconds, megabytes)])
            pid, _, usage = os.wait4(child.pid, 0)
            child.returncode = 0
            used[pid] = round((usage.ru_utime + usage.ru_stime) * 1e9)
        threads = [threading.Thread(target=run, args=each) for each in ((0.1, 1), (0.2, 1))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        run(0.05, 60)
        for pid, ns in used.items():
            print(pid, ns)
    """)
    told = dict(map(int, line.split()) for line in done.stdout.splitlines())
    found = {child.record.pid: child for child in done.experiment.founder.children}

    assert (done.returncode, done.stderr) == (0, "")
    assert sum(told.values()) == pytest.approx(sum(found[pid].record.cpu_ns for pid in told), abs=20_000)
    assert found[max(told, key=lambda pid: found[pid].record.start_ns)].record.memory_kib > 60 * 1024
    assert all(done.experiment.founder.own_line(each.record.stack).function == "run" for each in found.values())


# Whoever reaps the child keeps what the kernel says of it then; of os.waitid what it said before.
REAPED = """
    import os, resource, subprocess, sys, threading
    BUSY = ["sh", "-c", "i=0; while [ $i -lt %d ]; do i=$((i+1)); done; exit 3"]
    before = lambda: resource.getrusage(resource.RUSAGE_CHILDREN)
    def figures(now, then=None):
        names = "ru_minflt ru_majflt ru_inblock ru_oublock ru_nvcsw ru_nivcsw".split()
        less = lambda name: getattr(now, name) - (getattr(then, name) if then else 0)
        print(round((less("ru_utime") + less("ru_stime")) * 1e6), round(less("ru_stime") * 1e6), *map(less, names))
    def spawn(turns):
        return os.posix_spawnp("sh", [*BUSY[:2], BUSY[2] % turns], os.environ)
    for wait in (
        lambda pid: os.waitpid(pid, 0),
        lambda pid: os.wait(),
        lambda pid: os.waitid(os.P_PID, pid, os.WEXITED),
        lambda pid: (os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT), os.waitpid(pid, 0)),
        lambda pid: os.wait3(0),
        lambda pid: os.wait4(pid, 0),
    ):
        then = before()
        wait(spawn(100000))
        figures(before(), then)
    then = before()
    assert subprocess.run([*BUSY[:2], BUSY[2] % 100000]).returncode == 3
    figures(before(), then)
    then = before()
    os.system(BUSY[2] % 100000)
    figures(before(), then)
"""


def figures_of(child):
    record = child.record
    counts = (record.minor_faults, record.major_faults, record.in_blocks, record.out_blocks)
    switches = (record.voluntary_switches, record.involuntary_switches)
    return [record.cpu_ns // 1000, record.system_ns // 1000, *counts, *switches]


def test_all_that_the_kernel_counts_of_a_child_is_there_whoever_waits(traced):
    done = traced(REAPED)
    children = done.experiment.founder.children

    assert (done.returncode, done.stderr) == (0, "")
    told = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [figures_of(child) for child in children] == [[pytest.approx(each, abs=2) for each in line] for line in told]
    assert [child.is_exact for child in children] == [True] * 7 + [False]
    assert [child.exit_status for child in children] == [3] * 8
    assert all(done.experiment.founder.own_line(child.record.stack) for child in children)
    assert all(child.record.cpu_ns > 1_000_000 and child.record.minor_faults > 50 for child in children)


def test_of_children_that_are_waited_for_at_once_each_has_its_own_figures(traced):
    done = traced("""
        import os, subprocess, threading
        def run(turns):
            code = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done; times" % turns
            child = subprocess.Popen(["sh", "-c", code], stdout=subprocess.PIPE)
            output = child.stdout.read().split()
            child.wait()
            print(child.pid, *map(bytes.decode, output[:2]))
        threads = [threading.Thread(target=run, args=(turns,)) for turns in (10, 100000, 300000, 10, 200000, 10)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    found = {child.record.pid: child for child in done.experiment.founder.children}

    assert (done.returncode, done.stderr) == (0, "")
    for line in done.stdout.splitlines():
        pid, *own = line.split()
        minutes_and_seconds = [each.rstrip("s").split("m") for each in own]
        told_s = sum(60 * int(minutes) + float(seconds) for minutes, seconds in minutes_and_seconds)
        assert found[int(pid)].is_exact
        assert found[int(pid)].record.cpu_ns / 1e9 == pytest.approx(told_s, abs=0.03)  # the shell's are in hundredths


def test_memory_is_told_exactly_only_beyond_its_starters(tmp_path):
    program = write_program(
        tmp_path,
        """
        import subprocess, sys
        def run(megabytes):
            code = "bytearray(%d << 20).count(1)" % megabytes
            subprocess.call([sys.executable, "-ISc", code], env={"INTERPOSE": "0"})
        run(0)
        run(90)
        kept = bytearray(200 << 20)
        kept.count(1)
        run(90)
        """,
    )

    # The shell forks it: whatever these tests have in memory would count for a program that they started themselves.
    words = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, str(program)]
    subprocess.run(words, cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    small, large, within = Experiment(str(tmp_path / "test.1.er")).founder.children

    assert not large.is_memory_at_most and 90 << 20 < large.memory_bytes < 130 << 20
    assert small.is_memory_at_most or small.memory_bytes < 60 << 20
    assert within.is_memory_at_most


WORK = """
    import os, subprocess
    count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    subprocess.call(["sh", "-c", count])
    os.system(count)
    if os.fork() == 0:
        sum(range(1000000))
        os.execvp("sh", ["sh", "-c", count])
    os.wait()
"""


def test_the_cpu_of_followed_and_unfollowed_is_all_that_the_kernel_counts(tmp_path):
    program = write_program(tmp_path, WORK)
    child = subprocess.Popen([sys.executable, program], cwd=tmp_path, env=environment(INTERPOSE="1"))
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    experiment = Experiment(str(tmp_path / "test.1.er"))

    (shell,) = unfollowed_cpu(experiment)
    followed_ns = sum(process.overview[-1].cpu_ns for process in experiment.processes)
    assert child.returncode == 0
    assert shell.program == "sh"
    whole_ns = (used.ru_utime + used.ru_stime) * 1e9
    assert shell.cpu_ns + followed_ns == pytest.approx(whole_ns, rel=0.05)
    assert shell.cpu_ns > whole_ns / 5


def test_what_the_interpreter_calls_is_put_back(traced):
    done = traced("""
        import os
        from interpose.timing import shims
        def run():
            child = os.posix_spawnp("sh", ["sh", "-c", "exit 9"], os.environ)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(run(), shims.end(), run())
    """)

    assert (done.stdout, done.stderr) == ("9 0 9\n", "")
    assert len(done.experiment.founder.children) == 1


def test_a_wait_that_fails_fails_as_before(traced):
    done = traced("""
        import os
        for wait in (os.wait, lambda: os.waitpid(-1, 0), lambda: os.waitid(os.P_ALL, 0, os.WEXITED)):
            try: wait()
            except ChildProcessError as error: print(error.errno)
        pid = os.posix_spawnp("sleep", ["sleep", "0.2"], os.environ)
        print(os.waitpid(pid, os.WNOHANG), os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG), os.waitpid(pid, 0)[1])
    """)

    assert (done.stdout, done.stderr) == ("10\n10\n10\n(0, 0) None 0\n", "")
    (child,) = done.experiment.founder.children
    assert child.is_exact


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_the_tree_comes_in_every_format(interpose, tmp_path, form):
    build = Build(tmp_path / "work" / "t.1.er", pid=70)
    build.child(how=SPAWN, pid=71, command=build.string("/bin/sh"))
    build.write()

    done = interpose("processes", "--format", form)

    assert (done.returncode, done.stderr) == (0, "")
    assert "/bin/sh" in done.stdout
    assert "left no experiment" in done.stdout
