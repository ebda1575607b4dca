"""Slices and spans end where the process that was killed ended, and no call ends later than what is around it."""

import json

import pytest

from tests.exports.test_exports import exported
from tests.exports.test_other_readers import packets
from tests.exports.test_spans import spans

pytestmark = pytest.mark.any_python

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


def is_later(span, spans):
    """Whether it ends after the span around it, if that is exported."""
    around = spans.get(span["parentSpanId"], span)
    return int(span["endTimeUnixNano"]) > int(around["endTimeUnixNano"])
