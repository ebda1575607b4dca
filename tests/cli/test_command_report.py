"""`interpose report`, `events` and `list` as a user meets them: screens, formats, errors, exit codes."""

import csv
import io
import json
import os
import re
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

import pytest

from interpose.analysis.calls.profile import GROUPINGS
from interpose.cli.main import BROKEN_PIPE, main
from interpose.config import state
from tests.build import SECOND, START_NS, Build, event

pytestmark = pytest.mark.any_python


@pytest.fixture(autouse=True)
def work(place, monkeypatch):
    """A working directory beside that of the state."""
    (place / "work").mkdir()
    monkeypatch.chdir(place / "work")
    return place / "work"


@pytest.fixture
def interpose(capsys):
    """Runs a command line; gives exit code, standard output and standard error."""

    def run(*arguments):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return run


def orders(name="test.1.er", **log):
    """An experiment of an order-entry program: 20 seconds, of which 5 in the database, 2 in files."""
    build = Build(Path(name), time_ns=int((time.time() - 140) * SECOND), **log)
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    save = build.stack(build.site("/home/u/shop/orders.py", 88, "save_order"))
    emit = build.stack(build.site("/usr/lib/python3/logging.py", 5, "emit", own=0), save)
    select = build.string("select * from orders where id = ?")
    rows = []
    for call in range(1, 101):
        start_ns = call * 100_000_000
        rows.append(
            event(start_ns, 50_000_000, 12_000_000, call=call, intrinsic=query, stack=save, detail=select)
        )
        rows.append(
            event(
                start_ns + 60_000_000,
                20_000_000,
                500_000,
                call=call + 100,
                intrinsic=write,
                stack=emit,
                bytes=10,
            )
        )
    build.events(rows)
    return build


def ended(build, wall_ns=20 * SECOND, cpu_ns=14 * SECOND, status=0):
    build.thread(
        end_ns=START_NS + wall_ns, end_cpu_ns=cpu_ns, recorded=200, own_wall_ns=20_000_000, main=1, tid=812
    )
    build.ended(wall_ns, cpu_ns, status)
    return build


def killed(build, **thread):
    opened = [{"start_ns": START_NS + 15 * SECOND, "call": 201, "intrinsic": 1, "stack": 1}]
    build.thread(**{"seen_ns": START_NS + 20 * SECOND, "recorded": 200, "open_calls": opened} | thread)
    return build


def test_the_first_screen(interpose):
    ended(orders()).write()

    code, out, err = interpose("report")

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "test.1.er  python orders.py   exit 0   2 minutes ago   complete",
        "elapsed 20.00 s   thread time 20.00 s   CPU 14.00 s   200 calls",
        "",
        "Slowest: orders.py computes: CPU time between recorded calls (12.7 s of 20.0 s).",
        "  See its lines: record with interpose run, then interpose report --by line.",
        'Also: 100 SQL queries from orders.py:88 save_order (5.00 s of 20.0 s): "select *',
        '  from orders where id = ?". Load them together: a join, IN (...), executemany,',
        "  or the ORM's eager loading.",
        "Also: 100 calls of os.write from orders.py:88 save_order, 20.0 ms each (2.00 s",
        "  of 20.0 s). See their arguments: interpose report --by detail.",
        "1 more finding: interpose report --by finding",
        "",
        "           calls  self wall  self CPU    wait  share",
        " db          100     5.00 s    1.20 s  3.80 s   25 %",
        " file        100     2.00 s    0.05 s  1.95 s   10 %",
        " code               12.98 s   12.75 s  0.23 s   65 %  between the calls",
        " overhead            0.02 s    0.00 s  0.02 s    0 %  estimated",
        "",
        " unexplained wait  230 ms  in code: no known cause (docs/limits.md)",
        " your lines   5.00 s  100 x sqlite3.Cursor.execute  orders.py:88 save_order",
        "              2.00 s  100 x os.write  orders.py:88 save_order",
        " next: interpose events · interpose report --by site · interpose list",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_the_first_screen_fits_the_terminal(interpose, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    name = f"{'long' * 20}.1.er"
    killed(orders(name, arguments=["x" * 300], cwd="/"), dropped=10**9, tid=2**32 - 1).write()
    killed(orders(f"{name}/_f1.er", first={"stacks": 9}), dropped=10**9).write()

    _, out, _ = interpose("report")

    assert all(len(line) <= max(columns, 80) for line in out.splitlines())


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_sentences_of_findings_are_whole_however_narrow_the_terminal_is(interpose, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    ended(orders()).write()
    found = json.loads(interpose("report", "--by", "finding", "--format", "json")[1])

    code, out, err = interpose("report", "--by", "finding")

    shown = "".join(out.split())
    assert (code, err, len(found)) == (0, "", 4)
    assert all(len(line) <= columns for line in out.splitlines())
    assert "\u2026" not in out
    if columns < 60:  # there the rules have no column, and the sentences only times before them
        assert all("".join(each["words"].split()) in shown for each in found)
    words = set(out.split())
    assert all(set(f"{each['words']} {each['advice']}".split()) <= words for each in found)


@pytest.mark.parametrize(
    ("number", "words"), [(15, "ended by SIGTERM"), (2, "ended by SIGINT"), (11, "killed by SIGSEGV")]
)
def test_a_signal_that_asks_a_program_to_end_does_not_kill_it(interpose, number, words):
    build = killed(orders())
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 20 * SECOND}" signal="{number}"/>')
    build.write()

    _, out, _ = interpose("report")

    assert f"   {words}   " in out


def test_a_killed_program_tells_what_it_was_in(interpose):
    build = killed(orders())
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 20 * SECOND}" signal="9"/>')
    build.write()

    _, out, _ = interpose("report")

    assert "killed by SIGKILL" in out
    assert " in progress  sqlite3.Cursor.execute at orders.py:88 for 5.00 s when killed\n" in out


def test_a_program_that_nobody_saw_end_has_estimated_times(interpose):
    killed(orders()).write()

    _, out, _ = interpose("report")

    assert "ended unseen" in out
    assert "thread time 20.00 s (estimated)" in out
    assert " in progress  sqlite3.Cursor.execute at orders.py:88 for 5.00 s until last seen\n" in out


def test_a_running_program_is_told_so(interpose):
    now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    build = Build(
        Path("test.1.er"),
        pid=os.getpid(),
        host=os.uname().nodename,
        start_ns=now_ns - SECOND,
        time_ns=time.time_ns(),
    )
    build.intrinsic("time.sleep", "sleep")
    build.thread(start_ns=now_ns - SECOND, open_calls=[{"start_ns": now_ns, "call": 1, "intrinsic": 1}])
    build.write()

    _, out, _ = interpose("report")

    assert "   running   started " in out
    assert out.splitlines()[0].endswith("   complete so far")
    assert " so far\n" in out


def test_lost_events_and_a_stopped_recording_are_told(interpose):
    build = ended(orders())
    build.thread(end_ns=START_NS + 1, dropped=1234)
    build.sample(time_ns=START_NS + 5, kind=4, status=28)
    build.write()

    code, out, _ = interpose("report")

    assert code == 0
    assert "incomplete: recording stopped, No space left on device; 1,234 events lost" in out


def test_an_experiment_that_lost_events_is_not_complete(interpose):
    build = ended(orders())
    build.thread(end_ns=START_NS + 1, dropped=710)
    build.write()

    _, out, _ = interpose("report")

    assert "incomplete: 710 events lost" in out


def test_where_calls_were_not_recorded_that_is_said_and_what_was_comes_next(interpose):
    ended(Build(Path("test.1.er"), settings={"INTERPOSE": "lines,coverage"})).write()

    _, out, _ = interpose("report")

    assert "calls not recorded" in out and " 0 calls" not in out
    assert "unexplained wait" not in out
    assert " next: interpose lines \u00b7 interpose coverage report \u00b7 interpose list" in out


def test_an_experiment_whose_log_breaks_off_has_no_age(interpose):
    log = ended(orders()).write() / "log.xml"
    log.write_bytes(log.read_bytes().partition(b"<process")[0])

    code, out, _ = interpose("report")
    _, listed, _ = interpose("list")

    assert code == 3
    assert "at an unknown time" in out
    assert "ago" not in out + listed


def test_what_could_not_even_be_counted_by_thread_is_told(interpose):
    build = ended(orders())
    build.heads["threads"] = {"lost": 5, "unrecorded": 2}
    build.write()

    code, out, _ = interpose("report")

    assert code == 0
    assert "incomplete: 2 forks not recorded; 5 events lost" in out


def test_figures_near_the_cost_of_measuring_are_marked(interpose):
    build = Build(Path("test.1.er"))
    build.intrinsic("os.write", "file")
    build.block([event(0, 200, 100, call=1)])
    build.thread(end_ns=START_NS + 1000, recorded=1)
    build.ended(1000, 500)
    build.write()

    _, out, _ = interpose("report")

    assert " file          1   ~0.20 us  ~0.10 us  ~0.10 us   20 %\n" in out


@pytest.mark.parametrize("by", ["kind", "intrinsic", "site", "function", "detail", "thread", "process"])
@pytest.mark.parametrize("written", ["text", "json", "csv", "markdown"])
def test_every_grouping_in_every_format(interpose, by, written):
    ended(orders()).write()

    code, out, err = interpose("report", "--by", by, "--format", written)

    assert (code, err) == (0, "")
    assert "overhead" in out


def test_json_rows_have_the_promised_keys_and_add_up(interpose):
    ended(orders()).write()

    _, out, _ = interpose("report", "--by", "intrinsic", "--format", "json")
    rows = json.loads(out)

    assert list(rows[0]) == [
        "kind",
        "intrinsic",
        "calls",
        "errors",
        "wall_ns",
        "cpu_ns",
        "self_wall_ns",
        "self_cpu_ns",
        "bytes",
        "rows",
        "counted",
    ]
    assert sum(row["self_wall_ns"] for row in rows) == 20 * SECOND
    assert [(row["kind"], row["intrinsic"]) for row in rows] == [
        ("db", "sqlite3.Cursor.execute"),
        ("file", "os.write"),
        ("code", None),
        ("overhead", None),
    ]


def test_json_without_a_grouping_is_one_object(interpose):
    build = ended(orders())
    build.log_events.append(f'<event kind="warning" time_ns="{START_NS}" text="no such library"/>')
    build.write()

    code, out, err = interpose("report", "--format", "json")
    found = json.loads(out)

    assert (code, err) == (0, "")
    totals, lists = ["elapsed_ns", "thread_ns", "cpu_ns", "complete"], ["rows", "findings", "memory"]
    assert list(found) == [*totals, *lists, "children_not_followed", "warnings"]
    assert [row["kind"] for row in found["rows"]] == ["db", "file", "code", "overhead"]
    assert sum(row["self_wall_ns"] for row in found["rows"]) == found["thread_ns"] == 20 * SECOND
    assert sum(row["self_cpu_ns"] for row in found["rows"]) == found["cpu_ns"]
    assert found["complete"] is True
    assert found["findings"][0]["bound_ns"] > 0
    assert found["warnings"] == ["no such library"]


def test_json_says_where_an_experiment_is_incomplete(interpose):
    build = ended(orders())
    build.threads[0][0]["dropped"] = 7
    build.write()

    found = json.loads(interpose("report", "--format", "json")[1])

    assert found["complete"] is False
    assert any("7 events lost" in line for line in found["warnings"])


@pytest.mark.parametrize("by", ["function", "line"])
def test_functions_that_were_sampled_are_rows_beside_calls(interpose, by):
    build = ended(orders())
    stack = build.sampled_stack(("/home/u/shop/orders.py", 3, "main"), ("/home/u/shop/orders.py", 9, "work"))
    for place in range(1, 100):
        build.thread_sample(START_NS + place * SECOND // 10, cpu_ns=place * SECOND // 50, stack=stack)
    build.write()

    rows = json.loads(interpose("report", "--by", by, "--format", "json")[1])
    text = interpose("report", "--by", by)[1]

    found = next(row for row in rows if row["kind"] == "code")
    assert (found["function"], found["file"], found["line"]) == ("work", "/home/u/shop/orders.py", 9)
    assert found["samples"] == 99
    assert found["margin_ns"] > 0
    waits = found["gil_ns"] + found["runqueue_ns"] + found["unexplained_ns"]
    assert found["self_wall_ns"] == found["self_cpu_ns"] + waits
    assert sum(row["self_wall_ns"] for row in rows) == 20 * SECOND
    assert "\u00b1" in text
    assert next(row for row in rows if row["kind"] == "db")["samples"] is None


def test_rows_are_sorted_and_limited(interpose):
    ended(orders()).write()

    _, out, _ = interpose("report", "--by", "intrinsic", "--sort", "bytes", "--limit", "1", "--format", "csv")
    _, *rows = csv.reader(io.StringIO(out))

    assert [row[:2] for row in rows] == [["file", "os.write"], ["code", ""], ["overhead", ""]]


def test_rows_that_a_limit_hides_are_summed_in_the_last_one(interpose):
    ended(orders()).write()

    _, out, _ = interpose("report", "--by", "intrinsic", "--limit", "1")
    *_, last = out.splitlines()

    assert last.split() == ["1", "more", "row", "100", "2.00", "s", "0.05", "s", "1.95", "s", "10", "%", "1,000"]


def served(name="test.1.er"):
    """A server: 20 seconds, of which 15 it waited for work; 1,234,567 locks that were free."""
    build = Build(Path(name), time_ns=int((time.time() - 140) * SECOND))
    accept = build.intrinsic("socket.socket.accept", "net", "idle")
    acquire = build.intrinsic("threading.Lock.acquire", "sync")
    serve = build.stack(build.site("/home/u/shop/serve.py", 7, "serve"))
    rows = [event(0, 15 * SECOND, 0, call=1, intrinsic=accept + 1, stack=serve)]
    rows.append(event(15 * SECOND, SECOND, SECOND // 2, call=2, intrinsic=accept, stack=serve))
    rows.append(event(17 * SECOND, SECOND, 0, call=3, intrinsic=acquire, stack=serve))
    build.events(rows)
    build.thread(end_ns=START_NS + 20 * SECOND, end_cpu_ns=SECOND, recorded=3, passed=1_234_567, main=1, tid=812)
    build.ended(20 * SECOND, SECOND)
    return build


def test_waiting_for_work_is_the_last_row_and_no_line_of_ones_own(interpose):
    served().write()

    _, out, _ = interpose("report")

    *_, kinds, _ = out.split("\n\n")
    table = [line.split() for line in kinds.splitlines()[1:-1]]
    assert [cells[0] for cells in table] == ["net", "sync", "code", "overhead", "idle"]
    assert " ".join(table[1]).endswith(" 1,234,567 uncontended")
    assert " ".join(table[-1]) == "idle 1 15.00 s 0.00 s 15.00 s 75 % waiting for work"
    assert "your lines" in out and "15.0 s  1 x" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", [40, 80])
def test_where_a_program_was_idle_the_first_screen_says_what_shares_are_of(interpose, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    served().write()

    _, out, _ = interpose("report")

    lines = out.splitlines()
    told = " ".join(" ".join(lines).split())
    assert "shares are of all thread time, 20.00 s; sentences compare with 5.00 s" in told
    assert "(1.00 s of 5.00 s)" in told
    shares = [int(share) for share in re.findall(r"^ \w+ .*?(\d+) %", out, re.M)]
    assert abs(sum(shares) - 100) <= 2 and shares[-1] == 75
    first = next(number for number, line in enumerate(lines) if "shares are of" in line)
    assert max(map(len, lines[first : first + 2])) <= columns
    assert columns < 80 or max(map(len, lines)) <= columns  # the table needs more than 40


def test_the_table_of_findings_says_what_its_shares_are_of(interpose, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    served().write()

    _, out, _ = interpose("report", "--by", "finding")
    _, found, _ = interpose("report", "--by", "finding", "--format", "json")

    head, *rows = out.splitlines()
    assert "of 5.00 s" in head
    shares = [f" {each['bound_ns'] / (5 * SECOND):.0%}".replace("%", " % ") for each in json.loads(found)]
    assert [share in row for share, row in zip(shares, rows, strict=True)] == [True, True]


@pytest.mark.parametrize("sort", ["name", "calls", "wall", "wait", "cpu"])
@pytest.mark.parametrize(
    ("limit", "kinds"),
    [
        ("9", {"net", "sync", "code", "overhead", "idle"}),
        ("2", {"net", "sync", "code", "overhead"}),
    ],
)
def test_waiting_for_work_is_last_however_one_sorts_and_the_first_to_go(interpose, sort, limit, kinds):
    served().write()

    for by in ("intrinsic", "site", "function", "detail"):
        _, out, _ = interpose("report", "--by", by, "--sort", sort, "--limit", limit, "--format", "json")
        found = [row["kind"] for row in json.loads(out)]
        assert set(found) == kinds
        assert ("idle" not in found) or found[-1] == "idle"


def test_the_kinds_of_one_intrinsic_are_told_apart(interpose):
    served().write()

    _, out, _ = interpose("report", "--by", "site")

    found = [line.split()[:2] for line in out.splitlines()]
    assert found[0] == ["kind", "intrinsic"]
    assert ["net", "socket.socket.accept"] in found
    assert found[-1] == ["idle", "socket.socket.accept"]


def test_a_call_in_progress_that_waits_for_work_has_its_kind(interpose):
    build = served()
    opened = [{"start_ns": START_NS + 19 * SECOND, "call": 4, "intrinsic": 2, "stack": 1}]
    build.thread(open_calls=opened, tid=813)
    build.write()

    rows = json.loads(interpose("events", "--last", "1", "--format", "json")[1])
    _, screen, _ = interpose("report")

    assert [(row["intrinsic"], row["kind"], row["state"]) for row in rows] == [
        ("socket.socket.accept", "idle", "exit")
    ]
    assert " in progress  socket.socket.accept at serve.py:7 for 1.00 s when it ended\n" in screen


def test_json_of_threads_tells_the_calls_that_did_not_wait(interpose):
    served().write()

    _, out, _ = interpose("report", "--by", "thread", "--format", "json")

    assert [(row["thread"], row["kind"], row["passed"]) for row in json.loads(out)] == [
        ("812 main", None, 1_234_567),
        ("812 main", "code", 0),
        ("812 main", "overhead", 0),
        ("812 main", "idle", 0),
    ]


def test_tables_fit_eighty_columns_and_tell_self_and_inclusive_times(interpose, monkeypatch):
    served().write()
    monkeypatch.setattr("interpose.cli.output._NO_WIDTH", 80)

    for by in GROUPINGS:
        _, out, _ = interpose("report", "--by", by)
        head, *rows = out.splitlines()
        assert " calls  self wall  self CPU     wait  inclusive" in head
        assert max(map(len, [head, *rows])) <= 80


def test_the_inclusive_time_is_that_of_the_outer_call(interpose):
    build = Build(Path("test.1.er"))
    query, sleep = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("time.sleep", "sleep")
    build.block(
        [
            event(10, 30_000_000, call=3, parent=2, intrinsic=sleep),
            event(5, 50_000_000, call=2, parent=1, intrinsic=query, inner_wall_ns=30_000_000),
            event(0, 90_000_000, 7_000_000, call=1, intrinsic=query, inner_wall_ns=50_000_000),
        ]
    )
    build.thread(end_ns=START_NS + 100_000_000, recorded=3)
    build.ended(100_000_000, 7_000_000)
    build.write()

    text = interpose("report", "--by", "intrinsic", "--sort", "inclusive")[1].splitlines()
    rows = json.loads(interpose("report", "--by", "intrinsic", "--format", "json")[1])
    calls = json.loads(interpose("events", "--format", "json")[1])

    assert [" ".join(line.split()) for line in text[1:4]] == [
        "db sqlite3.Cursor.execute 2 60.00 ms 7.00 ms 53.00 ms 90.00 ms 60 %",
        "sleep time.sleep 1 30.00 ms 0.00 ms 30.00 ms 30.00 ms 30 %",
        "code 10.00 ms 0.00 ms 10.00 ms 10 %",
    ]
    assert [(row["wall_ns"], row["self_wall_ns"]) for row in rows[:2]] == [
        (90_000_000, 60_000_000),
        (30_000_000, 30_000_000),
    ]
    assert [(call["wall_ns"], call["self_wall_ns"], call["self_cpu_ns"]) for call in calls] == [
        (90_000_000, 40_000_000, 7_000_000),
        (50_000_000, 20_000_000, 0),
        (30_000_000, 30_000_000, 0),
    ]


def test_results_go_into_a_file(interpose, work):
    ended(orders()).write()

    code, out, _ = interpose("report", "-o", "report.txt")

    assert (code, out) == (0, "")
    assert (work / "report.txt").read_text().startswith("test.1.er  python orders.py")


def test_a_file_that_cannot_be_written_is_named(interpose):
    ended(orders()).write()

    assert interpose("report", "-o", "no/report.txt") == (
        1,
        "",
        "interpose: no/report.txt: No such file or directory\n",
    )


def test_the_newest_experiment_is_taken(interpose):
    ended(orders("test.1.er")).write()
    ended(orders("test.2.er")).write()
    os.utime("test.1.er/log.xml", (1, 1))

    assert interpose("report")[1].startswith("test.2.er ")
    assert interpose("report", "test.1.er")[1].startswith("test.1.er ")


def test_where_the_newest_cannot_be_read_one_before_it_that_can_is_named(interpose, work, monkeypatch):
    for number, log in enumerate((None, b"<experiment", b"<experiment>\0"), 1):
        path = Path(ended(orders(f"test.{number}.er")).write(), "log.xml")
        if log is not None:
            path.write_bytes(log)
        os.utime(path, (number, number))

    code, out, err = interpose("report")
    monkeypatch.chdir("/")
    monkeypatch.setenv("INTERPOSE_DIR", str(work))
    _, _, elsewhere = interpose("report")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("interpose: ") and "test.3.er" in err
    assert err.endswith("; the one before can be read: test.1.er\n")
    assert elsewhere.endswith(f"; the one before can be read: {work}/test.1.er\n")
    assert interpose("report", f"{work}/test.1.er")[0] == 0


def test_where_no_experiment_can_be_read_none_is_named(interpose):
    for number in (1, 2):
        Path(ended(orders(f"test.{number}.er")).write(), "log.xml").write_bytes(b"<experiment")

    code, out, err = interpose("report")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "before" not in err


@pytest.mark.parametrize("words", [["save"], ["save", "-o", "zz.er"], ["cp", "test.2.er", "zz.er"]])
def test_a_copy_is_not_taken_for_the_newest(interpose, words):
    ended(orders("test.1.er")).write()
    ended(orders("test.2.er")).write()
    os.utime("test.1.er/log.xml", (1, 1))

    interpose(*words)
    _, out, _ = interpose("report")

    (copy,) = {path.name for path in Path().glob("*.er")} - {"test.1.er", "test.2.er"}
    assert out.startswith("test.2.er ")
    interpose("rm", "test.2.er")
    assert interpose("report")[1].startswith(f"{copy} ")


def test_without_an_experiment_the_newest_elsewhere_and_the_last_reason_are_named(interpose, work):
    elsewhere = Path(state.experiments_directory()) / "test.7.er"
    orders(elsewhere).write()
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", str(work))

    code, out, err = interpose("report")

    assert (code, out) == (1, "")
    assert err.startswith(
        f"interpose: no experiment in {work}; the newest elsewhere is {elsewhere}; app.py, process 812,"
    )
    assert err.endswith("not recorded: DIRECTORY is not writable\n")
    assert err.count("\n") == 1


def test_a_reason_newer_than_the_experiment_is_told(interpose, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", str(work))

    code, _, err = interpose("report")

    assert code == 0
    assert err.startswith("interpose: newer than test.1.er: app.py, process 812,")


def test_a_reason_of_a_program_elsewhere_is_not_told(interpose, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    state.note_not_recorded("app.py", 812, "DIRECTORY is not writable", f"{work}/other")

    assert interpose("report")[2] == ""


def test_a_newer_experiment_that_had_no_place_in_the_directory_is_told(interpose, work):
    ended(orders()).write()
    os.utime("test.1.er/log.xml", (1, 1))
    ours, theirs = (Path(state.experiments_directory()) / name for name in ("test.7.er", "test.8.er"))
    orders(ours, settings={"INTERPOSE_DIR": str(work)}).write()
    orders(theirs, settings={"INTERPOSE_DIR": f"{work}/other"}).write()

    code, out, err = interpose("report")

    assert (code, out[:9]) == (0, "test.1.er")
    assert err == f"interpose: newer than test.1.er: {ours}; {work} could not be used for it\n"


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
def test_an_error_is_one_line(interpose, arguments, code, line):
    ended(orders()).write()

    assert interpose(*arguments) == (code, "", line)


@pytest.mark.parametrize(
    "arguments",
    [["report", "--by", "colour"], ["report", "--limit", "0"], ["events", "--last", "-3"], ["report", "-x"]],
)
def test_wrong_usage_ends_with_2(interpose, arguments):
    code, out, err = interpose(*arguments)

    assert (code, out) == (2, "")
    assert "interpose" in err


def test_a_later_version_is_named(interpose):
    orders(version=5).write()

    assert interpose("report") == (
        1,
        "",
        "interpose: test.1.er/log.xml: format 5; this version reads up to 4\n",
    )


def test_a_damaged_experiment_is_reported_and_ends_with_3(interpose):
    path = ended(orders()).write() / "events"
    os.truncate(path, 10_000)

    code, out, err = interpose("report")

    assert code == 3
    assert "incomplete: events: cut short at byte 10000, in block 0\n" in out
    assert err == "interpose: test.1.er/events: cut short at byte 10000, in block 0 (and 1 more)\n"


def test_events_are_listed_in_order_with_what_they_were_about(interpose):
    ended(orders()).write()

    code, out, err = interpose("events", "--limit", "2")

    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["since", "start"],
        ["0.100000", "s"],
        ["0.160000", "s"],
    ]
    assert "sqlite3.Cursor" in out and "orders.py:88" in out and "select * " in out


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (["--last", "2"], [100, 200]),
        (["--since", "9.95s"], [199, 100, 200]),
        (["--since", "9900ms", "--limit", "1"], [99]),
        (["--since", "9.9s"], [99, 199, 100, 200]),
    ],
)
def test_events_are_chosen(interpose, arguments, calls):
    ended(orders()).write()

    _, out, _ = interpose("events", "--format", "json", *arguments)

    assert [row["call"] for row in json.loads(out)] == calls


def test_events_since_a_time_of_day(interpose):
    build = ended(orders())
    build.write()
    began_s = build.log["time_ns"] / SECOND
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began_s + 9))

    _, by_date, _ = interpose("events", "--format", "json", "--since", soon)
    _, by_clock, _ = interpose("events", "--format", "json", "--since", soon[11:])

    assert 10 < len(json.loads(by_date)) < 50
    assert by_clock == by_date


def test_experiments_are_listed_with_their_state(interpose):
    ended(orders("test.1.er"), status=3).write()
    orders("test.2.er", version=9).write()
    os.utime("test.1.er/log.xml", (1, 1))

    code, out, err = interpose("list")

    assert (code, err) == (0, "")
    listed = " ".join(out.splitlines()[1].split())
    assert listed == "test.1.er 2 minutes ago 20.00 s 200 exit 3 python orders.py"
    assert "test.2.er" in out and "cannot be read" in out
    assert [row["calls"] for row in json.loads(interpose("list", "--format", "json")[1])] == [200, None]


def test_an_empty_list_is_said(interpose, work):
    assert interpose("list", ".") == (
        0,
        "name  when  elapsed  calls  state  command\n",
        "interpose: no experiments in .\n",
    )


def test_recorded_text_never_reaches_the_terminal_raw(interpose):
    nasty = "\x1b]0;owned\x07\n\u202e=1+1"
    build = Build(Path("test.1.er"), arguments=["app.py", "\u202e"])
    number = build.intrinsic("os.write\u202e", "file", "\u202e=1+1", "idle")
    site = build.site(f"/x/{nasty}.py", 1, nasty)
    build.block(
        [
            event(
                0,
                5_000_000,
                intrinsic=number,
                stack=build.stack(site),
                detail=build.string(nasty),
                error=build.string("E" + nasty),
            )
        ]
    )
    odd = build.intrinsic("=1+1", "=1+1\n\u202e\x9b")
    build.block([event(6_000_000, 5_000_000, call=2, intrinsic=odd)])
    build.thread(end_ns=START_NS + SECOND, passed=3)
    build.write()

    for written in ("text", "json", "csv", "markdown"):
        for command in (
            ["report"],
            *(["report", "--by", by] for by in GROUPINGS),
            ["events"],
            ["list"],
        ):
            _, out, err = interpose(*command, "--format", written)
            assert all(line.isprintable() for line in (out + err).replace("·", "").split("\n")), (
                written,
                command,
            )
            assert written != "csv" or not re.search(r"^=|,=|\"=", out, re.M)


def test_a_reader_that_goes_away_is_no_error(monkeypatch):
    ended(orders()).write()
    there, here = os.pipe()
    os.close(there)
    with os.fdopen(here, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)

        assert main(["report"]) == BROKEN_PIPE


def test_results_are_not_written_over_what_they_are_made_from(interpose, tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(tid=1, main=1)
    path = build.write()
    before = (path / "log.xml").read_bytes()

    for words in (["report", "-o"], ["display", "functions", "-outfile"]):
        code, _, said = interpose(*words, str(path / "log.xml"), str(path))
        assert (code, said.count("\n")) == (2, 1)

    assert (path / "log.xml").read_bytes() == before


def test_the_page_is_opened_in_the_browser_and_only_its_owner_can_read_it(interpose, work, monkeypatch):
    ended(orders()).write()
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address) or True)
    monkeypatch.setenv("TMPDIR", str(work))
    monkeypatch.setattr(tempfile, "tempdir", None)

    code, out, err = interpose("report", "--open")

    path = Path(err.removeprefix("interpose: ").rstrip())
    assert (code, out, shown) == (0, "", [path.as_uri()])
    assert path.parent == work
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_a_page_that_no_browser_shows_is_kept_where_it_was_wanted(interpose, work, monkeypatch):
    ended(orders()).write()
    monkeypatch.setattr(webbrowser, "open", lambda address: False)

    kept = interpose("report", "--open", "-o", "page.html")
    refused = interpose("report", "--open", "--format", "json")

    assert kept == (0, "", "interpose: page.html: cannot start a browser; open this file yourself\n")
    assert (work / "page.html").exists()
    assert refused == (2, "", "interpose: --open: opens the HTML page, not --format json\n")
