"""What child processes used, as the kernel counts it."""

import json
import os
import subprocess
import sys

import pytest
from tracing import environment, write_program

from interpose.analysis.recording.lineage import tree, walk
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.experiments.format.children import SPAWN
from interpose.experiments.model.experiment import Experiment
from tests.build import Build


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
    """).ended_well()
    told = dict(map(int, line.split()) for line in done.stdout.splitlines())
    found = {child.record.pid: child for child in done.experiment.founder.children}

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


@pytest.mark.long
def test_all_that_the_kernel_counts_of_a_child_is_there_whoever_waits(traced):
    done = traced(REAPED).ended_well()
    children = done.experiment.founder.children

    told = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [figures_of(child) for child in children] == [[pytest.approx(each, abs=2) for each in line] for line in told]
    assert [child.is_exact for child in children] == [True] * 7 + [False]
    assert [child.exit_status for child in children] == [3] * 8
    assert all(done.experiment.founder.own_line(child.record.stack) for child in children)
    assert all(child.record.cpu_ns > 1_000_000 and child.record.minor_faults > 50 for child in children)


def test_a_child_that_was_only_looked_at_counts_once_where_later_ones_are_told_by_difference(traced):
    done = traced("""
        import os, resource
        BUSY = ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]
        pid = os.posix_spawnp("sh", BUSY, os.environ)
        for _ in range(3):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.waitpid(pid, 0)
        os.system(BUSY[2])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(round((used.ru_utime + used.ru_stime) * 1e9))
    """)

    used_ns = [each.record.cpu_ns for each in done.experiment.founder.children]
    assert len(used_ns) == 2
    assert sum(used_ns) == pytest.approx(int(done.stdout), abs=20_000)
    assert used_ns[1] > used_ns[0] // 4


def test_of_children_that_are_waited_for_at_once_each_has_its_own_figures(traced):
    done = traced("""
        import os, subprocess, sys, threading
        def run(turns):
            code = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done; times" % turns
            child = subprocess.Popen(["sh", "-c", code], stdout=subprocess.PIPE)
            output = child.stdout.read().split()
            child.wait()
            sys.stdout.write(" ".join([str(child.pid), *map(bytes.decode, output[:2])]) + "\\n")  # in one piece
        threads = [threading.Thread(target=run, args=(turns,)) for turns in (10, 100000, 300000, 10, 200000, 10)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """).ended_well()
    found = {child.record.pid: child for child in done.experiment.founder.children}

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
    import os, subprocess, sys
    count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    subprocess.call(["sh", "-c", count])
    os.system(count)
    if os.fork() == 0:
        sum(range(1000000))
        os.execvp("sh", ["sh", "-c", count])
    os.wait()
    if os.fork() == 0:
        os.execvp("sh", ["sh", "-c", sys.executable + " -c 'sum(range(8000000))'; true"])
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


BECOMES_OTHERS = """
    import os, resource, sys, time
    def work(seconds):
        while time.process_time() < seconds:
            pass
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(time.process_time_ns(), used.ru_minflt, flush=True)
    if len(sys.argv) == 1:
        if os.fork() == 0:
            work(0.1)
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        _, _, used = os.wait3(0)
        print(int((used.ru_utime + used.ru_stime) * 1e9), used.ru_minflt)
    else:
        text = bytearray(30 << 20)
        work(0.4)
        os.execvp("sh", ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
"""


def test_each_program_that_a_process_became_has_what_it_used_itself(tmp_path, interpose_here):
    program = write_program(tmp_path, BECOMES_OTHERS)
    words = {"cwd": tmp_path, "env": environment(INTERPOSE="1"), "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, program], **words)
    told = json.loads(interpose_here("processes", "--format", "json", str(tmp_path / "test.1.er")).stdout)
    fork, again, shell = [(row["cpu_ns"], row["minor_faults"]) for row in told[1:]]
    until_fork, until_again, whole = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert [row["pid"] == told[1]["pid"] for row in told] == [False, True, True, True]
    # What it did after it had looked, to write its recording and to begin the next program, is more.
    assert until_fork[0] <= fork[0] < until_fork[0] + 50_000_000
    assert until_again[0] - until_fork[0] >= again[0] - 50_000_000 > 200_000_000
    assert 7_000 < again[1] < until_again[1] + 1_000  # as it looked it had not begun to write its recording
    assert sum(counted[0] for counted in (fork, again, shell)) == pytest.approx(whole[0], abs=1_000_000)
    assert sum(counted[1] for counted in (fork, again, shell)) == whole[1]
    assert shell[0] > 10_000_000


WAITS_FOR_ITS_OWN = """
    import os, resource, sys, time
    def work(seconds):
        while time.process_time() < seconds:
            pass
        print(time.process_time_ns(), flush=True)
    if len(sys.argv) > 1:
        work(0.3)
    elif os.fork() == 0:
        if os.fork() == 0:
            work(0.6)
            os._exit(0)
        os.wait()
        os.execv(sys.executable, [sys.executable, __file__, "again"])
    else:
        _, _, used = os.wait3(0)
        print(int((used.ru_utime + used.ru_stime) * 1e9), used.ru_minflt)
"""


@pytest.mark.long
def test_what_a_process_used_is_without_the_children_that_it_waited_for(tmp_path, interpose_here):
    program = write_program(tmp_path, WAITS_FOR_ITS_OWN)
    words = {"cwd": tmp_path, "env": environment(INTERPOSE="1"), "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, program], **words)
    told = json.loads(interpose_here("processes", "--format", "json", str(tmp_path / "test.1.er")).stdout)
    rows = {row["lineage"]: row for row in told[1:]}
    child, again, whole = [list(map(int, line.split())) for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert set(rows) == {"_f1", "_f1_f1", "_f1_x1"}
    assert child[0] <= rows["_f1_f1"]["cpu_ns"] < child[0] + 300_000_000
    assert again[0] <= rows["_f1"]["cpu_ns"] + rows["_f1_x1"]["cpu_ns"] < again[0] + 300_000_000
    assert sum(row["cpu_ns"] for row in rows.values()) == pytest.approx(whole[0], abs=1_000_000)
    assert sum(row["minor_faults"] for row in rows.values()) == whole[1]


LIVES = """
    import os, sys, time
    for words in ([sys.executable, "-c", "pass"], ["sh", "-c", "exit 0"]):
        begin_ns = time.monotonic_ns()
        pid = os.posix_spawnp(words[0], words, os.environ)
        _, _, used = os.wait4(pid, 0)
        print(begin_ns, time.monotonic_ns(), int((used.ru_utime + used.ru_stime) * 1e9))
"""


def test_a_child_lasts_from_its_start_to_its_end_as_its_parent_saw_them(traced, interpose_here):
    done = traced(LIVES)
    rows = json.loads(interpose_here("processes", "--format", "json", done.path).stdout)[1:]

    assert [row["followed"] for row in rows] == [True, False]
    for row, line in zip(rows, done.stdout.splitlines(), strict=True):
        begin_ns, end_ns, cpu_ns = map(int, line.split())
        assert begin_ns <= row["start_ns"] < row["start_ns"] + row["duration_ns"] <= end_ns
        assert row["duration_ns"] >= cpu_ns  # of its one thread


NOT_PYTHON_BETWEEN = """
    import os, sys, time
    def work(seconds):
        begin = time.process_time()
        while time.process_time() < begin + seconds:
            pass
    if len(sys.argv) == 1:
        if os.fork() == 0:
            count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec "
            os.execvp("sh", ["sh", "-c", f"{count} {sys.executable} {__file__} again"])
        os.wait()
    else:
        begin = time.process_time()
        work(0.2)
        print(begin, time.process_time() - begin)
"""


def test_what_a_program_that_is_not_recorded_used_is_not_the_next_ones(tmp_path, interpose_here):
    program = write_program(tmp_path, NOT_PYTHON_BETWEEN)
    words = {"cwd": tmp_path, "env": environment(INTERPOSE="1"), "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, program], **words)
    told = json.loads(interpose_here("processes", "--format", "json", str(tmp_path / "test.1.er")).stdout)
    before_s, worked_s = map(float, done.stdout.split())

    assert (done.returncode, done.stderr) == (0, "")
    assert before_s > 0.15  # of the shell, and the start of Python
    assert worked_s <= told[-1]["cpu_ns"] / 1e9 < worked_s + before_s / 2


SHELL_WITH_A_CHILD = """
    import os, resource, subprocess, sys, time
    def used_s(who):
        used = resource.getrusage(who)
        return used.ru_utime + used.ru_stime
    if sys.argv[1] == "child":
        while time.process_time() < 0.6: pass
        print(time.monotonic_ns(), flush=True)
    elif sys.argv[1] == "again":
        print(time.monotonic_ns(), used_s(resource.RUSAGE_SELF), os.getpid(), flush=True)
        end_s = time.process_time() + 0.2
        while time.process_time() < end_s: pass
        print(used_s(resource.RUSAGE_SELF), used_s(resource.RUSAGE_CHILDREN), flush=True)
    else:
        again = f"exec {sys.executable} {__file__}"
        words = ["sh", "-c", f"{sys.executable} {__file__} child; {again} again"]
        if sys.argv[1] == "fork":
            if os.fork() == 0: os.execvp("sh", words)
            os.wait()
        else:
            subprocess.call(words)
"""


@pytest.mark.long
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_what_a_recorded_child_of_a_shell_used_is_not_the_next_programs(way, traced, interpose_here):
    done = traced(SHELL_WITH_A_CHILD, way)
    told = json.loads(interpose_here("processes", "--format", "json", done.path).stdout)
    child_ended, began, used = (list(map(float, line.split())) for line in done.stdout.splitlines())
    *_, again = (row for row in told if row["pid"] == began[2])

    assert used[1] > 0.6  # what the shell's child used
    assert used[0] - began[1] <= again["cpu_ns"] / 1e9 < used[0] + used[1] / 2
    assert child_ended[0] <= again["start_ns"] <= began[0]


IN_NAMESPACES = """
    import subprocess, sys
    def start(n):
        work = [sys.executable, "-c", f"sum(range({n}))"]
        return subprocess.Popen(["unshare", "-p", "-f", "--mount-proc", *work])
    running = [start(n) for n in (12_000_000, 4_000_000)]
    print(*(each.wait() for each in running))
"""


def test_the_cpu_of_a_process_in_another_namespace_is_counted_once(tmp_path):
    if subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no right to make a namespace")
    program = write_program(tmp_path, IN_NAMESPACES)
    words = {"cwd": tmp_path, "env": environment(INTERPOSE="1"), "stdout": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, program], **words)
    told = child.communicate()[0]
    experiment = Experiment(str(tmp_path / "test.1.er"))

    assert told == b"0 0\n"
    assert len(experiment.processes) == 3
    busy_ns = sum(process.overview[-1].cpu_ns for process in experiment.processes[1:])
    assert sum(each.cpu_ns for each in unfollowed_cpu(experiment)) < busy_ns / 2
    shown = [(depth, node.is_followed) for depth, node in walk(tree(experiment))]
    assert shown == [(0, True), *[(1, False), (2, True)] * 2]


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
def test_the_tree_comes_in_every_format(interpose_here, tmp_path, form):
    build = Build(tmp_path / "work" / "t.1.er", pid=70)
    build.child(how=SPAWN, pid=71, command=build.string("/bin/sh"))
    build.write()

    done = interpose_here("processes", "--format", form)

    assert (done.returncode, done.stderr) == (0, "")
    assert ("sh" if form == "markdown" else "/bin/sh") in done.stdout
    assert "left no experiment" in done.stdout
