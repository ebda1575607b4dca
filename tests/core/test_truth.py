"""The report of a program whose work is known."""

import json
import subprocess
import sys

import pytest
from tracing import environment, write_program

pytestmark = pytest.mark.every_python

# Each thread measures its own work, part by part, on the clocks that every Python has; main prints the sums.
PROGRAM = """
    import ctypes, json, os, queue, sqlite3, sys, threading, time
    sys.setswitchinterval(10)  # no thread loses the interpreter between a measurement and the call that it is of
    usleep = ctypes.CDLL(None).usleep
    nothing = os.open(os.devnull, os.O_WRONLY)
    work = queue.SimpleQueue()
    measured = []
    COUNT = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i) from n"

    class Measure:
        def __init__(self):
            with open("/proc/thread-self/schedstat") as file:
                delay = int(file.read().split()[1])
            self.wall, self.cpu = {"delay": delay}, {}
            self.begin = time.perf_counter_ns(), time.thread_time_ns()
            self.cpu["before"] = self.begin[1]
        def end(self):
            self.wall["whole"] = time.perf_counter_ns() - self.begin[0]
            self.cpu["whole"] = time.thread_time_ns() - self.begin[1]
            measured.append(self)
        def __call__(self, part, act, *arguments):
            cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
            result = act(*arguments)
            wall_end, cpu_end = time.perf_counter_ns(), time.thread_time_ns()
            self.cpu[part] = self.cpu.get(part, 0) + cpu_end - cpu
            self.wall[part] = self.wall.get(part, 0) + wall_end - wall
            return result

    def compute(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    def worker(number):
        measure = Measure()
        cursor = measure("program", lambda: sqlite3.connect(":memory:").cursor())
        for turn in range(4):
            measure("sleep", time.sleep, 0.05 + 0.01 * number)
            measure("program", compute, 0.05 + 0.01 * number)
            for _ in range(3):
                measure("db", cursor.execute, COUNT)
                measure("db", cursor.fetchone)
            measure("unseen", usleep, 50_000)
            measure("idle", work.get)
        measure("sleep", time.sleep, 0.2)
        measure.end()

    measure = Measure()
    threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for turn in range(16):
        measure("sleep", time.sleep, 0.15)
        work.put(turn)
    for thread in threads:  # to join one that has ended is no wait
        if thread.is_alive(): measure("sync", thread.join)
    for _ in range(50):
        os.write(nothing, b"0123456789")
    measure.end()
    print(json.dumps([[each.wall, each.cpu] for each in measured]))
"""


@pytest.fixture
def report(interpose_here, tmp_path):
    """The rows of a report."""

    def rows(*words):
        done = interpose_here("report", "--format", "json", *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return rows


@pytest.mark.long
@pytest.mark.alone
def test_every_row_is_right_to_one_percent(tmp_path, report):
    program = write_program(tmp_path, PROGRAM)
    words = [sys.executable, str(program)]
    # As the program measures: what a call waits for the interpreter lock, before it returns, is its own.
    variables = environment(INTERPOSE="1", INTERPOSE_KINDS="all,gil=off")
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    wall = {part: sum(each.get(part, 0) for each, _ in measured) for part in ("db", "sleep", "idle")}
    cpu = {part: sum(each.get(part, 0) for _, each in measured) for part in ("db", "program", "before")}
    joins = measured[4][0]["sync"]
    calls = ("db", "sleep", "idle", "sync")
    waited = sum(wall["whole"] - cpu["whole"] for wall, cpu in measured)
    waited -= sum(wall.get(part, 0) - cpu.get(part, 0) for wall, cpu in measured for part in calls)
    before = sum(wall["delay"] for wall, _ in measured)
    rows = {row["kind"]: row for row in report("--by", "kind")}
    intrinsics = {row["intrinsic"]: row for row in report("--by", "intrinsic")}
    program_row = rows["code"]

    # A queue that always had something was not waited for: then the measuring itself is what there is.
    assert {part: rows[part]["self_wall_ns"] for part in wall} == {
        part: pytest.approx(ns, rel=0.01, abs=2e6 if part == "idle" else 0) for part, ns in wall.items()
    }
    assert intrinsics["threading.Thread.join"]["wall_ns"] == pytest.approx(joins, rel=0.01)
    assert rows["db"]["self_cpu_ns"] == pytest.approx(cpu["db"], rel=0.01)
    # Beside what was measured the program starts, and measures: some hundredths of a second; and the time for which the
    # threads were kept from running before they began to measure, as the kernel tells.
    assert program_row["self_cpu_ns"] == pytest.approx(cpu["program"], rel=0.01, abs=40e6 + cpu["before"])
    program_waited = program_row["self_wall_ns"] - program_row["self_cpu_ns"]
    assert program_waited == pytest.approx(waited, rel=0.01, abs=20e6 + before)
    assert (intrinsics["os.write"]["calls"], intrinsics["os.write"]["bytes"]) == (50, 500)
    assert intrinsics["sqlite3.Cursor.execute"]["calls"] == 48


@pytest.mark.long
def test_all_groupings_add_up_to_the_same_thread_time(tmp_path, report):
    program = write_program(tmp_path, PROGRAM)
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    groupings = ("kind", "intrinsic", "site", "function", "detail", "thread", "process")
    sums = {
        (sum(row["self_wall_ns"] for row in rows), sum(row["self_cpu_ns"] for row in rows))
        for rows in (report("--by", by) for by in groupings)
    }

    assert len(sums) == 1
