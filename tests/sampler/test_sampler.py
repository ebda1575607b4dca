"""Python code is sampled from outside: functions, lines, threads and children, by what the programs measured."""

import json
import subprocess
import sys
import time
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.profiled import profiled
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import NOT_READ, WAITS, Sampled
from tests.sampler.chance import chance, samples_that_count

PHASES = """
import json, threading, time

def squares():
    s = 0
    for i in range(600_000): s += i * i % 7

def texts():
    for i in range(120_000): str(i)

def lists():
    for i in range(12): [x for x in range(40_000) if x % 3]

def measured(rounds):
    spent = {}
    for _ in range(rounds):
        for function in (squares, texts, lists):
            began = time.thread_time()
            function()
            spent[function.__name__] = spent.get(function.__name__, 0) + time.thread_time() - began
    return spent
"""


def cpu_by(process: Process, name) -> Counter:
    """CPU nanoseconds by what `name` gives of a sample's frames; what was used while a thread waited counts for what it
    does next."""
    sampled, found = Sampled(process), Counter()
    before, carried = {}, Counter()
    for record in sampled.samples():
        carried[record.tid] += record.cpu_ns - before.get(record.tid, record.cpu_ns)
        before[record.tid] = record.cpu_ns
        if record.state != WAITS:
            found[name(list(sampled.frames(record.stack)))] += carried.pop(record.tid)
    return found


def shares_of(spent) -> dict[str, float]:
    """In percent."""
    whole = sum(spent.values())
    return {name: 100 * part / whole for name, part in spent.items()}


def samples_of(process: Process) -> int:
    """How many samples there are of threads that ran, or were ready to."""
    return sum(each.samples for each in Sampled(process).samples() if each.state != WAITS)


def seen(process: Process) -> set[tuple[str, ...]]:
    """The own functions of each stack that was found, whether it ran or not; from the innermost outward."""
    sampled = Sampled(process)
    return {tuple(site.function for site in sampled.frames(each.stack) if site.own) for each in sampled.samples()}


def chosen(frames, names):
    return next((site.function for site in frames if site.function in names), "")


def run(record, text: str, *options: str):
    """What the program printed, as JSON, and its experiment."""
    return record(PHASES + text, *options)


@pytest.mark.long
@pytest.mark.alone
def test_functions_have_the_cpu_time_that_the_program_measured(record):
    spent, experiment = run(record, "print(json.dumps(measured(15)))", "--profile", "250")

    found = cpu_by(experiment.founder, lambda frames: chosen(frames, spent))

    samples = samples_that_count(experiment.founder)
    if samples < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    truth, shares = shares_of(spent), shares_of({name: found[name] for name in spent})
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    assert sum(found[name] for name in spent) == pytest.approx(1e9 * sum(spent.values()), rel=0.1)


@pytest.mark.long
def test_lines_are_those_that_run(record, work):
    text = """
def work():
    for _ in range(2000):
        sum(range(20_000))  # here
work()
print(json.dumps(0))
"""
    _, experiment = run(record, text)

    found = cpu_by(experiment.founder, lambda frames: (frames[0].function, frames[0].line) if frames else None)

    if samples_of(experiment.founder) < 10:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    line = 1 + (work / "app.py").read_text().split("\n").index("        sum(range(20_000))  # here")
    assert found["work", line] > 0.9 * sum(found.values())


@pytest.mark.long
def test_each_thread_has_its_own_samples(record):
    text = """
def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: sum(range(1000))

def first(): spin(0.8)
def second(): spin(0.5)

threads = [threading.Thread(target=each) for each in (first, second)]
for each in threads: each.start()
tids = {each._target.__name__ if hasattr(each, "_target") else "": each.native_id for each in threads}
for each in threads: each.join()
print(json.dumps([each.native_id for each in threads]))
"""
    (first, second), experiment = run(record, text)
    sampled = Sampled(experiment.founder)

    by_thread = {first: set(), second: set()}
    for record in sampled.samples():
        if record.tid in by_thread:
            by_thread[record.tid].update(site.function for site in sampled.frames(record.stack))

    assert {"first", "spin"} <= by_thread[first]
    assert {"second", "spin"} <= by_thread[second]
    assert "second" not in by_thread[first]


WITHOUT_FIRST_THREAD = """
import ctypes, json, threading, time

def work():
    while ") Z " not in open("/proc/self/stat").read(): pass
    kept = bytearray(64 << 20)
    print(json.dumps(measured(15)), flush=True)

threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


LATE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct beginning {
    void *(*function)(void *);
    void *argument;
};

static void *begin_late(void *given)
{
    struct beginning beginning = *(struct beginning *)given;
    free(given);
    usleep(100000);
    return beginning.function(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct beginning *beginning = malloc(sizeof *beginning);
    *beginning = (struct beginning){function, argument};
    return create(thread, attributes, begin_late, beginning);
}
"""


@pytest.mark.long
def test_a_thread_that_begins_long_after_it_was_made_is_sampled_from_its_beginning(record, work, compiler):
    late = work / "late.so"
    (work / "late.c").write_text(LATE)
    subprocess.run([compiler, "-shared", "-fPIC", str(work / "late.c"), "-o", str(late), "-ldl"], check=True)
    program = """
import json, threading, time
def spin():
    while time.thread_time() < 0.3: pass
    spent.append((threading.get_native_id(), time.thread_time()))
spent = []
thread = threading.Thread(target=spin)
thread.start()
thread.join()
print(json.dumps(spent))
"""

    [[tid, spent_s]], experiment = record(program, "--profile", "250", variables={"LD_PRELOAD": str(late)})

    times_ns = [each.cpu_ns for each in Sampled(experiment.founder).samples() if each.tid == tid]
    assert min(times_ns) < 0.1 * spent_s * 1e9
    assert max(times_ns) > 0.9 * spent_s * 1e9


@pytest.mark.long
@pytest.mark.alone
def test_functions_and_memory_are_known_after_the_first_thread_has_ended(record):
    spent, experiment = run(record, WITHOUT_FIRST_THREAD, "--profile", "500")

    founder = experiment.founder
    found = cpu_by(founder, lambda frames: chosen(frames, spent))
    assert found.keys() & spent.keys()
    samples = samples_that_count(founder)
    if samples < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    truth, shares = shares_of(spent), shares_of({name: found[name] for name in spent})
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    sizes = [each.resident_bytes for each in Sampled(founder).memory()]
    assert max(sizes) > min(sizes) + (50 << 20)


def test_a_thread_that_waits_is_seen_to_wait_in_its_call(record):
    text = """
time.sleep(0.5)
print(json.dumps(0))
"""
    _, experiment = run(record, text)
    founder = experiment.founder

    waits = [each for each in Sampled(founder).samples() if each.state == WAITS and each.call]

    asleep = [each for each in waits if founder.intrinsic(each.intrinsic).name == "time.sleep"]
    assert sum(each.samples for each in asleep) >= 10
    assert max(each.last_ns for each in asleep) - min(each.time_ns for each in asleep) > 0.3e9


CHILDREN = """
import multiprocessing, os, subprocess, sys

def child(): measured(6)

if __name__ == "__main__":
    {how}
    print(json.dumps(0))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "lineage"),
    [
        ("p = multiprocessing.get_context('fork').Process(target=child); p.start(); p.join()", "_f1"),
        ("p = multiprocessing.get_context('spawn').Process(target=child); p.start(); p.join()", ""),
        ("os.execv(sys.executable, [sys.executable, '-c', 'exec(open(\"app.py\").read().split(\"import multi\")[0]);"
         " measured(6); print(0)'])", "_x1"),
    ],
)  # fmt: skip
def test_children_are_sampled_like_their_parents(record, how, lineage):
    _, experiment = run(record, CHILDREN.format(how=how))

    children = [each for each in experiment.processes if each is not experiment.founder]
    found = [{function for stack in seen(each) for function in stack} for each in children]

    assert any({"squares", "texts", "lists"} <= each for each in found)
    assert not lineage or lineage in [each.lineage for each in children]


LOCKED = """
import ctypes, json, threading, time
hold = ctypes.PyDLL(None).usleep  # keeps the interpreter lock
spent, done = {"often": 0.0, "seldom": 0.0}, False

def holder():
    while not done: hold(20_000)

def give_up():
    began = time.monotonic()
    time.sleep(0)
    return time.monotonic() - began

def often():
    spent["often"] += give_up()

def seldom():
    spent["seldom"] += give_up()

threading.Thread(target=holder).start()
for _ in range(40):
    for _ in range(3): often()
    seldom()
done = True
print(json.dumps(spent))
"""


@pytest.mark.long
@pytest.mark.alone
def test_each_wait_for_the_interpreter_lock_counts_where_it_is(record):
    spent, experiment = record(LOCKED)

    sampled, found = Sampled(experiment.founder), Counter()
    for each in sampled.samples():
        found[chosen(sampled.frames(each.stack), spent)] += each.samples

    samples = found["often"] + found["seldom"]
    truth = shares_of(spent)
    assert samples > 50, "the machine is too busy"
    assert 100 * found["seldom"] / samples == pytest.approx(truth["seldom"], abs=chance(truth["seldom"], samples))


def test_coroutines_and_generators_are_on_the_stack(record):
    text = """
import asyncio

def numbers():
    while True:
        yield sum(range(2000))

async def inner():
    source, until = numbers(), time.thread_time() + 0.4
    while time.thread_time() < until: next(source)

async def outer(): await inner()

asyncio.run(outer())
print(json.dumps(0))
"""
    _, experiment = run(record, text)

    assert ("numbers", "inner", "outer", "<module>") in seen(experiment.founder)


def test_of_deep_stacks_the_innermost_frames_are_kept_and_the_rest_is_told(record):
    text = """
def deeper(depth):
    return deeper(depth - 1) if depth else measured(6)

deeper(400)
print(json.dumps(0))
"""
    _, experiment = run(record, text)
    sampled = Sampled(experiment.founder)

    deep = [each.stack for each in sampled.samples() if each.stack and sampled.is_cut(each.stack)]

    assert deep
    assert all(list(sampled.frames(stack))[-1].function == "deeper" for stack in deep)
    assert "squares" in {site.function for stack in deep for site in sampled.frames(stack)}


def test_own_code_is_told_from_the_standard_library(record):
    text = """
import json.decoder
until = time.thread_time() + 0.4
while time.thread_time() < until: json.decoder.py_scanstring('"' + "a\\\\n" * 300 + '"', 1)
print(json.dumps(0))
"""
    _, experiment = run(record, text)
    sampled = Sampled(experiment.founder)

    own = {site.function: site.own for each in sampled.samples() for site in sampled.frames(each.stack)}

    assert own["py_scanstring"] is False
    assert own["<module>"] is True


def test_names_that_are_no_ascii_are_kept(record):
    text = """
def größe(): measured(3)
def 測る(): größe()
測る()
print(json.dumps(0))
"""
    _, experiment = run(record, text)
    sampled = Sampled(experiment.founder)

    names = {site.function for each in sampled.samples() for site in sampled.frames(each.stack)}

    assert {"größe", "測る"} <= names


def test_where_it_is_switched_off_there_are_no_samples(record, work):
    _, experiment = run(record, "print(json.dumps(measured(2)))", "--profile", "off")

    assert not Sampled(experiment.founder).is_there
    assert not list((work / "test.1.er").glob("sampled*"))


@pytest.mark.long
def test_without_run_a_monitor_samples_a_program_that_asks_for_it(interpose, work, own_environment):
    until_sampled = """
import os
until = time.monotonic() + 30  # on a busy machine the monitor, with its low priority, begins late
while time.monotonic() < until and not os.path.exists("test.1.er/samples"): measured(2)
measured(10)
"""
    (work / "app.py").write_text(PHASES + until_sampled)

    subprocess.run(
        [sys.executable, "app.py"], cwd=work, env={**own_environment, "INTERPOSE": "calls,profile"}, check=True
    )

    found = {function for stack in seen(Experiment(str(work / "test.1.er")).founder) for function in stack}
    assert {"squares", "texts"} <= found


@pytest.mark.long
@pytest.mark.parametrize("option", [("--record", "calls,profile"), ("--profile", "250")])
def test_a_program_that_runs_already_is_sampled_where_attach_is_told_to(option, interpose, work, own_environment):
    (work / "app.py").write_text(PHASES + "print('ready', flush=True)\nmeasured(200)")
    words = [sys.executable, "app.py"]
    with subprocess.Popen(words, cwd=work, env=own_environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        done = interpose("attach", *option, str(process.pid))
        if done.returncode:
            process.kill()
            pytest.skip(done.stderr)
        found, until = set(), time.monotonic() + 20
        while not {"squares", "texts", "lists"} <= found and time.monotonic() < until:
            time.sleep(0.2)
            found = {function for stack in seen(Experiment(str(work / "test.1.er")).founder) for function in stack}
        process.kill()

    assert {"squares", "texts", "lists"} <= found


GENERATOR = """
until = time.thread_time() + 1
while time.thread_time() < until: sum(i for i in range(1000))
print(json.dumps(0))
"""


@pytest.mark.long
def test_a_generator_always_has_its_callers(record):
    """It is suspended as often as it gives something: then it has none, and what was read belongs to two instants."""
    _, experiment = run(record, GENERATOR, "--profile", "500")
    sampled = Sampled(experiment.founder)

    stacks = [[site.function for site in sampled.frames(each.stack)] for each in sampled.samples()]

    found = [stack for stack in stacks if "<genexpr>" in stack]
    assert found
    assert all("<module>" in stack for stack in found)


CALLS = """
def one(n): return two(n) + 1
def two(n): return three(n) + 1
def three(n): return n
until = time.thread_time() + 1
while time.thread_time() < until:
    for n in range(1000): one(n)
print(json.dumps(0))
"""

RECURSION = """
def deeper(depth): return 1 + deeper(depth - 1) if depth else 0
until = time.thread_time() + 1
while time.thread_time() < until:
    for n in range(40): deeper(24)
print(json.dumps(0))
"""


@pytest.mark.long
@pytest.mark.parametrize("program", [CALLS, RECURSION], ids=["calls", "recursion"])
def test_most_stacks_can_be_read(record, program):
    """Calls come and go all the time here."""
    _, experiment = run(record, program, "--profile", "500")
    records = list(Sampled(experiment.founder).samples())

    torn = sum(each.samples for each in records if each.stack == NOT_READ)

    assert torn <= 0.05 * sum(each.samples for each in records)


KILLS_ITS_MONITOR = """
import json, os, signal, time
def compute(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        sum(range(200))
    return time.thread_time() - began
def early(): return compute(0.6)
def late(): return compute(1.2)
spent = {"early": early()}
os.kill(os.getppid(), signal.SIGKILL)
spent["late"] = late()
with open("spent", "w") as file:
    json.dump(spent, file)
"""


@pytest.mark.alone
def test_what_ran_after_the_monitor_was_killed_is_not_sampled(interpose, work):
    (work / "app.py").write_text(KILLS_ITS_MONITOR)
    interpose("run", "app.py")
    waited_until = time.monotonic() + 30
    while not (work / "spent").exists() and time.monotonic() < waited_until:
        time.sleep(0.1)
    time.sleep(0.5)
    spent = json.loads((work / "spent").read_text())

    functions = profiled(Analysis(Experiment(str(work / "test.1.er")))).code(callers_in)
    assert 0 < functions["early"].cpu_ns < 1.1 * spent["early"] * 1e9
    assert functions["not sampled"].cpu_ns > 0.95 * spent["late"] * 1e9
    assert functions.get("late", Code()).cpu_ns < 0.05 * spent["late"] * 1e9


def callers_in(frames):
    """`early` or `late`, or what stands for no code."""
    return next((each.function for each in frames if each.function in ("early", "late")), frames[0].function)
