"""Sampling by CPU time: which calls are kept, that shares stay right, and that nothing else is told."""

import csv
import json
import subprocess
import sys

import pytest
from tracing import environment

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.config import precedence
from interpose.errors import SettingError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.rows import profile_table

INTERVAL_NS = 100_000
THREE = """
    import sqlite3, os, interpose
    connection = sqlite3.connect(":memory:")
    connection.execute("create table numbers (number)")
    connection.executemany("insert into numbers values (?)", [(number,) for number in range(2000)])
    def much():
        for _ in range(2):
            connection.execute("select sum(number * number + 1) from numbers").fetchone()
    def little():
        for _ in range(40):
            os.stat("/")
    def none():
        for _ in range(20):
            sum(range(60))
    with interpose.transaction("all"):
        for number in range(1500):
            much()
            little()
            none()
    interpose.user_event("done")
"""


def shares(experiment, by="kind"):
    """The percentage of the CPU time of each row."""
    made = profile(Analysis(experiment), by)
    rows = {(row.intrinsic or row.kind, row.labels.get("function", "")): row.sums.self_cpu_ns for row in made.rows}
    return {name: 100 * cpu_ns / made.total.cpu_ns for name, cpu_ns in rows.items()}




@pytest.mark.long
def test_shares_of_cpu_time_stay_right_while_few_calls_are_kept(traced):
    whole = traced(THREE).experiment
    sampled = traced(THREE, INTERPOSE_INTERVAL="100us", INTERPOSE_NAME="sampled").experiment
    wanted, found = shares(whole), shares(sampled)
    ticks = profile(Analysis(sampled), "kind").total.cpu_ns / INTERVAL_NS
    four_deviations = 4 * 50 / ticks**0.5

    assert sum(1 for _ in events_of(sampled)) < sum(1 for _ in events_of(whole)) / 8
    for name in (("db", ""), ("file", "")):
        assert abs(found[name] - wanted[name]) < max(four_deviations, 2) + 3
    assert not sampled.damages.found


def events_of(experiment):
    events = experiment.founder.events
    return (event for block in events.blocks() for event in events.events(block))


@pytest.mark.long
def test_every_sample_is_of_whole_intervals_and_lies_within_the_one_around_it(traced):
    experiment = traced(THREE, INTERPOSE_INTERVAL="100us").experiment
    founder = experiment.founder
    events = list(events_of(experiment))
    by_call = {event.call: event for event in events}
    names = {founder.intrinsic(event.intrinsic).name for event in events}

    assert all(event.cpu_ns % INTERVAL_NS == 0 and event.wall_ns == event.cpu_ns for event in events)
    assert all(event.inner_cpu_ns <= event.cpu_ns for event in events)
    assert {event.parent for event in events} <= {0, *by_call}
    assert {"interpose.transaction", "interpose.user_event"} <= names
    told = [event for event in events if founder.intrinsic(event.intrinsic).name == "interpose.user_event"]
    assert [event.cpu_ns for event in told] == [0]
    assert all(thread.adds_up for thread in founder.threads)


def test_what_is_awaited_is_sampled_by_its_steps(traced):
    done = traced(
        """
        import asyncio, interpose
        async def work():
            with interpose.transaction("one"):
                for _ in range(50):
                    sum(range(20000))
                    await asyncio.sleep(0.0001)
        async def all():
            await asyncio.gather(work(), work())
        asyncio.run(all())
        """,
        INTERPOSE_INTERVAL="50us",
    ).ended_well()
    events = list(events_of(done.experiment))

    assert events
    assert all(event.cpu_ns % 50_000 == 0 and event.inner_cpu_ns <= event.cpu_ns for event in events)
    assert all(event.inner_wall_ns <= event.wall_ns for event in events)
    assert all(thread.adds_up for thread in done.experiment.founder.threads)


@pytest.mark.long
def test_nothing_but_cpu_times_is_told_of_samples(traced, interpose_here):
    done = traced(THREE, INTERPOSE_INTERVAL="100us")
    made = profile(Analysis(Experiment(done.path)), "intrinsic")
    table = profile_table(made, "intrinsic", done.experiment.founder.log)
    values = [table.values(row) for row in table.rows]
    events = json.loads(interpose_here("events", "--format", "json", done.path).stdout)
    screen = interpose_here("report", done.path, variables={"COLUMNS": "100"}).stdout

    assert {name for row in values for name, value in row.items() if value is not None} == {
        "kind",
        "intrinsic",
        "counted",
        "cpu_ns",
        "self_cpu_ns",
    }
    assert {event["wall_ns"] for event in events} == {None}
    assert "sampled  each 100us: shares are of the CPU time, +- " in screen
    assert "to be won" not in screen
    assert "unexplained wait" not in screen
    for command in ("transactions", "profile", "display"):
        refused = interpose_here(command, done.path)
        assert refused.returncode == 2
        assert "calls were sampled (INTERPOSE_INTERVAL=100us)" in refused.stderr


@pytest.mark.parametrize("words", [("-m", "shop"), ("-m", "shop.web"), ("shop",)])
def test_a_module_or_archive_has_one_name_in_the_sheet(words, tmp_path, interpose_here):
    shop = tmp_path / "shop"
    shop.mkdir()
    for name in ("__init__", "__main__", "web"):
        (shop / f"{name}.py").write_text("import os\nfor _ in range(100):\n    os.stat('/')\n" * (name != "__init__"))

    subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    sheet = interpose_here("report", "--format", "mashzone", str(tmp_path / "test.1.er")).stdout

    programs = {(row["program"], row["part"]) for row in csv.DictReader(sheet.splitlines())} - {("overhead", "")}
    name = str(shop / ("web.py" if "shop.web" in words else "__main__.py"))
    assert programs == {(name, ""), (name, "between calls")}


def test_the_sheet_of_samples_has_cpu_times_alone_and_each_program_once(traced, interpose_here):
    done = traced(THREE, INTERPOSE_INTERVAL="100us")

    rows = list(csv.DictReader(interpose_here("report", "--format", "mashzone", done.path).stdout.splitlines()))
    page = interpose_here("report", "--format", "html", done.path)
    assert {row[name] for row in rows for name in ("elapsed_ms", "elapsed_percent", "hits")} == {""}
    assert sum(float(row["cpu_percent"]) for row in rows) == pytest.approx(100, abs=0.01)
    programs = [(row["program"], row["part"]) for row in rows if row["program"].endswith("program.py")]
    assert sorted(programs) == [(str(done.directory / "program.py"), part) for part in ("", "between calls")]
    assert (page.returncode, page.stdout) == (2, "")
    assert "calls were sampled (INTERPOSE_INTERVAL=100us)" in page.stderr


@pytest.mark.parametrize("text", ["0us", "500ns", "often", "-3ms"])
def test_an_interval_that_is_none_is_refused(text):
    with pytest.raises(SettingError, match=f"INTERPOSE_INTERVAL={text}"):
        precedence.resolve({}, {"INTERPOSE_INTERVAL": text}, {})
