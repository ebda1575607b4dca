"""Slices and spans end where the process that was killed ended, and no call ends later than what is around it."""

import json

import pytest

from interpose.exports.live_spans import LiveSpans
from tests.build import START_NS, Build, event
from tests.exports.test_exports import exported
from tests.exports.test_other_readers import packets
from tests.exports.test_spans import spans, spans_in
from tests.exports.test_traces import attribute

KILLED = """
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.2)
    killed_ns = time.monotonic_ns()
    child.kill()
    child.wait()
    print(killed_ns, time.monotonic_ns())
"""
COMPUTING = "import time\ntime.sleep(0.05)\nprint(flush=True)\nwhile True: pass"


def span_id(span):
    return span["spanId"]


def end_in_chrome(done, child, tmp_path):
    made = json.loads(exported(done.path, "chrome", tmp_path).read_text())["traceEvents"]
    [whole] = [each for each in made if each["ph"] == "X" and (each["pid"], each["tid"]) == (child.log.pid, 0)]
    return done.experiment.founder.log.start_ns + round((whole["ts"] + whole["dur"]) * 1000)


def end_in_perfetto(done, child, tmp_path):
    pb2, found = packets(exported(done.path, "perfetto", tmp_path))
    tracks = [each.track_descriptor for each in found if each.HasField("track_descriptor")]
    [of_child] = [each.uuid for each in tracks if each.process.pid == child.log.pid]
    edges = [each for each in found if each.track_event.track_uuid == of_child]
    [end] = [each for each in edges if each.track_event.type == pb2.TrackEvent.TYPE_SLICE_END]
    return end.timestamp


def end_in_otlp(done, child, tmp_path):
    whole = spans(done.path, tmp_path)
    [end] = [each["endTimeUnixNano"] for each in whole if each["startTimeUnixNano"] == str(child.log.time_ns)]
    return int(end) - child.log.time_ns + child.log.start_ns


@pytest.mark.parametrize(
    "end_in", [end_in_chrome, pytest.param(end_in_perfetto, marks=pytest.mark.packages), end_in_otlp]
)
def test_a_child_that_was_killed_lasts_until_its_parent_saw_it(end_in, traced, tmp_path):
    done = traced(KILLED, COMPUTING)
    killed_ns, waited_ns = map(int, done.stdout.split())
    [child] = done.experiment.founder.descendants

    assert killed_ns <= end_in(done, child, tmp_path) <= waited_ns


WAITED_FOR_LATER = """
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    child.stdout.read()
    time.sleep(0.5)
    waiting_ns = time.monotonic_ns()
    child.wait()
    print(waiting_ns, time.monotonic_ns())
"""


@pytest.mark.parametrize(
    "end_in", [end_in_chrome, pytest.param(end_in_perfetto, marks=pytest.mark.packages), end_in_otlp]
)
def test_a_child_that_ended_before_its_parent_waited_lasts_until_the_wait_as_in_the_table(
    end_in, traced, tmp_path, interpose_here
):
    done = traced(WAITED_FOR_LATER)
    waiting_ns, waited_ns = map(int, done.stdout.split())
    [child] = done.experiment.founder.descendants
    row = json.loads(interpose_here("processes", "--format", "json", done.path).stdout)[1]

    end_ns = end_in(done, child, tmp_path)
    assert waiting_ns <= end_ns <= waited_ns
    assert abs(end_ns - row["start_ns"] - row["duration_ns"]) <= 1000  # Chrome has microseconds


POOL = """
    import multiprocessing, time
    def work(number):
        time.sleep(0.01 * number)
        return number
    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(work, range(4), chunksize=1))
"""


def test_no_span_of_a_worker_ends_after_the_one_around_it(traced, tmp_path):
    done = traced(POOL)
    found = {each["spanId"]: each for each in spans(done.path, tmp_path)}

    assert done.stdout == "[0, 1, 2, 3]\n"
    assert [each["name"] for each in found.values() if "attributes" in each and is_later(each, found)] == []
    assert {each["parentSpanId"] for each in found.values() if "parentSpanId" in each} <= found.keys()


def is_later(span, spans):
    """Whether it ends after the span around it."""
    return int(span["endTimeUnixNano"]) > int(spans[span["parentSpanId"]]["endTimeUnixNano"])


WORKING = """
import os, time
from interpose import transaction
with transaction("job"):
    os.stat("/")
    print(flush=True)
    time.sleep(99)
"""


def test_calls_in_progress_are_spans_that_say_how_the_process_ended(traced, tmp_path):
    done = traced(KILLED, WORKING)
    killed_ns, waited_ns = map(int, done.stdout.split())
    [child] = done.experiment.founder.descendants
    to_calendar_ns = child.log.time_ns - child.log.start_ns
    found = spans(done.path, tmp_path)
    live = spans_in(json.loads(request) for request, _ in LiveSpans().requests(done.experiment))

    [job] = [each for each in found if attribute(each, "interpose.detail") == "job"]
    inside = {each["name"]: each for each in found if each.get("parentSpanId") == job["spanId"]}
    states = {name: attribute(each, "interpose.state") for name, each in inside.items()}
    assert attribute(job, "interpose.state") == states["time.sleep"] == "killed"
    assert states["os.stat"] is None
    assert {each["traceId"] for each in inside.values()} == {job["traceId"]}
    ends = {int(each["endTimeUnixNano"]) - to_calendar_ns for each in (job, inside["time.sleep"])}
    assert killed_ns <= min(ends) and max(ends) <= waited_ns
    assert sorted(live, key=span_id) == sorted(found, key=span_id)


def test_a_call_that_was_written_before_the_kill_is_not_in_progress_as_well(tmp_path):
    build = Build(tmp_path / "t.1.er")
    read = build.intrinsic("os.read", "file")
    build.events([event(5, 5, intrinsic=read, call=2, parent=1)])
    opened = [{"start_ns": START_NS + start, "call": call, "intrinsic": read} for start, call in ((0, 1), (5, 2))]
    build.thread(open_calls=opened, tid=1, recorded=1, made=2, seen_ns=START_NS + 20)
    found = spans(str(build.write()), tmp_path)

    calls = [each for each in found if "attributes" in each]
    assert [attribute(each, "interpose.state") for each in calls] == [None, "unseen"]
    assert calls[0]["parentSpanId"] == calls[1]["spanId"]
