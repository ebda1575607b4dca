"""What was counted beside time, in experiments made for it: by thread, process, function, line; what is unknown."""

import errno
import json

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.selection import Within
from interpose.analysis.profile.counts import counted, not_read
from interpose.analysis.profile.profiled import NOT_SAMPLED, function_of
from interpose.cli.main import main
from interpose.experiments.metadata.labels import Window
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import COUNTED_IN_USER_MODE, NOT_COUNTED, RUNS, WAITS
from interpose.reports.screen.counters import counter_lines
from tests.build import SECOND, START_NS, Build, event

FAULTS, MIGRATIONS, CYCLES = range(3)
IN_CALL = 1
MS = 1_000_000
LOAD, SAVE = "/home/u/shop.py:3", "/home/u/shop.py:9"


def build_in(directory, pid=812):
    """A thread that computes in `load` and writes in `save`, and one that recorded nothing; 2,500 faults in all."""
    names = "faults, migrations,cycles"
    build = Build(directory, pid=pid, cwd="/home/u", arguments=["shop.py"], settings={"INTERPOSE_COUNTERS": names})
    build.thread(tid=7, main=1, end_ns=START_NS + 10 * SECOND, end_cpu_ns=8 * SECOND, recorded=1)
    build.events([event(0, SECOND, call=1, intrinsic=build.intrinsic("io.FileIO.write", "file"))])
    load = build.sampled_stack(("/home/u/shop.py", 3, "load"))
    save = build.sampled_stack(("/home/u/shop.py", 9, "save"))
    for number in range(1, 9):
        place = {"stack": save, "call": 1, "intrinsic": IN_CALL} if number > 6 else {"stack": load}
        build.thread_sample(START_NS + number * SECOND, cpu_ns=number * SECOND, tid=7, **place)
    for sample in range(1, 7):
        build.counted(200, sample=sample, counter=FAULTS, tid=7)
    build.counted(300, sample=7, counter=FAULTS, tid=7)  # half of that second is of each, with 200 and 400 a second
    build.counted(400, sample=8, counter=FAULTS, tid=7)
    build.counted(3, sample=2, counter=MIGRATIONS, tid=7)
    build.counted(50, sample=0, counter=FAULTS, tid=7)  # after the last sample
    build.counted(40, sample=0, counter=FAULTS, tid=8, thread=0)
    build.counted(errno.ENOENT, counter=CYCLES, kind=NOT_COUNTED, tid=7)
    build.sample(time_ns=START_NS, cpu_ns=0, kind=1, minor_faults=1000, major_faults=10)
    build.sample(time_ns=START_NS + 10 * SECOND, cpu_ns=8 * SECOND, kind=3, minor_faults=3500, major_faults=10)
    return build


@pytest.fixture
def shop(tmp_path):
    return build_in(tmp_path / "test.1.er")


def table(capsys, path, by, *options):
    assert main(["report", str(path), "--by", by, "--format", "json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_threads_have_what_was_counted_in_them_and_the_rest_of_the_process_is_a_row(shop, capsys):
    rows = [row for row in table(capsys, shop.write(), "thread") if row["kind"] == "counters"]

    assert {row["thread"]: (row["faults"], row["migrations"]) for row in rows} == {
        "7 main": (1950, 3),
        "8": (40, 0),
        "not sampled": (510, None),
    }


def test_processes_have_the_kernels_figures_and_what_cannot_be_counted_has_no_column(shop, capsys):
    rows = table(capsys, shop.write(), "process")

    assert [(row["faults"], row["migrations"]) for row in rows if row["kind"] == "counters"] == [(2500, 3)]
    assert all("cycles" not in row for row in rows)
    assert {row["faults"] for row in rows if row["kind"] != "counters"} == {None}


@pytest.mark.parametrize(("by", "name"), [("function", "function"), ("line", "site")])
def test_functions_and_lines_have_what_samples_divide_and_it_adds_up(by, name, shop, capsys):
    rows = {row[name]: row for row in table(capsys, shop.write(), by) if row["faults"] is not None}

    load, save = ("load", "save") if by == "function" else (LOAD, SAVE)
    unsampled = rows.pop("not sampled" if by == "function" else "")
    assert {place: row["faults"] for place, row in rows.items()} == {load: 1300, save: 600}
    assert (unsampled["faults"], unsampled["faults_margin"]) == (600, 0)
    assert rows[load]["kind"] == rows[save]["kind"] == "code"
    assert 0 < rows[load]["faults_margin"] < 1850


@pytest.mark.parametrize(("by", "call"), [("kind", ("file", None)), ("intrinsic", ("file", "io.FileIO.write"))])
def test_kinds_and_intrinsics_have_what_was_counted_in_them_and_it_adds_up(by, call, shop, capsys):
    rows = {(row["kind"], row["intrinsic"]): row for row in table(capsys, shop.write(), by)}

    counts = {name: (row["faults"], row["migrations"]) for name, row in rows.items() if row["faults"] is not None}
    assert counts == {call: (600, None), ("code", None): (1300, 3), ("not sampled", None): (600, None)}
    assert sum(faults for faults, _ in counts.values()) == 2500
    assert rows["not sampled", None]["faults_margin"] == 0 < rows["code", None]["faults_margin"] < 1850
    assert rows[call]["calls"] == 1 and rows["code", None]["self_wall_ns"] == pytest.approx(9 * SECOND)


def test_a_call_in_progress_has_its_counts_and_no_call(shop, capsys):
    sleeps = shop.intrinsic("time.sleep", "sleep")
    shop.thread_sample(START_NS + 9 * SECOND, cpu_ns=8 * SECOND, tid=7, call=2, intrinsic=sleeps)
    shop.counted(100, sample=9, counter=FAULTS, tid=7)
    rows = {row["intrinsic"] or row["kind"]: row for row in table(capsys, shop.write(), "intrinsic")}

    assert (rows["time.sleep"]["faults"], rows["time.sleep"]["calls"]) == (100, 0)
    assert rows["not sampled"]["faults"] == 500


def test_calls_of_the_interpreters_start_are_of_the_kind_startup_with_their_counts(shop, capsys):
    start = shop.sampled_stack(("<frozen runpy>", 3, "run"), ("<frozen site>", 9, "main"), ("/lib/x.so", 0, "f"))
    shop.thread_sample(START_NS + 9 * SECOND, cpu_ns=8 * SECOND, tid=7, call=2, intrinsic=IN_CALL, stack=start)
    shop.counted(100, sample=9, counter=FAULTS, tid=7)
    rows = {row["kind"]: row["faults"] for row in table(capsys, shop.write(), "kind")}

    assert (rows["startup"], rows["file"]) == (100, 600)


@pytest.mark.parametrize("by", ["kind", "intrinsic"])
def test_people_see_that_samples_divide_it_among_calls(by, shop, capsys):
    assert main(["report", str(shop.write()), "--by", by]) == 0

    shown = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert shown["file"].split().count("~600") == shown["code"].split().count("~1,300") == 1
    assert shown["not"].split() == ["not", "sampled", "600"]


def test_people_see_that_samples_divide_it(shop, capsys):
    assert main(["report", str(shop.write()), "--by", "function"]) == 0

    shown = capsys.readouterr().out
    rows = {line.split()[1]: line.split()[-1] for line in shown.splitlines() if line.startswith("code")}
    assert "~1,300" in shown and rows["not"] == "600"


def test_rows_that_are_left_out_are_summed(shop, capsys):
    assert main(["report", str(shop.write()), "--by", "function", "--limit", "1"]) == 0

    first, *_, last = capsys.readouterr().out.strip().splitlines()[1:]
    assert first.split()[-2:] == ["~1,300", "~3"]
    assert last.startswith("3 more rows") and last.endswith("~1,200")


def test_the_tree_has_them_below_the_calls_in_which_they_were_counted(shop, capsys):
    assert main(["display", "-metrics", "e.faults:i.faults:name", "-functions", str(shop.write())]) == 0

    rows = {words[2]: words[:2] for line in capsys.readouterr().out.splitlines() if len(words := line.split()) == 3}
    assert rows["load"] == ["1300", "1300"]
    assert rows["save"] == ["0", "600"]
    assert rows["io.FileIO.write"] == ["600", "600"]
    assert rows["<Total>"] == ["2500", "2500"]


def test_a_metric_of_what_was_not_counted_is_refused_with_how_to_count_it(shop, capsys):
    assert main(["display", "-metrics", "e.cycles", "-functions", str(shop.write())]) != 0

    assert "cycles was not counted: request it with interpose run --counters cycles" in capsys.readouterr().err


def test_the_first_screen_and_its_json_say_it_and_what_was_not_counted(shop, capsys):
    path = str(shop.write())
    experiment = Experiment(path)

    assert list(counter_lines(experiment, "/home/u")) == [
        " faults                    2,500  ~52 % shop.py:3 load, 24 % not sampled",
        " migrations                    3",
    ]
    assert list(not_read(experiment)) == ["cycles: not counted: this machine has no such counter"]
    assert main(["report", path, "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["count"], each["not_sampled"]) for each in whole["counters"]] == [
        ("faults", 2500, 510),
        ("migrations", 3, None),
        ("cycles", None, None),
    ]
    assert "cycles: not counted: this machine has no such counter" in whole["warnings"]


def test_what_is_counted_in_user_mode_only_is_said(shop):
    shop.counted(5, sample=1, counter=CYCLES, kind=COUNTED_IN_USER_MODE, tid=7)

    assert "cycles: counted in user mode only (kernel.perf_event_paranoid)" in not_read(Experiment(str(shop.write())))


def test_threads_that_were_not_counted_have_no_zero(shop, capsys):
    shop.counted(errno.EMFILE, counter=MIGRATIONS, kind=NOT_COUNTED, tid=8, thread=0)

    path = shop.write()

    rows = {row["thread"]: row["migrations"] for row in table(capsys, path, "thread") if row["kind"] == "counters"}
    assert rows == {"7 main": 3, "8": None, "not sampled": None}
    said = "migrations: not counted in some threads: too many threads for the monitor's files"
    assert said in not_read(Experiment(str(path)))


def test_kinds_of_several_experiments_have_the_sums(tmp_path, capsys):
    paths = [str(build_in(tmp_path / f"t.{number}.er", pid=number).write()) for number in (1, 2)]

    assert main(["report", *paths, "--by", "kind", "--format", "json"]) == 0
    rows = {row["kind"]: row for row in json.loads(capsys.readouterr().out)}

    faults = {kind: row["faults"] for kind, row in rows.items() if row["faults"]}
    assert faults == {"file": 1200, "code": 2600, "not sampled": 1200}
    assert rows["code"]["self_wall_ns"] == pytest.approx(18 * SECOND)


def test_several_experiments_have_the_sums(tmp_path, capsys):
    paths = [str(build_in(tmp_path / f"t.{number}.er", pid=number).write()) for number in (1, 2)]

    assert main(["report", *paths, "--by", "function", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)

    assert sum(row["faults"] or 0 for row in rows) == 5000
    assert {row["function"]: row["faults"] for row in rows}["load"] == 2600


def test_selected_calls_have_none_for_it_is_not_known_of_calls(shop):
    experiment = Experiment(str(shop.write()))

    assert counted(Analysis(experiment, Within([Window(START_NS, START_NS + SECOND)]))) == []


def test_without_counters_nothing_is_said(tmp_path, capsys):
    build = build_in(tmp_path / "t.1.er")
    build.log["settings"] = {}

    rows = table(capsys, build.write(), "function")

    assert all("faults" not in row for row in rows)


def test_records_that_mean_nothing_are_passed_over(shop):
    for values in ({"counter": 99}, {"kind": 0}, {"counter": MIGRATIONS, "sample": 999}):
        shop.counted(1 << 60, **values)

    faults, migrations, cycles = counted(Analysis(Experiment(str(shop.write()))))

    assert (faults.sampled, migrations.sampled, cycles.sampled) == (1990, 3 + (1 << 60), 0)
    divided = migrations.divided(lambda frames, seen: function_of(frames), function_of((NOT_SAMPLED,)))
    assert divided[function_of((NOT_SAMPLED,))].count == 1 << 60


def test_a_program_without_a_sample_has_no_counters_and_the_report_says_so(tmp_path, capsys):
    build = Build(tmp_path / "t.1.er", settings={"INTERPOSE_COUNTERS": "faults,switches"})
    build.thread(end_ns=START_NS + SECOND)

    assert main(["report", str(build.write())]) == 0

    told = "warning faults, switches: not counted: no sample was taken; the program may have been too short"
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("text", ["nonsense", "", "faults,fualts", "\0"])
def test_settings_that_mean_nothing_request_no_counters(text, tmp_path):
    build = build_in(tmp_path / "t.1.er")
    build.log["settings"] = {"INTERPOSE_COUNTERS": text.replace("\0", "?")}

    assert counted(Analysis(Experiment(str(build.write())))) == []


def by_function(build):
    (found,) = counted(Analysis(Experiment(str(build.write()))))
    return {name: each.count for name, each in found.divided(lambda frames, _: frames[0].function, "").items()}


def test_what_was_counted_as_a_thread_came_to_a_place_is_of_the_place_that_counts(tmp_path):
    """Two functions take turns of four samples; one has 100 faults a sample, and half of them as it begins and ends."""
    build = Build(tmp_path / "t.1.er", settings={"INTERPOSE_COUNTERS": "minor_faults"})
    touch, other = (build.sampled_stack(("shop.py", line, name)) for line, name in ((3, "touch"), (9, "other")))
    for number in range(1, 65):
        turn, place = divmod(number - 1, 4)
        build.thread_sample(START_NS + number * MS, cpu_ns=number * MS, stack=other if turn % 2 else touch)
        faults = 50 if turn and place == 0 else 0 if turn % 2 else 100
        if faults:
            build.counted(faults, sample=number)

    assert by_function(build) == {"touch": 400 + 7 * 350 + 8 * 50}


def test_switches_are_where_the_thread_is_found_waiting_and_faults_where_it_runs_next(tmp_path):
    for name, found in (("switches", {"wait": 90}), ("faults", {"parse": 90})):
        build = Build(tmp_path / f"{name}.1.er", settings={"INTERPOSE_COUNTERS": name})
        wait, parse = (build.sampled_stack(("shop.py", line, name)) for line, name in ((3, "wait"), (9, "parse")))
        sleep = build.intrinsic("time.sleep", "sleep")
        for number in range(1, 31):
            is_waiting = number % 3 > 0
            used_ns = (number // 3 + 1) * MS
            build.thread_sample(START_NS + number * MS, cpu_ns=used_ns, stack=wait if is_waiting else parse,
                                state=WAITS if is_waiting else RUNS, call=number if is_waiting else 0,
                                intrinsic=sleep if is_waiting else 0)  # fmt: skip
            if is_waiting and number % 3 == 1:
                build.counted(9, sample=number)

        assert by_function(build) == found
