"""Consolidated records that are kept: reports from them are those from the events."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import profile
from interpose.analysis.consolidation import histogram
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.kept_records import Keeper, keep
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.consolidation.sums import FIGURES
from interpose.analysis.recording.soundness import read_all
from interpose.analysis.transactions.response_times import transactions
from interpose.errors import UsageError
from interpose.experiments.format.consolidated import BUCKETS, Consolidated, Found, read, write
from interpose.experiments.format.sequences import Ranges
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages, DataFile
from tests.build import SECOND, START_NS, Build, event

BLOCKS, EVENTS = 4, 60


@pytest.fixture
def built(tmp_path):
    """An experiment of a thread that reads, queries, fetches and shows, in part inside of other calls, in blocks."""
    chance = random.Random(3)
    build = Build(tmp_path / "t.1.er")
    build.log_events.append('<user uid="1" terminal="/dev/pts/1" streams="0 1 2"/>')
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    show = build.intrinsic("os.write", "screen")
    read = build.intrinsic("input", "screen", terminal="1")
    fetch = build.intrinsic("sqlite3.Cursor.fetchall", "db", moves="rows")
    serve = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    stacks = [build.stack(build.site("/home/u/shop/orders.py", line, "ask")) for line in (5, 9)]
    details = [build.string(text) for text in ("SELECT ?", "GET /a", "GET /b")]
    now_ns, call = 0, 1
    for _ in range(BLOCKS):
        events = []
        for _ in range(EVENTS):
            now_ns += chance.randrange(1, 900)
            wall_ns = chance.randrange(10, 5000)
            intrinsic = chance.choice([query, show, read, fetch, serve])
            inner_ns = chance.randrange(1, wall_ns) if intrinsic == serve else 0
            more = {"stack": chance.choice(stacks), "detail": chance.choice(details), "start_cpu_ns": now_ns // 3}
            more["bytes"] = chance.randrange(9)
            if inner_ns:
                events.append(event(now_ns, inner_ns, intrinsic=query, call=call + 1, parent=call, **more))
            events.append(
                event(now_ns, wall_ns, wall_ns // 4, intrinsic=intrinsic, call=call, inner_wall_ns=inner_ns, **more)
            )
            now_ns += wall_ns
            call += 2
        build.block(events)
    build.thread(
        end_ns=START_NS + now_ns + 50,
        end_cpu_ns=now_ns // 2,
        tid=9,
        main=1,
        recorded=sum(len(each) for _, each in build.blocks),
    )
    build.ended(now_ns + 50, now_ns // 2)
    return build.write()


def told(path):
    """What all reports say."""
    experiment = Experiment(str(path))
    rows = {
        by: [(row.kind, row.intrinsic, row.labels, row.sums) for row in profile(Analysis(experiment), by).rows]
        for by in GROUPINGS
    }
    for found in rows.values():
        for *_, sums in found:
            sums.walls = sums.cpus = None
    return rows, [(row.name, row.sums, row.split) for row in transactions(Analysis(experiment)).rows]


def test_reports_from_records_are_those_from_events(built):
    before = told(built)

    keep(Experiment(str(built)).founder, Pauses())
    beside = told(built)
    os.truncate(built / "events", 0)

    assert beside == told(built) == before


def test_a_thread_without_an_end_lived_until_its_last_call_also_if_that_is_in_kept_records(tmp_path):
    build = Build(tmp_path / "t.1.er")
    wait = build.intrinsic("select.poll.poll", "idle")
    serve = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    build.block(
        [
            event(0, 1000, intrinsic=wait, call=1),
            event(1000, 500, intrinsic=serve, call=2),
            event(1500, 4000, intrinsic=wait, call=3),
        ]
    )
    build.thread(tid=9, main=1, recorded=3, seen_ns=START_NS + 2000)
    process = Experiment(str(build.write())).founder
    before = told(process.directory)

    keep(process, Pauses())
    os.truncate(os.path.join(process.directory, "events"), 0)

    assert told(process.directory) == before
    found = {row.name: row for row in transactions(Analysis(Experiment(process.directory))).rows}
    assert (found[".EXIT"].response_ns, found[".EXIT"].overlap_ns) == (4000, 0)


@pytest.mark.parametrize("kept", range(1, BLOCKS))
@pytest.mark.parametrize("consolidator", [None, PlainConsolidator])
def test_what_is_in_progress_where_the_kept_records_end_counts_once_and_under_its_name(built, kept, consolidator):
    before = told(built)
    process = Experiment(str(built)).founder
    for blocks in (range(kept), range(kept, BLOCKS)):
        assert told(built) == before

        keeper = Keeper(process, Pauses(), consolidator=consolidator)
        for number, block in enumerate(process.events.blocks()):
            if number in blocks:
                keeper.add(block.head.sequence, block.events)
        keeper.write(process.directory)

    assert told(built) == before


@pytest.mark.parametrize("consolidator", [None, PlainConsolidator])
def test_tasks_have_no_transactions_after_kept_records_with_requests_either(tmp_path, consolidator):
    build = Build(tmp_path / "t.1.er")
    serve = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    commit = build.intrinsic("sqlite3.Connection.commit", "db", transaction="ends")
    stack = build.stack(build.site("/home/u/shop/orders.py", 5, "pay"))
    for begin in (1000, 5000, 9000):
        build.block(
            [
                event(begin, 100, intrinsic=query, task=2, call=begin),
                event(begin + 200, 100, intrinsic=commit, stack=stack, task=2, call=begin + 1),
                *([event(900, 1000, intrinsic=serve, task=1, call=1)] if begin == 1000 else []),
            ]
        )
    build.thread(end_ns=START_NS + 20_000, end_cpu_ns=100, tid=9, main=1, recorded=7)
    build.ended(20_000, 100)
    path = build.write()
    process = Experiment(str(path)).founder
    for kept in range(3):
        made = transactions(Analysis(Experiment(str(path)), consolidator=consolidator))
        assert {row.name: row.sums.calls for row in made.rows} == {"flask.Flask.wsgi_app": 1, ".OTHER": 1}

        keeper = Keeper(process, Pauses(), consolidator=consolidator)
        block = list(process.events.blocks())[kept]
        keeper.add(block.head.sequence, block.events)
        keeper.write(process.directory)


def test_what_comes_after_what_is_kept_is_added(built, tmp_path):
    process = Experiment(str(built)).founder
    before = told(built)[0]
    keeper = Keeper(process, Pauses())
    for block in list(process.events.blocks())[:2]:
        keeper.add(block.head.sequence, process.events.block(block.place).events)

    keeper.write(str(built))

    assert told(built)[0] == before
    keeper = Keeper(process, Pauses(), consolidator=PlainConsolidator)
    for block in process.events.blocks():
        keeper.add(block.head.sequence, block.events)
        keeper.write(str(built))  # again and again, and goes on
    os.truncate(built / "events", 0)
    assert told(built)[0] == before


def test_the_slowest_calls_are_kept_whole(built):
    process = Experiment(str(built)).founder
    walls = sorted(
        (each.wall_ns for block in process.events.blocks() for each in process.events.events(block)), reverse=True
    )

    keep(process, Pauses(), slowest_at_most=7)

    said, _ = Experiment(str(built)).founder.consolidated
    assert [each["wall_ns"] for each in said.slowest] == walls[:7]


@pytest.mark.parametrize("consolidator", [None, PlainConsolidator])
def test_waits_for_new_work_are_not_among_the_slowest_calls(tmp_path, consolidator):
    build = Build(tmp_path / "t.1.er")
    wait = build.intrinsic("select.select", "net", "idle")
    serve = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    waits = [event(at * 1000, 700 + at, intrinsic=wait + 1, call=2 * at + 1) for at in range(9)]
    served = [event(at * 1000 + 800, 90 + at, intrinsic=serve, call=2 * at + 2) for at in range(9)]
    asked = event(9000, 500, intrinsic=wait, call=20)
    rows = [each for both in zip(waits, served, strict=True) for each in both]
    build.block([*rows, asked])
    build.thread(end_ns=START_NS + 10_000, end_cpu_ns=100, tid=9, main=1, recorded=19)
    build.ended(10_000, 100)
    process = Experiment(str(build.write())).founder
    keeper = Keeper(process, Pauses(), slowest_at_most=4, consolidator=consolidator)
    for block in process.events.blocks():
        keeper.add(block.head.sequence, block.events)

    keeper.write(process.directory)

    said, _ = Experiment(process.directory).founder.consolidated
    assert [each["wall_ns"] for each in said.slowest] == [500, 98, 97, 96]


def test_the_slowest_calls_are_shown_from_the_slowest_on(built, interpose_here):
    nothing = interpose_here("events", str(built), "--slowest")
    interpose_here("consolidate", str(built), "--replace", "--slowest", "5")

    told = json.loads(interpose_here("events", str(built), "--slowest", "--format", "json").stdout)

    assert (nothing.returncode, nothing.stderr.count("\n")) == (2, 1)
    walls = [row["wall_ns"] for row in told]
    assert len(walls) == 5 and walls == sorted(walls, reverse=True)
    assert {row["function"] for row in told} == {"ask"}


def test_percentiles_are_right_to_one_per_cent_however_they_are_merged(built):
    walls = {}
    process = Experiment(str(built)).founder
    for block in process.events.blocks():
        for each in process.events.events(block):
            walls.setdefault(each.intrinsic, []).append(each.wall_ns)
    keep(process, Pauses())
    os.truncate(built / "events", 0)

    records = consolidated(Experiment(str(built)).founder, ("intrinsic",), histograms=True)

    for (intrinsic,), sums in records.sums().items():
        ordered = sorted(walls[intrinsic])
        for percent in (1, 50, 90, 95, 99, 100):
            exact = ordered[max(-(-len(ordered) * percent // 100), 1) - 1]
            assert sums.percentile_ns(percent) == pytest.approx(exact, rel=0.01)
        assert sums.percentile_ns(100) == sums.percentile_ns(99.999) == ordered[-1]


def test_single_events_and_other_fields_are_said_not_to_be_there(built, interpose_here):
    interpose_here("consolidate", str(built), "--replace")

    done = interpose_here("report", str(built), "--by", "kind", "--format", "json")
    events = interpose_here("events", str(built))

    assert json.loads(done.stdout)
    assert (events.returncode, events.stderr.count("\n")) == (0, 1)
    assert "consolidated" in events.stderr


def test_events_that_are_still_there_tell_what_records_do_not(built, interpose_here):
    interpose_here("label", str(built), "-n", "early", "-t", "start=0")
    interpose_here("label", str(built), "-n", "early", "-t", "stop=1s")
    before = interpose_here("report", str(built), "--label", "early", "--format", "json")
    by_bytes = consolidated(Experiment(str(built)).founder, ("thread", "bytes")).sums()

    interpose_here("consolidate", str(built))

    after = interpose_here("report", str(built), "--label", "early", "--format", "json")
    assert (after.returncode, after.stdout) == (before.returncode, before.stdout)
    assert consolidated(Experiment(str(built)).founder, ("thread", "bytes")).sums() == by_bytes
    os.truncate(built / "events", 0)
    with pytest.raises(UsageError, match="bytes"):
        consolidated(Experiment(str(built)).founder, ("thread", "bytes"))


def test_an_experiment_that_is_sound_stays_so(built):
    calls = read_all(Experiment(str(built)))[0]
    keep(Experiment(str(built)).founder, Pauses())
    os.truncate(built / "events", 0)
    experiment = Experiment(str(built))

    assert read_all(experiment)[0] == calls
    assert experiment.damages.found == []


def test_a_running_program_is_not_consolidated_and_said_so(interpose_here, tmp_path, own_environment):
    source = "import os; os.stat('/'); print(flush=True); input()"
    program = subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        env={**own_environment, "INTERPOSE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    program.stdout.readline()

    done = interpose_here("consolidate", str(tmp_path / "test.1.er"))

    program.communicate(b"\n")
    assert done.returncode == 2
    assert "still running" in done.stderr
    assert done.stderr.count("\n") == 1


def records():
    return [
        Found(-1, (1, 2), 0, tuple(range(len(FIGURES))), {3: 4}, {}),
        Found(0, (1, 3), 7, (0,) * len(FIGURES), None, None),
    ]


def test_what_is_written_is_read(tmp_path):
    blocks, opened = Ranges([(1, 5), (9, 9)]), [tuple(range(13))]
    said = Consolidated(("thread", "intrinsic"), FIGURES, blocks, [(1, 10, 5)], opened, [{"wall_ns": 5}])

    write(str(tmp_path), said, records())
    found = read(DataFile(str(tmp_path / "consolidated"), "t.er/consolidated", Damages()))

    assert found is not None
    assert (found[0].by, found[0].figures, found[0].until, found[0].open, found[0].slowest) == (
        said.by,
        said.figures,
        said.until,
        said.open,
        said.slowest,
    )
    assert found[0].blocks.found == said.blocks.found
    assert found[1] == records()
    assert os.stat(tmp_path / "consolidated").st_mode & 0o777 == 0o600


def text_of(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


HEAD = {"consolidated": 1, "by": ["thread"], "figures": ["calls"], "blocks": [], "until": []}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no frame",
        zstandard.compress(b"{}\n"),
        zstandard.compress(b"[" * 100_000 + b"\n"),
        zstandard.compress(text_of({**HEAD, "consolidated": 2})),
        zstandard.compress(text_of({**HEAD, "by": "thread"})),
        zstandard.compress(text_of({**HEAD, "blocks": [[1]]})),
        zstandard.compress(text_of(HEAD, [0, [1], 0, [1], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [-1], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [1.5], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [True], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [10**30], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1, 2], 0, [1], None, None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [1], [1], None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [1], [BUCKETS, 1], None])),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [2**63], None, None])),
        zstandard.compress(text_of(HEAD, *([place - 1, [1], 0, [1], None, None] for place in range(10_002)))),
        zstandard.compress(text_of(HEAD)[:-1] + b" "),
        zstandard.compress(text_of(HEAD, [-1, [1], 0, [1], None, None]))[:-3],
    ],
)
def test_what_is_damaged_is_noted_and_not_read(tmp_path, data):
    damages = Damages()
    (tmp_path / "consolidated").write_bytes(data)

    assert read(DataFile(str(tmp_path / "consolidated"), "t.er/consolidated", damages)) is None
    assert damages.count == 1
    assert "\n" not in str(damages.found[0])


def test_buckets_are_those_of_histograms():
    assert histogram.bucket_of(2**64 - 1) == BUCKETS - 1


def test_records_that_cannot_be_read_are_left_as_they_are(built, interpose_here):
    interpose_here("consolidate", str(built), "--replace")
    kept = (built / "consolidated").read_bytes()
    (built / "consolidated").write_bytes(kept[:-9])

    done = interpose_here("consolidate", str(built))

    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert (built / "consolidated").read_bytes() == kept[:-9]


def test_programs_of_one_name_in_different_places_are_not_merged(built, interpose_here, tmp_path):
    other = tmp_path / "u.1.er"
    shutil.copytree(built, other)
    log = (other / "log.xml").read_text()
    (other / "log.xml").write_text(log.replace('cwd="/home/u/shop"', 'cwd="/home/u/other"'))

    interpose_here("consolidate", str(built), str(other), "-o", str(tmp_path / "m.er"))

    assert len(Experiment(str(tmp_path / "m.er")).processes) == 2


def test_ranges_hold_what_was_put_in():
    chance = random.Random(5)
    numbers = [chance.randrange(60) for _ in range(40)]
    ranges = Ranges()
    for number in numbers:
        ranges.add(number)

    assert [number for number in range(-1, 70) if number in ranges] == sorted(set(numbers))
    assert all(after[0] > before[1] + 1 for before, after in zip(ranges.found, ranges.found[1:], strict=False))


def test_damaged_records_do_not_stop_reports(built):
    keep(Experiment(str(built)).founder, Pauses())
    kept = (built / "consolidated").read_bytes()
    for place in range(0, len(kept), max(len(kept) // 20, 1)):
        (built / "consolidated").write_bytes(kept[:place] + bytes([kept[place] ^ 0x55]) + kept[place + 1 :])
        experiment = Experiment(str(built))
        profile(Analysis(experiment), "site")
        assert transactions(Analysis(experiment)).rows


def test_a_name_of_a_transaction_that_cannot_be_is_shown_as_unknown(built):
    process = Experiment(str(built)).founder
    keep(process, Pauses())
    said, found = Experiment(str(built)).founder.consolidated
    write(str(built), said, [each._replace(name=(1 << 32 | 99) if each.name else 0) for each in found])

    assert transactions(Analysis(Experiment(str(built)))).rows


def test_what_is_merged_says_what_the_experiments_say_together(built, interpose_here, tmp_path):
    paths = [str(built)]
    for number in (2, 3):
        shutil.copytree(built, tmp_path / f"t.{number}.er")
        paths.append(str(tmp_path / f"t.{number}.er"))
    interpose_here("consolidate", paths[1])
    interpose_here("consolidate", paths[2], "--replace")
    merged = str(tmp_path / "merged.er")

    done = interpose_here("consolidate", *paths, "-o", merged)

    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.endswith(" of 3 experiments consolidated; 3 processes combined into 1, one for each program\n")
    for words in (["report", "--by", by] for by in ("kind", "intrinsic", "site", "function", "detail")):
        together = json.loads(interpose_here(*words, "--format", "json", *paths).stdout)
        assert json.loads(interpose_here(*words, "--format", "json", merged).stdout) == together
    together = json.loads(interpose_here("transactions", "--format", "json", *paths).stdout)
    assert json.loads(interpose_here("transactions", "--format", "json", merged).stdout) == together
    checked = interpose_here("check", merged)
    assert (checked.returncode, "1 process" in checked.stdout) == (0, True)
    assert interpose_here("report", merged).stdout.startswith("merged from 3 experiments")
    assert interpose_here("consolidate", *paths, "-o", merged).returncode == 1


def test_what_is_merged_of_a_damaged_experiment_is_not_whole(built, interpose_here, tmp_path):
    os.truncate(built / "events", 100)
    merged = str(tmp_path / "merged.er")

    done = interpose_here("consolidate", str(built), "-o", merged)

    assert done.returncode == 3
    assert json.loads(interpose_here("report", "--format", "json", merged).stdout)["complete"] is False
    assert f"{built}/events: " in interpose_here("check", merged).stdout


def test_what_is_merged_took_as_long_as_the_experiments(interpose_here, tmp_path):
    paths = []
    for number in (1, 2):
        build = Build(tmp_path / f"t.{number}.er")
        build.intrinsic("time.sleep", "sleep")
        for thread in (1, 2, 3):
            build.thread(end_ns=START_NS + SECOND, tid=thread, main=int(thread == 1), made=1, recorded=1)
            build.block([event(0, SECOND, thread=thread)], thread=thread)
        build.ended(number * SECOND, 0)
        paths.append(str(build.write()))

    for merged, given in ((tmp_path / "one.er", paths[1:]), (tmp_path / "two.er", paths)):
        assert interpose_here("consolidate", *given, "-o", str(merged)).returncode == 0
        elapsed_ns = SECOND * (2 if len(given) == 1 else 3)
        assert json.loads(interpose_here("report", "--format", "json", str(merged)).stdout)["elapsed_ns"] == elapsed_ns
        (process,) = json.loads(interpose_here("processes", "--format", "json", str(merged)).stdout)
        assert process["duration_ns"] == elapsed_ns
        listed = json.loads(interpose_here("list", "--format", "json", str(tmp_path)).stdout)
        assert [each["elapsed_ns"] for each in listed if each["name"] == merged.name] == [elapsed_ns]
    again = str(tmp_path / "again.er")
    assert interpose_here("consolidate", str(tmp_path / "two.er"), paths[0], "-o", again).returncode == 0
    assert json.loads(interpose_here("report", "--format", "json", again).stdout)["elapsed_ns"] == 4 * SECOND


def test_merging_says_that_samples_are_left_out_and_the_advice_is_where_they_are(interpose_here, tmp_path):
    paths = []
    for number in (1, 2):
        build = Build(tmp_path / f"t.{number}.er", call_ns=0, inside_ns=0)
        stack = build.sampled_stack(("/home/u/batch.py", 3, "parse"))
        for turn in range(1, 101):
            build.thread_sample(START_NS + turn * SECOND // 100, cpu_ns=turn * 9 * SECOND // 1000, stack=stack)
        build.thread(end_ns=START_NS + SECOND, end_cpu_ns=900 * SECOND // 1000, tid=1, main=1)
        build.ended(SECOND, 900 * SECOND // 1000)
        paths.append(str(build.write()))
    merged = str(tmp_path / "merged.er")

    done = interpose_here("consolidate", *paths, "-o", merged)
    shown = " ".join(interpose_here("report", merged).stdout.split())

    assert done.returncode == 0
    assert "merged.er: has no samples of code, which 2 processes had; interpose report with several" in done.stderr
    assert "computes" in shown and "interpose run" not in shown
    assert "Merging left out the samples: see the functions with interpose report of the experiments" in shown
    assert "parse" in interpose_here("report", *paths).stdout


def test_copies_have_the_records(built, interpose_here, tmp_path):
    interpose_here("consolidate", str(built), "--replace")
    shutil.rmtree(tmp_path / "copy.er", ignore_errors=True)
    interpose_here("cp", str(built), str(tmp_path / "copy.er"))
    packed = interpose_here("archive", str(built), "-o", str(tmp_path / "t.er.tar.zst"))

    assert packed.returncode == 0
    assert Path(tmp_path / "copy.er" / "consolidated").exists()
    for path in (tmp_path / "copy.er", tmp_path / "t.er.tar.zst"):
        assert (
            interpose_here("report", str(path), "--by", "site", "--format", "csv").stdout
            == interpose_here("report", str(built), "--by", "site", "--format", "csv").stdout
        )
