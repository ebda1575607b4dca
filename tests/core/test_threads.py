"""The recorder without Python: threads that call it at once, begin and end, in processes that fork meanwhile."""

import collections
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from machine import why_not_sanitized
from tracing import environment, events_of

from interpose import kinds
from interpose.experiments.model.experiment import Experiment

TOP = Path(__file__).parents[2]
FLAGS = ["-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{TOP / 'cext'}"]

NO_LEAKS = "detect_leaks=0"  # a forked child has its parent's memory, and not the threads that know of it

# How it is built, what the sanitizer is told, and whether children may start threads.
SORTS = {
    "plain": ([], {}, True),
    "address": (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], {"ASAN_OPTIONS": NO_LEAKS}, False),
    "thread": (["-fsanitize=thread"], {}, False),
}

SANITIZED = ("address", "thread")

# A child has none of the threads that ThreadSanitizer believes to be racing there.
SUPPRESSED = "race:levels_begin\nthread:*\n"


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """The beginning of a log.xml, as a recorded program has it."""
    directory = tmp_path_factory.mktemp("head")
    subprocess.run([sys.executable, "-c", "pass"], cwd=directory, env=environment(INTERPOSE="1"), check=True)
    text = (directory / "test.1.er" / "log.xml").read_text()
    (directory / "head").write_text(text[: text.index("  <process ")])
    return directory / "head"


def build(directory, flags):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if compiler is None:
        pytest.skip("there is no C compiler")
    if flags and (why := why_not_sanitized(compiler, *flags)):
        pytest.skip(why)
    program = directory / "threads"
    (directory / "kinds.h").write_text(kinds.c_header())
    sources = [*(TOP / "cext" / "core").glob("*.c"), Path(__file__).with_name("threads.c")]
    subprocess.run([compiler, *flags, *FLAGS, f"-I{directory}", *map(str, sources), "-o", str(program)], check=True)
    return program


def run(program, directory, head, variables, threads_in_children):
    """What the program says that it did, and its experiment."""
    experiment = directory / "test.1.er"
    experiment.mkdir(mode=0o700)
    (directory / "suppressed").write_text(SUPPRESSED)
    options = f"die_after_fork=0 suppressions={directory / 'suppressed'}"
    words = [program, experiment, head, *([] if threads_in_children else ["alone"])]
    done = subprocess.run(
        words, env={**environment(), "TSAN_OPTIONS": options, **variables}, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout), experiment


@pytest.mark.long
@pytest.mark.parametrize("sort", ["plain", *(pytest.param(each, marks=pytest.mark.slow) for each in SANITIZED)])
def test_every_call_of_every_thread_is_recorded_once(sort, tmp_path, head):
    flags, variables, threads_in_children = SORTS[sort]
    program = build(tmp_path, flags)

    check_once(program, tmp_path, head, variables, threads_in_children)


@pytest.mark.slow
@pytest.mark.reach
@pytest.mark.parametrize("sort", SANITIZED)
def test_the_sanitizers_find_nothing_however_often_it_runs(sort, tmp_path, head, tally):
    flags, variables, threads_in_children = SORTS[sort]
    program = build(tmp_path, flags)

    for _ in range(tally.times(20)):
        try:
            check_once(program, tmp_path, head, variables, threads_in_children)
            tally.check(True, "")
        except AssertionError as error:
            tally.check(False, str(error))
        shutil.rmtree(tmp_path / "test.1.er")
    tally.end()


def check_once(program, directory, head, variables, threads_in_children):
    made, path = run(program, directory, head, variables, threads_in_children)
    processes = list(Experiment(str(path)).processes)
    events = [(process, event) for process in processes for event in events_of(process)]
    outer = [(process, event.thread, process.string(event.detail)) for process, event in events if event.detail]
    details = collections.Counter(text for _, _, text in outer)
    callers = collections.defaultdict(set)
    for process, thread, text in outer:
        callers[process.lineage, thread].add(text.split("/")[1])

    assert len(processes) == 1 + made["children"]
    assert len(events) == made["calls"]
    assert sum(sum(process.counts.values()) for process in processes) == made["counted"]
    assert sum(process.lost_calls for process in processes) == 0
    # Each outer call has its trace context, once.
    assert sum(len(process.trace_contexts) for process in processes) == len(outer)
    for process, event in events:
        context = process.trace_contexts.get((event.thread, event.call))
        assert (context is not None) == bool(event.detail)
        if context:
            who = int(process.string(event.detail).split("/")[1].removeprefix("thread "))
            assert (context.trace[:16], context.flags) == (f"{who + 1:016x}", who % 2)
            assert int(context.parent, 16) == event.call
    # Each thread calls with texts of its own, one for each outer call: no text is another's.
    assert len(outer) == made["calls"] / 2
    assert {len(who) for who in callers.values()} == {1}
    assert {details[f"/thread {number}/text 0"] for number in range(8)} == {21}
