"""CPU time of threads, and their wait for a processor, are what the kernel itself counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.run_queue import unseen_wait
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from tests.kernel_watching import KERNEL, MARKS, calls_of, compiled
from tests.tracing import environment

pytestmark = MARKS


def watched_child(directory: Path, *words: str | Path) -> tuple[Process, dict[str, object]]:
    """The record of a program that a shell started, from its fork on, and what the program prints as JSON."""
    script = [*KERNEL, "-o", "clock.1.er", "sh", "-c", '"$@"; exit 0', "sh", *words]
    done = subprocess.run(script, cwd=directory, env=environment(), capture_output=True, text=True, check=True)
    newest = max(map(str, directory.glob("clock*.er")), key=os.path.getmtime)
    (child,) = [each for each in Experiment(newest).processes if each.lineage]
    return child, json.loads(done.stdout)


# --- CPU time

ENDS = """
sys.stdout.write(json.dumps(time.process_time_ns()))
sys.stdout.flush()
os._exit(0)
"""
PROGRAMS = {
    "sleeps": """
for _ in range(10_000):
    time.sleep(0.00005)
""",
    "fights for the interpreter lock": """
def work():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        sum(range(2_000))
        os.getppid()
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
""",
    "hands over": """
there, back = threading.Semaphore(0), threading.Semaphore(0)
def answer():
    for _ in range(10_000):
        there.acquire()
        back.release()
thread = threading.Thread(target=answer)
thread.start()
for _ in range(10_000):
    there.release()
    back.acquire()
thread.join()
""",
    "computes": """
end = time.process_time() + 1
while time.process_time() < end:
    sum(range(10_000))
""",
}


@pytest.mark.alone
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cpu_time_of_a_process_is_what_the_kernel_charges_for_it(tmp_path, name):
    """Only we count time that a hypervisor takes from a running thread as CPU time, so the best of some runs counts."""
    source = f"import json, os, sys, threading, time\n{PROGRAMS[name]}{ENDS}"

    least = 1.0
    for _ in range(3):
        process, charged_ns = watched_child(tmp_path, sys.executable, "-c", source)
        cpu_ns = sum(each.record.end_cpu_ns for each in process.threads)
        least = min(least, abs(cpu_ns / charged_ns - 1))
    assert least < 0.01


SLEEPER = """
#include <stdio.h>
#include <time.h>
static long long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
int main(void)
{
    struct timespec shortly = {0, 50000};
    long long begin = cpu_ns();
    for (int each = 0; each < 10000; each++)
        nanosleep(&shortly, 0);
    printf("%lld", cpu_ns() - begin);
}
"""


def test_what_a_switch_costs_is_in_the_call_that_slept_or_is_overhead(tmp_path):
    process, charged_ns = watched_child(tmp_path, compiled(tmp_path, SLEEPER))

    slept = [event for name, event in calls_of(process) if name == "syscall.clock_nanosleep"]
    cost_ns = len(slept) * (process.log.call_ns - process.log.inside_ns)
    overhead_ns = process.threads[0].record.own_cpu_ns
    assert len(slept) == 10_000
    assert all(event.cpu_ns <= event.wall_ns for event in slept)
    assert 0.85 * charged_ns < sum(event.cpu_ns for event in slept) + overhead_ns + cost_ns < 1.05 * charged_ns
    assert 0 <= overhead_ns < 0.6 * charged_ns


# --- the wait for a processor

RIVALS = """
import json, os, sys, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def delay_ns():
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])
said = {}
def sleeps():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        time.sleep(0.001)
    say()
def computes():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        sum(range(1_000))
    say()
def say():
    said[threading.get_native_id()] = delay_ns()
    time.sleep(0.5)
threads = [threading.Thread(target=act) for act in (sleeps, computes)]
for each in threads: each.start()
for each in threads: each.join()
print(json.dumps(said))
"""
RIVAL = "import os, time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\nwhile True: pass"


@pytest.fixture
def rival():
    """A process that computes on the first processor, and is not watched."""
    with subprocess.Popen([sys.executable, "-c", RIVAL], stdout=subprocess.PIPE, env=environment()) as process:
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.long
def test_threads_wait_for_a_processor_as_long_as_the_kernel_counted(tmp_path, rival):
    process, delays_ns = watched_child(tmp_path, sys.executable, "-c", RIVALS)

    found = {each.record.tid: each.record.run_delay_ns for each in process.threads}
    for tid, delay_ns in delays_ns.items():
        assert delay_ns > 20_000_000
        # The thread may have waited once more between its own reading and the next note.
        assert delay_ns - 5_000_000 < found[int(tid)] < 1.02 * delay_ns + 20_000_000


RIVALLED = """
import json, os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
end = time.monotonic() + 1
while time.monotonic() < end:
    sum(range(1_000))
with open("/proc/self/schedstat") as file:
    print(json.dumps(int(file.read().split()[1])))
"""


@pytest.mark.long
def test_a_processor_that_was_taken_away_between_calls_was_waited_for_there(tmp_path, rival):
    process, delay_ns = watched_child(tmp_path, sys.executable, "-c", RIVALLED)

    waits = unseen_wait(Analysis(Experiment(process.directory)).accounts)
    assert delay_ns > 100_000_000
    assert 0.9 * delay_ns < waits.processor_ns < 1.02 * delay_ns + 20_000_000
    assert waits.unexplained_ns < 0.1 * delay_ns
