"""Spans that are sent while the program runs: early, each once, and the same as an export afterwards has."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from tracing import environment, until, write_program

from interpose.cli import following_spans
from interpose.cli.main import main
from interpose.experiments.format.blocks import EventFile
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.exports import live_spans, sending
from interpose.exports.live_spans import LiveSpans
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_spans import OK, Collector, served, spans, spans_in
from tests.schedules import MS

pytestmark = pytest.mark.every_python

STEPWISE = """
import asyncio, os, subprocess, sys, threading, time
import interpose
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
def work(name):
    with interpose.transaction(name):
        os.stat("/")
        with interpose.transaction("inside"):
            os.stat("/tmp")
def many():
    for number in range(1_000):
        with interpose.transaction("many"):
            os.stat("/")
async def served(number):
    with interpose.transaction(f"task {number}"):
        await asyncio.sleep(0.01)
        os.stat("/")
async def main():
    await asyncio.gather(*map(served, range(20)))
work("first")
os.stat("/etc")
wait_for("go 1")
threads = [threading.Thread(target=many) for _ in range(3)]
[each.start() for each in threads]
[each.join() for each in threads]
asyncio.run(main())
subprocess.run([sys.executable, "-c", "import os; os.stat('/usr')"], check=True)
work("second")
wait_for("go 2")
work("third")
"""


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(sending, "WAITS_S", (0.0,) * len(sending.WAITS_S))
    monkeypatch.setattr(following_spans, "EVERY_S", 0.05)


class Stepwise:
    """The program that runs, and what is sent of it by a thread of ours."""

    def __init__(self, directory, collector, **variables):
        self.directory = directory
        told = environment(INTERPOSE="1", INTERPOSE_FOLLOW="on", **variables)
        program = write_program(directory, STEPWISE)
        self.process = subprocess.Popen([sys.executable, str(program)], cwd=directory, env=told)
        until(lambda: names.newest(str(directory)) and until_it_is_described(directory))
        self.path = names.newest(str(directory))
        self.codes = []
        words = ["export", self.path, "--to", "otlp", "--endpoint", collector.url, "--follow"]
        self._following = threading.Thread(target=lambda: self.codes.append(main(words)))
        self._following.start()

    def go(self, number):
        (self.directory / f"go {number}").touch()

    def end(self):
        self.go(1)
        self.go(2)
        try:
            assert self.process.wait(60) == 0
        finally:
            self.process.kill()
            self._following.join(60)
        assert not self._following.is_alive()


def until_it_is_described(directory):
    return (directory / names.newest(str(directory)) / "log.xml").stat().st_size > 0


COMPARED = ("name", "traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano")


def transactions(found):
    """The names of the transactions that were sent, and how often each."""
    told = [value["stringValue"] for each in found for value in [_attribute(each, "interpose.detail")] if value]
    return {name: told.count(name) for name in told}


def _attribute(span, key):
    return next((each["value"] for each in span.get("attributes", ()) if each["key"] == key), None)


def as_said(span):
    return tuple(span.get(key, "") for key in COMPARED)


@pytest.mark.long
def test_spans_are_sent_while_the_program_runs_and_are_those_of_an_export_afterwards(tmp_path, capsys):
    with Collector(OK) as collector:
        running = Stepwise(tmp_path, collector)
        try:
            until(lambda: transactions(spans_in(list(collector.taken))).get("first"))
            assert running.process.poll() is None
            running.go(1)
            until(lambda: transactions(spans_in(list(collector.taken))).get("second"))
            assert running.process.poll() is None
            assert "third" not in transactions(spans_in(list(collector.taken)))
        finally:
            running.end()
        taken = spans_in(collector.taken)

    assert running.codes == [0]
    assert f"{len(taken):,} spans sent" in capsys.readouterr().err
    assert transactions(taken)["many"] == 3_000
    live, afterwards = Counter(map(as_said, taken)), Counter(map(as_said, spans(running.path, tmp_path)))
    assert [*(live - afterwards), *(afterwards - live)] == []


def test_of_an_experiment_that_has_ended_all_is_sent_at_once(tmp_path, capsys):
    path = served(tmp_path)
    with Collector(OK) as collector:
        assert main(["export", path, "--to", "otlp", "--endpoint", collector.url, "--follow"]) == 0

    assert sorted(map(as_said, spans_in(collector.taken))) == sorted(map(as_said, spans(path, tmp_path)))


@pytest.mark.long
def test_a_collector_that_is_away_for_a_while_gets_what_comes_later(tmp_path, capsys):
    refusals = (len(sending.WAITS_S) + 1) * [(503, b"")]
    with Collector(*refusals, OK) as collector:
        running = Stepwise(tmp_path, collector)
        try:
            until(lambda: collector.asked >= len(refusals))
        finally:
            running.end()

    told = capsys.readouterr().err
    assert running.codes == [1]
    assert "lost (503" in told and told.count("\n") == 1
    assert transactions(spans_in(collector.taken))["third"] == 1


@pytest.mark.any_python
def test_no_more_calls_are_held_than_there_is_room_for_and_the_rest_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(live_spans, "HELD_AT_MOST", 3)
    build = Build(tmp_path / "t.1.er")
    handle, query = build.intrinsic("app.handle", "logic", transaction="is"), build.intrinsic("os.stat", "file")
    inside = [event((10 + number) * MS, 1, intrinsic=query, call=2 + number, parent=1) for number in range(5)]
    alone = event(40 * MS, 1, intrinsic=query, call=9)
    build.events([*inside, event(9 * MS, 20 * MS, intrinsic=handle, call=1), alone])
    build.thread(end_ns=START_NS + SECOND, tid=1, main=1, recorded=7, made=7)
    build.ended(SECOND, 0)
    path, live = str(build.write()), LiveSpans()

    sent = [json.loads(request) for request, _ in live.requests(Experiment(path))]

    assert live.lost == 2
    assert len(spans_in(sent)) == 3 + 1 + 1 + 1  # held, the one around them, alone, and the process
    assert {each["traceId"] for each in spans_in(sent) if each["name"] == "os.stat"} != {spans_in(sent)[-1]["traceId"]}
    assert not list(live.requests(Experiment(path)))


@pytest.mark.any_python
def test_a_block_with_an_impossible_event_is_not_read_again_until_it_has_more(tmp_path, monkeypatch):
    running = {"pid": os.getpid(), "host": os.uname().nodename, "time_ns": time.time_ns()}
    build = Build(tmp_path / "t.1.er", **running)
    build.intrinsic("os.stat", "file")
    events = [event(number * MS, 2**63 if number == 1 else 1, call=1 + number) for number in range(5)]
    build.thread(tid=1, main=1, recorded=5, made=5)
    live, sent, read = LiveSpans(), [], []
    block = EventFile.block
    monkeypatch.setattr(EventFile, "block", lambda *given: read.append(1) or block(*given))

    for count in (3, 3, 5, 5):
        build.blocks.clear()
        build.block(events[:count], state=1)
        sent.append((len(names_of(live.requests(Experiment(str(build.write()))))), len(read)))

    assert sent == [(2, 1), (0, 1), (2, 2), (0, 2)]


@pytest.mark.any_python
def test_calls_of_a_library_that_is_not_yet_named_are_sent_when_it_is(tmp_path):
    running = {"pid": os.getpid(), "host": os.uname().nodename, "time_ns": time.time_ns()}
    build = Build(tmp_path / "t.1.er", **running)
    known = build.intrinsic("os.stat", "file")
    build.events([event(number * MS, 1, intrinsic=known + number % 2, call=1 + number) for number in range(4)])
    build.thread(tid=1, main=1, recorded=4, made=4)
    live = LiveSpans()

    first = names_of(live.requests(Experiment(str(build.write()))))
    build.intrinsic("os.remove", "file")
    then = names_of(live.requests(Experiment(str(build.write()))))

    assert (first, then) == (["os.stat"], ["os.remove", "os.stat", "os.remove"])


def names_of(requests):
    return [each["name"] for each in spans_in(json.loads(request) for request, _ in requests)]


@pytest.mark.long
def test_what_a_ring_has_replaced_is_told(traced):
    done = traced(
        "import os\nfor number in range(40_000):\n    os.stat('/')\n", INTERPOSE_RING="1MiB", INTERPOSE_INTERVAL="off"
    )
    live = LiveSpans()

    sent = sum(count for _, count in live.requests(done.experiment))

    assert live.lost == done.experiment.founder.overwritten > 0
    assert sent == 1 + sum(each.record.recorded for each in done.experiment.founder.threads) - live.lost


@pytest.mark.any_python
def test_following_needs_an_endpoint(tmp_path, capsys):
    assert main(["export", served(tmp_path), "--to", "otlp", "--follow"]) == 2
    assert capsys.readouterr().err == "interpose: --follow needs --endpoint\n"
