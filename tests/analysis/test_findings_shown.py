"""Findings as they are shown: words, advice, formats, and of the whole experiment."""

import ast
import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from shops import BY_NUMBER, MS, SHOP, Shop

from interpose.analysis.findings.engine import RULES, found_in, found_in_all
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Named, Times
from interpose.analysis.partial.coding import packed, unpacked
from interpose.analysis.partial.partial import Question
from interpose.cli.main import main
from interpose.reports.screen.many import ScreenPart, merged_parts, screen_part
from interpose.reports.screen.verdict import verdict
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import RULES_IN_WORDS, Sentences
from tests.build import SECOND

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_rule_has_its_words_and_its_advice():
    trees = [ast.parse(Path(inspect.getfile(rule)).read_text()) for rule in RULES]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    told = {call.args[0].value for call in calls if isinstance(call.func, ast.Name) and call.func.id == "found"}

    assert told == RULES_IN_WORDS
    assert all(advice_for(Finding(rule, (), 1)).endswith(".") for rule in told - {"slow calls"})


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown"])
def test_findings_come_in_every_format(shop, place, capsys, format):
    shop.call("sqlite3.Connection.commit", "db", times=200)
    shop.survey()

    assert main(["report", str(shop.directory), "--by", "finding", "--format", format]) == 0

    out = capsys.readouterr().out
    assert "commits one by one" in out.replace("\\", "")
    if format == "json":
        first = next(each for each in json.loads(out) if each["finding"] == "commits one by one")
        assert (first["bound_ns"], first["calls"], first["site"]) == (198 * MS, 200, f"{SHOP}:88")


def test_the_first_screen_has_at_most_three_findings_and_says_where_more_are(shop, place, capsys):
    for line in range(5):
        shop.ask(f"SELECT a{line} FROM t WHERE b = ?", line=line + 1, times=100)
    shop.survey()

    main(["report", str(shop.directory)])

    _, verdict, *_ = capsys.readouterr().out.split("\n\n")
    first, second, third, more = " ".join(verdict.split("\n  ")).splitlines()
    assert first.startswith("Slowest: The program waited outside all recorded calls (500 ms of 1.00 s).")
    assert second == (
        'Also: 100 SQL queries from orders.py:1 line_1 (100 ms of 1.00 s): "SELECT a0 FROM t WHERE b = ?".'
        " Load them together: a join, IN (...), executemany, or the ORM's eager loading."
    )
    assert third.startswith("Also: 100 SQL queries from orders.py:2 line_2 (100 ms of 1.00 s): ")
    assert more == "3 more findings: interpose report --by finding"
    assert all(len(line) <= 80 for line in verdict.splitlines())


def test_findings_are_of_the_whole_experiment(shop, place, capsys):
    shop.survey()

    assert main(["report", str(shop.directory), "--by", "finding", "--sort", "calls"]) == 2
    assert "whole experiment" in capsys.readouterr().err


@pytest.mark.long
def test_the_credit_check_of_the_orders_is_found(tmp_path, own_environment):
    directory = "/dev/shm" if os.path.isdir("/dev/shm") else str(tmp_path)  # where commits take no time
    subprocess.run(
        [sys.executable, str(EXAMPLES / "orders.py"), str(EXAMPLES / "orders.txt")],
        cwd=tmp_path,
        env={**own_environment, "INTERPOSE": "1", "TMPDIR": directory},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    (path,) = tmp_path.glob("*.er")

    done = subprocess.run(
        [sys.executable, "-m", "interpose", "report", str(path), "--by", "finding", "--format", "json"],
        cwd=tmp_path,
        env=own_environment,
        capture_output=True,
        text=True,
        check=True,
    )

    told = [each for each in json.loads(done.stdout) if each["finding"] == "N+1 statements"]
    checks = [each for each in told if "WHERE number = ?" in each["about"]]
    assert {each["function"] for each in checks} >= {"Orders.get", "Orders.due"}
    assert all(each["calls"] > 1000 and 0 < each["bound_ns"] <= each["wall_ns"] for each in checks)


def test_what_is_marked_within_a_request_names_it(tmp_path):
    class Marked(Shop):
        def map_xml(self):
            mark = 'name="interpose.transaction"'
            return super().map_xml().replace(mark, f'{mark} transaction="is"')

    shop = Marked(tmp_path / "t.1.er")

    def calls(inside):
        number = shop.call("interpose.transaction", "logic", "checkout", inside=inside, each_ns=0)
        shop.ask(BY_NUMBER, times=20, inside=number)

    shop.request("POST /pay", calls)
    survey = shop.survey()

    assert set(survey.counts) == {Named("checkout")}


class Batch(Shop):
    """A shop in which commits end transactions."""

    def map_xml(self):
        commit = 'name="sqlite3.Connection.commit"'
        return super().map_xml().replace(commit, f'{commit} transaction="ends"')


def test_commits_that_end_transactions_name_the_batch(tmp_path):
    shop = Batch(tmp_path / "t.1.er")
    for _ in range(60):
        shop.ask(BY_NUMBER, times=6)
        shop.call("sqlite3.Connection.commit", "db", line=90)
    survey = shop.survey()

    assert {named.text: count for named, count in survey.counts.items()} == {"line_90": 60}
    assert survey.batches == {"line_90"}
    told = [(each.rule, each.units) for each in found_in(survey)]
    assert told[1:] == [("N+1 statements", 60), ("commits one by one", 1)]


@pytest.mark.parametrize("following", [0, 11, 40])
def test_a_statement_is_counted_by_the_transactions_that_end_where_its_own_does(tmp_path, following):
    shop = Batch(tmp_path / "t.1.er")
    first, second = (shop.stack(shop.site(SHOP, line, "job")) for line in (90, 92))
    shop.ask(BY_NUMBER, times=60)
    shop.call("sqlite3.Connection.commit", "db", stack=first)
    for _ in range(following):
        shop.ask("INSERT INTO orders VALUES (?)", line=91)
        shop.call("sqlite3.Connection.commit", "db", stack=second)

    told = [each for each in found_in(shop.survey()) if each.rule == "N+1 statements"]

    assert [(each.calls, each.units, each.bound_ns) for each in told] == [(60, 1, 59 * MS)]
    assert Sentences(told, "/", SECOND).of(told[0]).startswith(
        "60 SQL queries from home/u/shop/orders.py:88 line_88, 60 per job (60.0 ms of 1.00 s)"
    )


def many(tmp_path, shops, runs):
    """The findings of several runs together: of each what `shops` does in it."""
    parts = []
    for number in range(runs):
        shop = Shop(tmp_path / f"t.{number + 1}.er", wall_ns=200 * MS)
        shops(shop, number)
        parts.append(screen_part(shop.survey().analysis, Question("screen")))
    part = merged_parts(parts)
    kept = unpacked(packed(part, ScreenPart), ScreenPart)
    return [
        (each.rule, each.calls, each.wall_ns)
        for each in found_in_all(kept.findings, kept.times.matters_ns)
        if each.rule not in ("unexplained wait", "wait for CPU")
    ]


def test_what_is_too_small_for_a_finding_in_each_of_many_runs_is_one_in_all(tmp_path):
    found = many(tmp_path, lambda shop, number: shop.call("time.sleep", "sleep", times=30), 4)

    assert found == [("slow calls", 120, 120 * MS)]


def test_what_is_too_rare_for_a_finding_in_some_of_many_runs_counts_in_all(tmp_path):
    found = many(tmp_path, lambda shop, number: shop.ask(BY_NUMBER, times=110 if number == 0 else 20), 4)

    assert found == [("N+1 statements", 170, 170 * MS)]


def test_transactions_of_which_each_must_repeat_a_statement_do_so_by_themselves_in_many_runs(tmp_path):
    def requests(shop, number):
        shop.request("GET /often", lambda inside: shop.ask(BY_NUMBER, times=20, inside=inside))
        for _ in range(20):
            shop.request("GET /once", lambda inside: shop.ask(BY_NUMBER, inside=inside))

    assert ("N+1 statements", 40, 40 * MS) in many(tmp_path, requests, 2)


def test_what_is_too_small_in_all_runs_together_is_no_finding(tmp_path):
    assert many(tmp_path, lambda shop, number: shop.call("time.sleep", "sleep", times=12), 4) == []


@pytest.mark.parametrize(
    ("matters_ns", "told"),
    [
        (100 * MS, "Nothing stands out: no single cause takes 10 % of the time and 50 ms."),
        (900 * MS, "Nothing stands out: no single cause takes 10 % of the time."),
    ],
)
def test_a_verdict_of_nothing_says_what_a_cause_needs_in_a_short_run(matters_ns, told):
    assert list(verdict(Times(matters_ns, 0, matters_ns), [], "/", 120)) == [told]


@pytest.mark.parametrize(
    ("kind", "intrinsic", "wait_ms", "told"),
    [
        ("net", "socket.recv", 500, "No finding explains the largest wait: calls of kind net waited for 500 ms of"),
        ("sync", "threading.Lock.acquire", 500, "Slowest: 1 call of time.sleep"),
        ("net", "select.epoll.poll", 500, "Slowest: 1 call of time.sleep"),
        ("net", "libc.recv", 500, "Slowest: 1 call of time.sleep"),
        ("sleep", "time.sleep", 150, "Slowest: 1 call of time.sleep"),
    ],
)
def test_a_cause_is_not_called_slowest_while_a_longer_wait_has_no_finding(shop, kind, intrinsic, wait_ms, told):
    shop.call("time.sleep", "sleep", each_ns=200 * MS)
    found = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]
    waits_ns = Counter({("sleep", "time.sleep"): 200 * MS})
    waits_ns[kind, intrinsic] += wait_ms * MS

    first, *others = verdict(Times(900 * MS, 0, 900 * MS, waits_ns=waits_ns), found, "/", 120)

    assert first.startswith(told)
    assert any(each.startswith("Largest: 1 call of time.sleep") for each in others) == first.startswith("No finding")


def test_the_wait_of_calls_that_are_in_two_findings_counts_once(shop):
    error = shop.string("OperationalError")
    shop.call("sqlite3.Cursor.execute", "db", "SELECT 1", each_ns=120 * MS, error=error)
    shop.call("sqlite3.Cursor.execute", "db", "SELECT 1", each_ns=130 * MS)
    found = [each for each in found_in(shop.survey()) if each.rule in ("failed calls", "slow statement")]
    waits_ns = Counter({("db", "sqlite3.Cursor.execute"): 550 * MS})

    first, *_ = verdict(Times(900 * MS, 0, 900 * MS, waits_ns=waits_ns), found, "/", 120)

    assert [each.wall_ns for each in found] == [250 * MS, 120 * MS]
    assert first.startswith("No finding explains the largest wait: calls of kind db waited for 550 ms of 900 ms, 300")


def by_threads(shop, *, locked_ms, slept_ms):
    """The first sentence about threads of which one waits for a lock, one for another's end, and one for an event."""
    held = "held by thread 3 at /home/u/shop/stock.py:17 Stock.take"
    shop.call("time.sleep", "sleep", each_ns=450 * MS)
    shop.call("time.sleep", "sleep", each_ns=slept_ms * MS, line=120, thread=3)
    shop.call("threading.Thread.join", "sync", each_ns=500 * MS)
    shop.call("threading.Event.wait", "sync", each_ns=900 * MS, thread=4)
    shop.call("threading.Lock.acquire", "sync", held, each_ns=locked_ms * MS, thread=2)
    survey = shop.survey()
    found = [each for each in found_in(survey) if each.rule == "slow calls" and each.first.site.line == 88]
    return next(iter(verdict(survey.times, found, "/", 300)))


def test_waits_for_locks_are_the_largest_wait_if_no_finding_has_them(shop):
    told = by_threads(shop, locked_ms=700, slept_ms=50)

    assert told.startswith("No finding explains the largest wait: calls of kind sync waited for 2.10 s of ")
    assert told.endswith(", 700 ms of it for locks and in no finding, mostly threading.Lock.acquire.")


def test_waits_for_what_other_threads_do_are_not_named_and_the_sentence_says_so(shop):
    told = by_threads(shop, locked_ms=100, slept_ms=500)

    assert told.startswith("Apart from waits for other threads, processes or users, no finding explains the largest")
    assert ": calls of kind sleep waited for 950 ms of " in told
    assert told.endswith(", 500 ms of it in no finding, mostly time.sleep.")


def test_waits_for_most_of_the_time_stand_out_if_no_cause_is_known():
    waits_ns = Counter({("net", "libc.poll"): 400 * MS, ("net", "libc.recv"): 100 * MS, ("sync", "libc.sem_wait"): 1})

    told = list(verdict(Times(900 * MS, 0, 900 * MS, waits_ns=waits_ns), [], "/", 120))

    assert told == ["No single cause is known: calls of kind net waited for 500 ms of 900 ms, mostly libc.poll."]
