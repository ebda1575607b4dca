"""What the first screen says of calls that were not recorded, where time may have been in these."""

import json
import re

import pytest
from shops import MS

from tests.build import SECOND, START_NS, Build, event


@pytest.fixture
def waits(tmp_path):
    """Makes an experiment with one call of 50 ms and 900 ms of waiting outside of it."""

    def make(stopped=None, **settings):
        build = Build(tmp_path / "work" / "t.1.er", settings=settings, call_ns=0, inside_ns=0)
        build.events([event(0, 50 * MS, 0, intrinsic=build.intrinsic("time.sleep", "sleep"))])
        build.thread(main=1, tid=812, recorded=1, made=1, end_ns=START_NS + SECOND, end_cpu_ns=50 * MS)
        if stopped:
            build.sample(kind=4, **stopped)
        build.ended(SECOND, 150 * MS)
        return build

    return make


def shown(interpose_here):
    text = interpose_here("report").stdout
    return " ".join(text.split()), json.loads(interpose_here("report", "--format", "json").stdout)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("INTERPOSE_KINDS", "db", ["kinds that were not recorded: all but db"]),
        ("INTERPOSE_KINDS", "all,file=count,db=off",
         ["kinds that were not recorded: db", "kinds that were only counted: file"]),
        ("INTERPOSE_FILTER", "kind=db", ["calls that a filter excluded"]),
        ("INTERPOSE_LEVELS", "os.stat=off", ["calls at a lower level (INTERPOSE_LEVELS)"]),
    ],
)  # fmt: skip
def test_an_unexplained_wait_names_the_calls_that_were_left_out(waits, interpose_here, name, value, said):
    waits(**{name: value}).write()
    text, whole = shown(interpose_here)

    assert f"unexplained wait 900 ms in code: maybe in {'; '.join(said)}" in text
    elsewhere = "their time is in code, or in the surrounding call"
    assert all(f" {each} (INTERPOSE_KINDS); {elsewhere}" in text for each in said if "kinds" in each)
    assert (whole["not_recorded"], whole["unexplained_wait_ns"]) == (said, 900 * MS)
    assert not whole["findings"] or "unexplained wait" not in [each["finding"] for each in whole["findings"]]


def test_where_all_was_recorded_nothing_is_said_of_calls_that_were_left_out(waits, interpose_here):
    waits(INTERPOSE_KINDS="all", INTERPOSE_LEVELS="time", INTERPOSE_FILTER="off").write()
    text, whole = shown(interpose_here)

    assert "in code: no known cause" in text
    assert whole["not_recorded"] == []


def test_a_program_that_lost_its_right_to_write_is_named_as_the_cause(waits, interpose_here):
    waits(stopped={"time_ns": START_NS + 120 * MS, "status": 13}).write()
    text, whole = shown(interpose_here)
    why = "Permission denied; perhaps the program changed its user"
    told = f"the program could not open its experiment any more ({why})"

    assert f"incomplete: recording stopped 0.12 s after the start: {told}" in text
    assert "unexplained wait 900 ms in code: maybe in calls after recording stopped" in text
    assert "CPU of threads not recorded 100 ms not in the table (recording stopped)" in text
    assert "outside all recorded calls" not in text
    assert whole["not_recorded"] == ["calls after recording stopped"]
    assert any("Permission denied" in each for each in whole["warnings"])


def test_the_time_of_calls_that_a_filter_excludes_may_be_in_the_surrounding_call(waits, interpose_here):
    build = waits()
    build.log_events.append(f'<event kind="filter" time_ns="{START_NS + SECOND // 2}" text="kind=db"/>')
    build.write()

    line = "filter kind=db after 500 ms; the time of excluded calls is in code, or in the surrounding call"
    assert line in shown(interpose_here)[0]


@pytest.mark.parametrize(
    ("threads", "whose"),
    [
        (1500, "native threads, or of the start and end of 1,500 threads"),
        (500, "native threads, and of the start and end of 500 threads"),
        (5, "native threads"),
        (0, "native threads"),
    ],
)
def test_what_starting_threads_used_does_not_hide_native_threads(waits, interpose_here, threads, whose):
    build = waits()
    for number in range(threads):
        build.thread(tid=900 + number, end_ns=START_NS + MS)
    build.write()
    text, _ = shown(interpose_here)

    assert f"CPU of {whose} 100 ms not in the table (docs/limits.md)" in text


def test_threads_of_python_alone_leave_no_cpu_that_is_certainly_of_native_threads(traced, interpose):
    done = traced("""
    import threading
    for _ in range(300):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    """)
    told = re.findall("CPU of native threads.*?  ", interpose("report", done.path).stdout)

    assert set(told) <= {"CPU of native threads, or of the start and end of 300 threads  "}


@pytest.fixture
def computes(tmp_path):
    """Makes an experiment with calls of 10 ms, 800 ms of CPU time outside of them, and 100 ms of waiting."""

    def make(recorded=1, dropped=0):
        build = Build(tmp_path / "work" / "t.1.er", call_ns=0, inside_ns=0)
        build.events([event(0, 10 * MS, 10 * MS, intrinsic=build.intrinsic("os.stat", "file"))])
        ended = {"end_ns": START_NS + SECOND, "end_cpu_ns": 900 * MS}
        build.thread(main=1, tid=812, recorded=recorded, made=recorded + dropped, dropped=dropped, **ended)
        build.ended(SECOND, 900 * MS)
        build.write()

    return make


LOST = ({"dropped": 30}, {"recorded": 31})  # there was no room for them; they are not in the file any more


@pytest.mark.parametrize("given", LOST)
def test_where_calls_were_lost_a_program_is_not_said_to_compute_without_them(computes, interpose_here, given):
    computes(**given)
    text, whole = shown(interpose_here)

    assert "computes, or makes calls that were not recorded: CPU time between recorded calls" in text
    assert whole["not_recorded"] == ["lost events"]


@pytest.mark.parametrize("given", LOST)
def test_where_calls_were_lost_waits_elsewhere_are_no_finding(computes, interpose_here, given):
    computes(**given)
    _, whole = shown(interpose_here)

    assert whole["unexplained_wait_ns"] == 100 * MS
    assert "unexplained wait" not in [each["finding"] for each in whole["findings"]]


def test_where_none_were_lost_it_computes(computes, interpose_here):
    computes()
    text, whole = shown(interpose_here)

    assert "computes: CPU time between recorded calls" in text
    assert whole["not_recorded"] == []
    assert "unexplained wait" in [each["finding"] for each in whole["findings"]]
