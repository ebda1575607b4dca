"""Threads that serve requests without time to spare are told, because requests wait for them before they are served."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.busy_threads import Server, servers
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.screen.remarks import remarks
from interpose.reports.screen.screen import Screen
from tests.build import START_NS, Build, event

MS = 1_000_000
GET, RECEIVE = "queue.SimpleQueue.get", "socket.socket.recv"


def served(directory, *threads, times=21):
    """An experiment whose threads serve requests of 49 ms, and wait for the next one: by which call, and how long."""
    build = Build(directory, call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    waits = {name: build.intrinsic(name, "idle") for name in (GET, RECEIVE)}
    for number, (name, idle_ns) in enumerate(threads, 1):
        events, now_ns = [], 0
        for _ in range(times):
            events.append(event(now_ns, 49 * MS, intrinsic=request, thread=number, call=len(events) + 1))
            events.append(event(now_ns + 49 * MS, idle_ns, intrinsic=waits[name], thread=number, call=len(events) + 1))
            now_ns += 49 * MS + idle_ns
        build.events(events)
        build.thread(end_ns=START_NS + now_ns, end_cpu_ns=MS, tid=number, recorded=len(events), made=len(events))
    build.ended(now_ns, MS)
    return Analysis(Experiment(str(build.write())))


def told(analysis):
    screen = Screen(profile(analysis, "site"), 0.0, 200, Paint(False), Survey(analysis))
    return [line for line in remarks(screen) if line.startswith(" busy")]


def test_the_time_of_a_thread_that_serves_lasts_from_its_first_request_to_its_last(tmp_path):
    assert servers(served(tmp_path / "t.1.er", (GET, MS))) == [Server(21 * 49 * MS + 20 * MS, 20 * MS)]


def test_threads_that_serve_without_a_break_are_told(tmp_path):
    analysis = served(tmp_path / "t.1.er", (GET, MS), (GET, 3 * MS))

    assert told(analysis) == [
        " busy  96 % of the time, 2 threads that serve requests or tasks: new work may wait for a free thread, "
        "and response times do not include that wait"
    ]


@pytest.mark.parametrize(
    ("threads", "times"),
    [
        pytest.param([(GET, MS), (GET, 49 * MS)], 21, id="one has time"),
        pytest.param([(RECEIVE, MS)], 21, id="of one connection each"),
        pytest.param([(GET, MS)], 19, id="too few requests"),
    ],
)
def test_nothing_is_told_if_requests_need_not_wait_for_a_thread(tmp_path, threads, times):
    assert told(served(tmp_path / "t.1.er", *threads, times=times)) == []
