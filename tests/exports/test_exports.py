"""What is exported has the calls, times and names of the report, in files that are well-formed and escaped."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise

import pytest
from tracing import environment

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.exports.protobuf import double, message, number, numbers, text, varint
from tests.build import Build, event
from tests.schedules import MS

NASTY = 'x;y\n"</script>\x1b[2J\\'
PROGRAM = """
import asyncio, os, sqlite3, subprocess, sys, threading

def load(connection, number):
    return connection.execute("select ?", (number,)).fetchall()

def work():
    connection = sqlite3.connect(":memory:")
    for number in range(50):
        load(connection, number)
    connection.close()

async def one(number):
    await asyncio.sleep(0.001 * number)
    os.stat(".")

async def several():
    await asyncio.gather(*(one(number) for number in range(4)))

thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
asyncio.run(several())
subprocess.run([sys.executable, "-c", "import os; os.stat('/')"], check=True)
try:
    os.stat("/not/there")
except OSError:
    pass
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The path of an experiment of two processes, two threads and four tasks."""
    directory = tmp_path_factory.mktemp("recorded")
    (directory / "app.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "app.py"], cwd=directory, env=environment(INTERPOSE="1"), check=True)
    return str(directory / "test.1.er")


def exported(path, to, tmp_path):
    """The file, or directory, that the command writes."""
    out = tmp_path / "out"
    assert main(["export", path, "--to", to, "-o", str(out)]) == 0
    return out


def total(path):
    return profile(Analysis(Experiment(path)), "kind").total


def events(path):
    found = Experiment(path)
    return [each for process in found.processes if process.events for block in process.events.blocks()
            for each in process.events.events(block)]  # fmt: skip


def hostile(directory):
    """An experiment whose names are meant to be taken for something else."""
    build = Build(directory / "t.1.er")
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    stack = build.stack(build.site(NASTY, 3, NASTY))
    detail = build.string(NASTY)
    build.events([event(MS, 5 * MS, MS, intrinsic=query, stack=stack, detail=detail, error=detail)])
    build.thread(end_ns=0, tid=1, main=1, recorded=1, made=1)
    build.ended(20 * MS, 2 * MS)
    return str(build.write())


# --- stacks


@pytest.mark.parametrize(("to", "metric"), [("folded", "wall_ns"), ("folded-cpu", "cpu_ns")])
def test_folded_stacks_add_up_to_the_time_of_the_report(recorded, tmp_path, to, metric):
    lines = exported(recorded, to, tmp_path).read_text().splitlines()

    assert sum(int(line.rpartition(" ")[2]) for line in lines) == getattr(total(recorded), metric)
    assert any(";load;sqlite3.Connection.execute " in line for line in lines)


@pytest.mark.long
def test_each_profile_of_speedscope_adds_up_and_names_its_frames(recorded, tmp_path):
    made = json.loads(exported(recorded, "speedscope", tmp_path).read_text())

    frames = made["shared"]["frames"]
    by_name = {each["name"]: each for each in made["profiles"]}
    assert by_name["wall"]["endValue"] == sum(by_name["wall"]["weights"]) == total(recorded).wall_ns
    assert sum(by_name["cpu"]["weights"]) == total(recorded).cpu_ns
    assert sum(by_name["calls"]["weights"]) == len(events(recorded))
    for each in made["profiles"]:
        assert len(each["samples"]) == len(each["weights"]) > 0
        assert all(0 <= place < len(frames) for stack in each["samples"] for place in stack)


def test_lines_of_callgrind_add_up_to_its_summary(recorded, tmp_path):
    lines = exported(recorded, "callgrind", tmp_path).read_text().splitlines()

    own = [0] * 5
    for before, line in pairwise(lines):
        if re.fullmatch(r"\d+( \d+){5}", line) and not before.startswith("calls="):
            own = [sum(pair) for pair in zip(own, map(int, line.split()[1:]), strict=True)]
    (summary,) = [line for line in lines if line.startswith("summary: ")]
    assert own == [int(each) for each in summary.split()[1:]]
    assert own[0] == total(recorded).wall_ns
    assert own[3] == len(events(recorded))


@pytest.mark.skipif(not shutil.which("callgrind_annotate"), reason="callgrind_annotate (valgrind) is not installed")
def test_callgrind_annotate_reads_it_and_finds_the_same_total(recorded, tmp_path):
    path = exported(recorded, "callgrind", tmp_path)

    words = ["callgrind_annotate", "--threshold=100", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    (totals,) = [line for line in done.stdout.splitlines() if line.endswith("PROGRAM TOTALS")]
    assert int(totals.split()[0].replace(",", "")) == total(recorded).wall_ns
    assert "sqlite3.Connection.execute" in done.stdout


# --- calls along time


def test_chrome_has_each_call_once_with_its_times_to_the_nanosecond(recorded, tmp_path):
    made = json.loads(exported(recorded, "chrome", tmp_path).read_text())["traceEvents"]

    calls = [each for each in made if each["ph"] == "X" and "cat" in each]  # not those of processes
    found = events(recorded)
    assert len(calls) == len(found)
    assert sum(round(each["dur"] * 1000) for each in calls) == sum(each.wall_ns for each in found)
    assert sum(each["args"].get("cpu_ns", 0) for each in calls) == sum(each.cpu_ns for each in found)
    lanes = {each["tid"]: each["args"]["name"] for each in made if each["name"] == "thread_name"}
    assert {each["tid"] for each in calls} <= set(lanes)
    assert sum("task" in name for name in lanes.values()) >= 4
    assert any(each["args"].get("error") == "FileNotFoundError errno 2" for each in calls)


def test_calls_in_a_lane_of_chrome_lie_within_each_other_or_apart(recorded, tmp_path):
    made = json.loads(exported(recorded, "chrome", tmp_path).read_text())["traceEvents"]

    lanes = defaultdict(list)
    for each in made:
        if each["ph"] == "X":
            begin = round(each["ts"] * 1000)
            lanes[each["pid"], each["tid"]].append((begin, -(begin + round(each["dur"] * 1000))))
    for spans in lanes.values():
        around = []
        for begin, minus_end in sorted(spans):
            while around and around[-1] <= begin:
                around.pop()
            assert not around or -minus_end <= around[-1]
            around.append(-minus_end)


@pytest.mark.parametrize("to", ["speedscope", "chrome", "folded", "callgrind", "firefox", "raw"])
def test_names_are_data_in_every_text_format(tmp_path, to):
    made = exported(hostile(tmp_path), to, tmp_path).read_bytes()

    assert b"\x1b" not in made
    if to in ("speedscope", "chrome"):
        assert NASTY in json.dumps(json.loads(made)) or json.dumps(NASTY)[1:-1] in made.decode()
    else:
        assert b"x;y\n" not in made


def test_calls_in_progress_are_begun_and_not_ended(tmp_path):
    build = Build(tmp_path / "t.1.er")
    call = {"start_ns": 7, "call": 1, "intrinsic": build.intrinsic("os.read", "file")}
    build.thread(open_calls=[call], tid=1, made=1)
    path = str(build.write())

    made = json.loads(exported(path, "chrome", tmp_path).read_text())

    assert [(each["ph"], each["name"]) for each in made["traceEvents"] if each["ph"] != "M"] == [("B", "os.read")]


# --- the command


def test_where_single_calls_were_not_kept_it_is_said(traced, capsys):
    path = traced("import os\nos.stat('.')", INTERPOSE_CONSOLIDATE="1").path

    assert main(["export", path, "--to", "perfetto", "-o", "out"]) == 2
    assert "single calls were not kept (record without INTERPOSE_CONSOLIDATE)" in capsys.readouterr().err


def test_an_incomplete_experiment_is_exported_and_said_to_be_so(recorded, tmp_path, capsys):
    damaged = tmp_path / "test.1.er"
    shutil.copytree(recorded, damaged)
    with open(damaged / "events", "r+b") as file:
        file.truncate(70_000)

    assert main(["export", str(damaged), "--to", "callgrind", "-o", str(tmp_path / "out")]) == 3
    assert "cut short" in capsys.readouterr().err
    assert "desc: Note: incomplete" in (tmp_path / "out").read_text()


# --- Protocol Buffers: examples of protobuf.dev, "Encoding"


def test_fields_are_encoded_as_its_documentation_has_them():
    assert number(1, 150) == bytes.fromhex("089601")
    assert text(2, "testing") == bytes.fromhex("120774657374696e67")
    assert message(3, number(1, 150)) == bytes.fromhex("1a03089601")
    assert numbers(6, (3, 270, 86942)) == bytes.fromhex("3206038e029ea705")
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert double(1, 1.0) == bytes.fromhex("09000000000000f03f")


@pytest.mark.long
def test_what_is_compressed_is_the_same_each_time(recorded, tmp_path):
    one, other = (exported(recorded, "pprof", tmp_path).read_bytes() for _ in range(2))

    assert one == other
    assert gzip.decompress(one)
