"""Child processes by program and by the line that started them."""

import signal

import pytest

from interpose.analysis.recording.children import children_of
from interpose.analysis.recording.lineage import unfollowed, why_not
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build

SECOND = 1_000_000_000
EXIT_1 = 1 << 8  # as waitpid(2) gives it


@pytest.mark.parametrize(
    ("status", "failed"), [(0, 0), (EXIT_1, 1), (signal.SIGKILL, 1), (signal.SIGSEGV, 1), (signal.SIGTERM, 0)]
)
def test_a_child_that_was_asked_to_end_has_not_failed(tmp_path, status, failed):
    build = Build(tmp_path / "t.1.er")
    build.child(end_ns=START_NS + SECOND, pid=77, how=3, status=int(status), command=build.string("/usr/bin/gzip"))

    (found,) = children_of(Experiment(str(build.write())))

    assert (found.program, found.count, found.failed) == ("gzip", 1, failed)


def test_the_time_of_children_is_of_those_that_are_counted(tmp_path, interpose_here):
    build = Build(tmp_path / "t.1.er")
    sleep = build.string("/bin/sleep")
    for pid, end_ns in ((77, START_NS + SECOND), (78, 0), (79, START_NS + SECOND), (80, 0)):
        build.child(end_ns=end_ns, pid=pid, how=3, command=sleep)
    build.ended(2 * SECOND, 0)
    path = str(build.write())

    (found,) = children_of(Experiment(path))
    report = interpose_here("report", path).stdout

    assert (found.count, found.unawaited, found.wall_ns) == (2, 2, 2 * SECOND)
    assert " children     2.00 s  2 x sleep, and 2 more not waited for  CPU" in report


def test_a_child_that_said_why_it_was_not_recorded_is_shown_with_that(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for pid in (77, 78):
        command = build.string("/bin/python")
        build.child(start_ns=START_NS + 5, end_ns=START_NS + SECOND, pid=pid, how=3, command=command)
    said = [(4, 77, "an earlier process with this number"), (6, 77, "Python 3.13 has no interpose")]
    for after_ns, pid, why in said:
        event = f'<event kind="unrecorded" time_ns="{START_NS + after_ns}" pid="{pid}" why="{why}"/>'
        build.log_events.append(event)

    found = unfollowed(Experiment(str(build.write())))

    whys = {child.record.pid: why_not(child, process) for process, child in found}
    assert whys == {77: "Python 3.13 has no interpose", 78: "left no experiment"}


# Each process starts the next from the same line; the innermost one computes.
NESTED = """
import os, resource, time
def level(number):
    if not number:
        until_ns = time.process_time_ns() + 200_000_000
        while time.process_time_ns() < until_ns:
            pass
        return
    child = os.fork()
    if not child:
        level(number - 1)
        os._exit(0)
    os.waitpid(child, 0)
level(4)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


def test_what_a_grandchild_used_counts_once(traced):
    done = traced(NESTED)
    used_s = float(done.stdout)

    (found,) = children_of(done.experiment)

    assert (found.program, found.count) == ("forked", 4)
    assert 0.95 * used_s < found.cpu_ns / SECOND < 1.05 * used_s
