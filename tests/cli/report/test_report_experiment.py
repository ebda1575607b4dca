"""Which experiment `interpose report` takes, and what it says where there is none."""

import json
import os
from pathlib import Path

import pytest
from shop_orders import ended, orders

from interpose.config import state
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS


def test_results_go_into_a_file(run_main, work):
    ended(orders()).write()

    code, out, _ = run_main("report", "-o", "report.txt")

    assert (code, out) == (0, "")
    assert (work / "report.txt").read_text().startswith("test.1.er  python orders.py")


def test_a_file_that_cannot_be_written_is_named(run_main):
    ended(orders()).write()

    assert run_main("report", "-o", "no/report.txt") == (
        1,
        "",
        "interpose: no/report.txt: No such file or directory\n",
    )


def test_the_newest_experiment_is_taken(run_main):
    ended(orders("test.1.er")).write()
    ended(orders("test.2.er")).write()
    os.utime("test.1.er/log.xml", (1, 1))

    assert run_main("report")[1].startswith("test.2.er ")
    assert run_main("report", "test.1.er")[1].startswith("test.1.er ")


def test_where_the_newest_cannot_be_read_one_before_it_that_can_is_named(run_main, work, monkeypatch):
    for number, log in enumerate((None, b"<experiment", b"<experiment>\0"), 1):
        path = Path(ended(orders(f"test.{number}.er")).write(), "log.xml")
        if log is not None:
            path.write_bytes(log)
        os.utime(path, (number, number))

    code, out, err = run_main("report")
    monkeypatch.chdir("/")
    monkeypatch.setenv("INTERPOSE_DIR", str(work))
    _, _, elsewhere = run_main("report")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("interpose: ") and "test.3.er" in err
    assert err.endswith("; the one before can be read: test.1.er\n")
    assert elsewhere.endswith(f"; the one before can be read: {work}/test.1.er\n")
    assert run_main("report", f"{work}/test.1.er")[0] == 0


def test_where_no_experiment_can_be_read_none_is_named(run_main):
    for number in (1, 2):
        Path(ended(orders(f"test.{number}.er")).write(), "log.xml").write_bytes(b"<experiment")

    code, out, err = run_main("report")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "before" not in err


@pytest.mark.parametrize("words", [["save"], ["save", "-o", "zz.er"], ["cp", "test.2.er", "zz.er"]])
def test_a_copy_is_not_taken_for_the_newest(run_main, words):
    ended(orders("test.1.er")).write()
    ended(orders("test.2.er")).write()
    os.utime("test.1.er/log.xml", (1, 1))

    run_main(*words)
    _, out, _ = run_main("report")

    (copy,) = {path.name for path in Path().glob("*.er")} - {"test.1.er", "test.2.er"}
    assert out.startswith("test.2.er ")
    run_main("rm", "test.2.er")
    assert run_main("report")[1].startswith(f"{copy} ")


def test_without_an_experiment_the_newest_elsewhere_and_the_last_reason_are_named(run_main, work):
    elsewhere = Path(state.experiments_directory()) / "test.7.er"
    orders(elsewhere).write()
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", str(work))

    code, out, err = run_main("report")

    assert (code, out) == (1, "")
    assert err.startswith(
        f"interpose: no experiment in {work}; the newest elsewhere is {elsewhere}; app.py, process 812,"
    )
    assert err.endswith("not recorded: DIRECTORY is not writable\n")
    assert err.count("\n") == 1


def test_of_an_empty_directory_it_is_said_where_programs_record_that_may_not_write_there(run_main, work):
    (work / "volume").mkdir()

    said = [run_main("report", "volume")[2], run_main("list", "volume")[2]]

    elsewhere = os.path.relpath(state.experiments_directory(), os.environ["XDG_STATE_HOME"])
    where = f"it is empty: a program that may not write there records into ~/.local/state/{elsewhere}"
    assert all(where in each for each in said)
    assert [each.count("\n") for each in said] == [1, 1]


def test_without_an_experiment_here_one_can_be_named_or_made(run_main, work):
    elsewhere = Path(state.experiments_directory()) / "test.7.er"
    orders(elsewhere).write()

    assert run_main("report")[2] == (
        f"interpose: no experiment in {work}; the newest elsewhere is {elsewhere}; "
        "name it, or make one with interpose run app.py\n"
    )


def test_a_reason_newer_than_the_experiment_is_told(run_main, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", str(work))

    code, _, err = run_main("report")

    assert code == 0
    assert err.startswith("interpose: newer than test.1.er: app.py, process 812,")


def test_a_reason_of_a_program_elsewhere_is_not_told(run_main, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", f"{work}/other")

    assert run_main("report")[2] == ""


def test_a_newer_experiment_that_had_no_place_in_the_directory_is_told(run_main, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    ours, theirs = (Path(state.experiments_directory()) / name for name in ("test.7.er", "test.8.er"))
    orders(ours, settings={"INTERPOSE_DIR": str(work)}).write()
    orders(theirs, settings={"INTERPOSE_DIR": f"{work}/other"}).write()

    code, out, err = run_main("report")

    assert (code, out[:9]) == (0, "test.1.er")
    assert err == f"interpose: newer than test.1.er: {ours}; the directory wanted for it could not be used\n"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["report", "no.er"], 1, "interpose: no.er: no such experiment\n"),
        (["events", "no.er"], 1, "interpose: no.er: no such experiment\n"),
        (["list", "no"], 1, "interpose: no: No such file or directory\n"),
        (
            ["events", "test.1.er", "--since", "later"],
            2,
            "interpose: --since later: not a duration like 2.5s or a time such as 10:02\n",
        ),
    ],
)
def test_an_error_is_one_line(run_main, arguments, code, line):
    ended(orders()).write()

    assert run_main(*arguments) == (code, "", line)


@pytest.mark.parametrize(
    "arguments",
    [["report", "--by", "colour"], ["report", "--limit", "0"], ["events", "--last", "-3"], ["report", "-x"]],
)
def test_wrong_usage_ends_with_2(run_main, arguments):
    code, out, err = run_main(*arguments)

    assert (code, out) == (2, "")
    assert "interpose" in err


def test_a_later_version_is_named(run_main):
    orders(version=5).write()

    assert run_main("report") == (
        1,
        "",
        "interpose: test.1.er/log.xml: format 5; this version reads up to 4\n",
    )


def without_its_process(build):
    """The log ends before it says when the process began; its first thread began a second later."""
    path = build.write()
    log = (path / "log.xml").read_bytes()
    (path / "log.xml").write_bytes(log[: log.index(b"<process")])
    return path


def test_where_the_start_of_the_process_is_lost_its_first_thread_stands_in(run_main):
    build = orders()
    build.thread(start_ns=START_NS + SECOND, end_ns=START_NS + 20 * SECOND, recorded=200, main=1)
    build.ended(20 * SECOND, 14 * SECOND)
    without_its_process(build)

    code, out, _ = run_main("report")

    assert code == 3
    assert "elapsed 19.00 s (estimated)   thread time 19.00 s" in out


def test_where_no_thread_is_known_either_the_elapsed_time_is_unknown(run_main):
    path = ended(orders()).write()
    log = (path / "log.xml").read_bytes()
    (path / "log.xml").write_bytes(log[: log.index(b'<data name="threads"')])

    out = run_main("report")[1]
    (listed,) = json.loads(run_main("list", "--format", "json")[1])

    assert "\nelapsed unknown " in out
    assert listed["elapsed_ns"] is None


def test_of_several_experiments_one_without_a_date_does_not_count_for_the_elapsed_time(run_main):
    ended(orders("test.1.er")).write()
    without_its_process(ended(orders("test.2.er")))

    out = run_main("report", "test.1.er", "test.2.er")[1]

    assert "\nelapsed 20.00 s" in out


def test_a_repaired_experiment_that_has_lost_its_start_stays_damaged(run_main):
    without_its_process(ended(orders()))

    code, out, _ = run_main("check", "--repair", "-o", "fixed.er", "test.1.er")
    listed = json.loads(run_main("list", "--format", "json")[1])

    assert code == 3
    assert "fixed.er/log.xml: the start of the process is missing; the start of its first thread is used\n" in out
    assert [each["elapsed_ns"] for each in listed] == [20 * SECOND] * 2
    assert [each["state"] for each in listed] == ["exit 0, damaged"] * 2


@pytest.mark.parametrize("moved", [False, True], ids=["", "compressed"])
def test_the_list_says_that_calls_are_missing(run_main, moved):
    build = ended(orders())
    build.moved = list(range(len(build.blocks))) if moved else []
    path = build.write()
    (before,) = json.loads(run_main("list", "--format", "json")[1])
    os.truncate(path / ("events.zst" if moved else "events"), 0)
    (after,) = json.loads(run_main("list", "--format", "json")[1])

    assert (before["state"], after["state"]) == ("exit 0", "exit 0, damaged")


def last_event_of(path):
    """Where the last event in the file of events begins."""
    data = Experiment(str(path)).founder.log.data["events"]
    last = (path / "events").stat().st_size - data.block_bytes
    used = sum(Experiment(str(path)).founder.events.counts().values())
    return last + data.inner.record_bytes + (used - 1) * data.layout.record_bytes


def after_head(path):
    """Where the first thread begins in the file of threads."""
    return Experiment(str(path)).founder.log.data["threads"].head_bytes


@pytest.mark.parametrize(
    ("name", "end", "missing"),
    [("events", last_event_of, "recorded calls are not there"), ("threads", after_head, "thread 1 is not there")],
)
def test_the_list_says_that_something_is_cut_off_and_so_it_does_of_a_repaired_copy(run_main, name, end, missing):
    path = ended(orders()).write()
    os.truncate(path / name, end(path))

    code, checked, _ = run_main("check", "test.1.er")
    repaired = run_main("check", "--repair", "-o", "fixed.er", "test.1.er")
    listed = json.loads(run_main("list", "--format", "json")[1])

    assert (code, repaired[0]) == (3, 3)
    assert missing in checked and missing in repaired[1]
    assert [each["state"] for each in listed] == ["exit 0, damaged"] * 2


def test_a_damaged_experiment_is_reported_and_ends_with_3(run_main):
    path = ended(orders()).write() / "events"
    os.truncate(path, 10_000)

    code, out, err = run_main("report")

    assert code == 3
    assert "incomplete: events: cut short at byte 10000, in block 0\n" in out
    assert err == "interpose: test.1.er/events: cut short at byte 10000, in block 0 (and 1 more)\n"
