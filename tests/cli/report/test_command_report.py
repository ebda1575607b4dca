"""`interpose report`, `events` and `list` as a user meets them: screens, formats, errors, exit codes."""

import json
import os
import re
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

import pytest
from shop_orders import ended, orders, served

from interpose.analysis.calls.groupings import GROUPINGS
from interpose.cli.main import BROKEN_PIPE, main
from tests.build import SECOND, START_NS, Build, event


def killed(build, **thread):
    opened = [{"start_ns": START_NS + 15 * SECOND, "call": 201, "intrinsic": 1, "stack": 1}]
    build.thread(**{"seen_ns": START_NS + 20 * SECOND, "recorded": 200, "open_calls": opened} | thread)
    return build


def test_the_first_screen(run_main):
    ended(orders()).write()

    code, out, err = run_main("report")

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
        " code               12.98 s   12.75 s  0.23 s   65 %  between calls",
        " overhead            0.02 s    0.00 s  0.02 s    0 %  estimated",
        "",
        " unexplained wait  230 ms  in code: no known cause (docs/limits.md)",
        " your lines   5.00 s  100 x sqlite3.Cursor.execute  orders.py:88 save_order",
        "              2.00 s  100 x os.write  orders.py:88 save_order",
        " next: interpose events · interpose report --by line · interpose list",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_the_first_screen_fits_the_terminal(run_main, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    name = f"{'long' * 20}.1.er"
    killed(orders(name, arguments=["x" * 300], cwd="/"), dropped=10**9, tid=2**32 - 1).write()
    killed(orders(f"{name}/_f1.er", first={"stacks": 9}), dropped=10**9).write()

    _, out, _ = run_main("report")

    assert all(len(line) <= max(columns, 80) for line in out.splitlines())


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_sentences_of_findings_are_whole_however_narrow_the_terminal_is(run_main, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    ended(orders()).write()
    found = json.loads(run_main("report", "--by", "finding", "--format", "json")[1])

    code, out, err = run_main("report", "--by", "finding")

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
def test_a_signal_that_asks_a_program_to_end_does_not_kill_it(run_main, number, words):
    build = killed(orders())
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 20 * SECOND}" signal="{number}"/>')
    build.write()

    _, out, _ = run_main("report")

    assert f"   {words}   " in out


def test_a_killed_program_tells_what_it_was_in(run_main):
    build = killed(orders())
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 20 * SECOND}" signal="9"/>')
    build.write()

    _, out, _ = run_main("report")

    assert "killed by SIGKILL" in out
    assert " in progress  sqlite3.Cursor.execute at orders.py:88 for 5.00 s when killed\n" in out


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["/srv/shop/venv/bin/gunicorn", "shop:app"], "gunicorn shop:app"),
        (["/usr/bin/python", "/srv/shop/venv/bin/gunicorn", "shop:app"], "gunicorn shop:app"),
        (["/srv/shop/orders.py", "today"], "python /srv/shop/orders.py today"),
    ],
)
def test_a_command_of_a_package_is_shown_as_it_was_typed(run_main, arguments, shown):
    build = ended(orders())
    build.log["arguments"] = arguments
    build.write()

    _, out, _ = run_main("report")

    assert out.startswith(f"test.1.er  {shown}   exit 0")


def test_a_program_that_nobody_saw_end_has_estimated_times(run_main):
    killed(orders()).write()

    _, out, _ = run_main("report")

    assert "ended, status unknown" in out
    assert "thread time 20.00 s (estimated)" in out
    assert " in progress  sqlite3.Cursor.execute at orders.py:88 for 5.00 s until last seen\n" in out


def test_a_running_program_is_told_so(run_main):
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

    _, out, _ = run_main("report")

    assert "   running   started " in out
    assert out.splitlines()[0].endswith("   complete so far")
    assert " so far\n" in out


def test_lost_events_and_a_stopped_recording_are_told(run_main):
    build = ended(orders())
    build.thread(end_ns=START_NS + 1, dropped=1234)
    build.sample(time_ns=START_NS + 5, kind=4, status=28)
    build.write()

    code, out, _ = run_main("report")

    assert code == 0
    assert "incomplete: recording stopped, No space left on device; 1,234 events lost" in out


def test_the_number_of_lost_events_is_never_cut(run_main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    build = ended(orders())
    build.thread(end_ns=START_NS + 1, dropped=1_234_567_890)
    build.sample(time_ns=START_NS + 5, kind=4, status=28)
    build.write()

    _, out, _ = run_main("report")

    assert "; 1,234,567,890\n  events lost\n" in out


def test_an_experiment_that_lost_events_is_not_complete(run_main):
    build = ended(orders())
    build.thread(end_ns=START_NS + 1, dropped=710)
    build.write()

    _, out, _ = run_main("report")

    assert "incomplete: 710 events lost" in out


def test_where_calls_were_not_recorded_that_is_said_and_what_was_comes_next(run_main):
    ended(Build(Path("test.1.er"), settings={"INTERPOSE": "lines,coverage"})).write()

    _, out, _ = run_main("report")

    assert "calls not recorded" in out and " 0 calls" not in out
    assert "unexplained wait" not in out
    assert " next: interpose lines \u00b7 interpose coverage report \u00b7 interpose list" in out


def test_an_experiment_whose_log_breaks_off_has_no_age(run_main):
    log = ended(orders()).write() / "log.xml"
    log.write_bytes(log.read_bytes().partition(b"<process")[0])

    code, out, _ = run_main("report")
    _, listed, _ = run_main("list")

    assert code == 3
    assert "at an unknown time" in out
    assert "ago" not in out + listed


def test_what_could_not_even_be_counted_by_thread_is_told(run_main):
    build = ended(orders())
    build.heads["threads"] = {"lost": 5, "unrecorded": 2}
    build.write()

    code, out, _ = run_main("report")

    assert code == 0
    assert "incomplete: 2 forks not recorded; 5 events lost" in out


def test_figures_near_the_cost_of_measuring_are_marked(run_main):
    build = Build(Path("test.1.er"))
    build.intrinsic("os.write", "file")
    build.block([event(0, 200, 100, call=1)])
    build.thread(end_ns=START_NS + 1000, recorded=1)
    build.ended(1000, 500)
    build.write()

    _, out, _ = run_main("report")

    assert " file          1   ~0.20 us  ~0.10 us  ~0.10 us   20 %\n" in out


def test_waiting_for_work_is_the_last_row_and_no_line_of_ones_own(run_main):
    served().write()

    _, out, _ = run_main("report")

    *_, kinds, _ = out.split("\n\n")
    table = [line.split() for line in kinds.splitlines()[1:-1]]
    assert [cells[0] for cells in table] == ["net", "sync", "code", "overhead", "idle"]
    assert " ".join(table[1]).endswith(" 1,234,567 uncontended")
    assert " ".join(table[-1]) == "idle 1 15.00 s 0.00 s 15.00 s 75 % waiting for work"
    assert "your lines" in out and "15.0 s  1 x" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", [40, 80])
def test_where_a_program_was_idle_the_first_screen_says_what_shares_are_of(run_main, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    served().write()

    _, out, _ = run_main("report")

    lines = out.splitlines()
    told = " ".join(" ".join(lines).split())
    assert "shares are of all thread time, 20.00 s; sentences compare with 5.00 s" in told
    assert "(1.00 s of 5.00 s)" in told
    shares = [int(share) for share in re.findall(r"^ \w+ .*?(\d+) %", out, re.M)]
    assert abs(sum(shares) - 100) <= 2 and shares[-1] == 75
    first = next(number for number, line in enumerate(lines) if "shares are of" in line)
    assert max(map(len, lines[first : first + 2])) <= columns
    assert columns < 80 or max(map(len, lines)) <= columns  # the table needs more than 40


def test_the_table_of_findings_says_what_its_shares_are_of(run_main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    served().write()

    _, out, _ = run_main("report", "--by", "finding")
    _, found, _ = run_main("report", "--by", "finding", "--format", "json")

    head, *rows = out.splitlines()
    assert "of 5.00 s" in head
    shares = [f" {each['bound_ns'] / (5 * SECOND):.0%}".replace("%", " % ") for each in json.loads(found)]
    assert [share in row for share, row in zip(shares, rows, strict=True)] == [True, True]


def test_recorded_text_never_reaches_the_terminal_raw(run_main):
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
            _, out, err = run_main(*command, "--format", written)
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


def test_results_are_not_written_over_what_they_are_made_from(run_main, tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(tid=1, main=1)
    path = build.write()
    before = (path / "log.xml").read_bytes()

    for words in (["report", "-o"], ["display", "functions", "-outfile"]):
        code, _, said = run_main(*words, str(path / "log.xml"), str(path))
        assert (code, said.count("\n")) == (2, 1)

    assert (path / "log.xml").read_bytes() == before


def test_the_page_is_opened_in_the_browser_and_only_its_owner_can_read_it(run_main, work, monkeypatch):
    ended(orders()).write()
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address) or True)
    monkeypatch.setenv("TMPDIR", str(work))
    monkeypatch.setattr(tempfile, "tempdir", None)

    code, out, err = run_main("report", "--open")

    path = Path(err.removeprefix("interpose: ").rstrip())
    assert (code, out, shown) == (0, "", [path.as_uri()])
    assert path.parent == work
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_a_page_that_no_browser_shows_is_kept_where_it_was_wanted(run_main, work, monkeypatch):
    ended(orders()).write()
    monkeypatch.setattr(webbrowser, "open", lambda address: False)

    kept = run_main("report", "--open", "-o", "page.html")
    refused = run_main("report", "--open", "--format", "json")

    assert kept == (0, "", "interpose: page.html: cannot start a browser; open this file yourself\n")
    assert (work / "page.html").exists()
    assert refused == (2, "", "interpose: --open: opens the HTML page, not --format json\n")
