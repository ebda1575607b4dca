"""Findings about locks that threads wait for when the recording ends: deadlocks, and locks that are not released."""

import sysconfig

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND, START_NS, Build

IN_PROGRESS = ("deadlock", "lock not released")
STUCK = """
import os, signal, threading, time
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
signal.setitimer(signal.ITIMER_REAL, 0.5)
a, b = threading.Lock(), threading.Lock()
"""
OPPOSITE = """
def one():
    with a:
        time.sleep(0.1)
        with b:  # one waits
            pass
def two():
    with b:
        time.sleep(0.1)
        with a:  # two waits
            pass
threads = [threading.Thread(target=each) for each in (one, two)]
[each.start() for each in threads]
[each.join() for each in threads]
"""
knows_holders = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="the holder is unknown until the wait ends"
)


def told(experiment):
    survey = Survey(Analysis(experiment))
    found = [each for each in found_in(survey) if each.rule in IN_PROGRESS]
    return [(each.rule, Sentences(found, "", survey.matters_ns).of(each)) for each in found]


@knows_holders
def test_threads_that_wait_for_each_other_are_in_a_deadlock(traced):
    done = traced(STUCK + OPPOSITE)

    ((rule, words),) = told(done.experiment)

    assert rule == "deadlock"
    assert words.startswith("Deadlock: thread ") and words.count(" waits at ") == 2
    for waits, took in ((10, 13), (15, 8)):
        assert f"program.py:{waits} " in words and f"program.py:{took} " in words


@knows_holders
def test_the_only_thread_that_waits_for_its_own_lock_is_in_a_deadlock(traced):
    done = traced(STUCK + "a.acquire()\ndef stuck():\n    a.acquire()\nstuck()\n")

    ((rule, words),) = told(done.experiment)

    assert rule == "deadlock"
    assert "thread 1 waits at program.py:8 stuck for a lock that it took at program.py:6 <module> (" in words


@knows_holders
def test_a_lock_that_a_working_thread_keeps_is_told_with_its_line(traced):
    done = traced(STUCK + """
def keep():
    with a:
        time.sleep(9)
threading.Thread(target=keep).start()
time.sleep(0.05)
a.acquire()
""")

    ((rule, words),) = told(done.experiment)

    assert rule == "lock not released"
    assert "Thread 1 waits at program.py:12 <module> for a lock that thread 2 took at program.py:8 keep (" in words


@pytest.mark.parametrize(
    "wait",
    [
        "queue.Queue().get()",
        "queue.SimpleQueue().get()",
        "threading.Event().wait()",
        "threading.Semaphore(0).acquire()",
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).run()",
        "changed = threading.Condition(); changed.acquire(); changed.wait()",
        "ThreadPoolExecutor(2).submit(time.sleep, 9).result()",
        "worker = threading.Thread(target=time.sleep, args=(9,), daemon=True); worker.start(); worker.join()",
        "asyncio.run(asyncio.to_thread(time.sleep, 9))",
        "asyncio.run(asyncio.Event().wait())",
        "threading.Barrier(2).wait()",
    ],
)
@pytest.mark.parametrize("where", ["main", "daemons"])
def test_other_waits_at_the_end_are_for_no_lock(traced, wait, where):
    run = "work()" if where == "main" else "[threading.Thread(target=work).start() for _ in range(3)]; time.sleep(9)"
    done = traced(f"""{STUCK}
import asyncio, queue
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(3)
list(pool.map(len, ["a"] * 3))  # its workers wait for more
def work():
    {wait}
{run}
""")

    assert told(done.experiment) == []


def waiting(directory, *held, kind="sync"):
    """Threads that wait for locks with these holders, until the end."""
    build = Build(directory, call_ns=0, inside_ns=0)
    lock = build.intrinsic("threading.Lock.acquire", kind)
    stack = build.stack(build.site("/home/u/shop/bank.py", 5, "transfer"))
    for number, detail in enumerate(held, 1):
        call = {"start_ns": START_NS + 100 * MS, "call": 1, "intrinsic": lock, "stack": stack}
        call["detail"] = build.string(detail) if detail else 0
        build.thread(open_calls=[call], main=int(number == 1), tid=800 + number, made=1)
    build.ended(SECOND, 0)
    return Experiment(str(build.write()))


def by(thread):
    return f"held by thread {thread} at /home/u/shop/bank.py:4 transfer"


def test_a_circle_of_several_threads_is_one_finding_and_who_waits_for_it_another(tmp_path):
    survey = Survey(Analysis(waiting(tmp_path / "t.1.er", by(2), by(3), by(1), by(1), by(4))))

    found = {each.rule: each for each in found_in(survey)}

    assert (found["deadlock"].units, found["deadlock"].bound_ns) == (3, 2700 * MS)
    assert advice_for(found["deadlock"]).startswith("Take the locks in the same order")


def test_who_holds_the_lock_may_be_unknown(tmp_path):
    survey = Survey(Analysis(waiting(tmp_path / "t.1.er", "")))

    (found,) = [each for each in found_in(survey) if each.rule in IN_PROGRESS]

    assert Sentences([found], "/home/u/shop", SECOND).of(found) == (
        "Thread 1 waits at bank.py:5 transfer for a lock whose holder is unknown (900 ms of 1.00 s)."
    )


def test_a_short_wait_at_the_end_is_none(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    lock = build.intrinsic("threading.Lock.acquire", "sync")
    call = {"start_ns": START_NS + 960 * MS, "call": 1, "intrinsic": lock, "detail": build.string(by(2))}
    call["stack"] = build.stack(build.site("/home/u/shop/bank.py", 5, "transfer"))
    build.thread(open_calls=[call], main=1, tid=800, made=1)
    build.ended(SECOND, 0)

    found = found_in(Survey(Analysis(Experiment(str(build.write())))))

    assert not {each.rule for each in found}.intersection(IN_PROGRESS)


@knows_holders
def test_a_circle_that_a_timeout_may_end_is_told_so(traced):
    opposite = OPPOSITE.replace("with a:  # two waits", "if a.acquire(timeout=60):  # two waits")
    done = traced(STUCK + opposite)

    ((rule, words),) = told(done.experiment)

    assert opposite != OPPOSITE
    assert rule == "deadlock"
    assert words.startswith("Deadlock, unless a wait has a timeout: thread ")


def test_threads_that_starve_for_a_lock_that_is_released_all_the_time_wait_for_no_one(traced):
    done = traced(STUCK + """
def work():
    while True:
        with a:
            time.sleep(0.02)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(1)
""")

    assert told(done.experiment) == []
