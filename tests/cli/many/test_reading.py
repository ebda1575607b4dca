"""Many experiments in one report: the same whoever reads them, and what cannot be read is left out."""

import os
import shutil
import subprocess
import sys

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.many import processes, reading
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment

# A reader that the kernel kills when it is to read the third experiment.
KILLED = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
from interpose.cli.many import reader
read = reader.answered
reader.answered = lambda task: os.kill(os.getpid(), 9) if b"shop.3.er" in task else read(task)
reader.main()
"""


def at_once(experiments, by):
    rows = profile(Analysis(Collection([Experiment(str(path)) for path in experiments])), by).rows
    return [(row.kind, row.intrinsic, row.sums.calls, row.sums.self_wall_ns, row.sums.self_cpu_ns) for row in rows]


def told(rows):
    return [(row["kind"], row["intrinsic"], row["calls"], row["self_wall_ns"], row["self_cpu_ns"]) for row in rows]


@pytest.mark.parametrize("by", ["kind", "intrinsic", "site", "process", "experiment"])
def test_a_report_of_many_has_the_rows_of_reading_all_at_once(experiments, interpose, by):
    rows, done = interpose("report", "runs/*.er", "--by", by)

    assert done.returncode == 0, done.stderr
    assert sorted(map(str, told(rows))) == sorted(map(str, at_once(experiments, by)))


@pytest.mark.long
@pytest.mark.parametrize("command", ["report --by site", "transactions", "profile --section wait", "trend"])
def test_the_result_does_not_depend_on_how_many_processes_read(experiments, interpose, command):
    results = [interpose(*command.split(), "runs/*.er", "--no-cache", "--jobs", jobs)[1] for jobs in ("1", "2", "4")]

    assert len({done.stdout for done in results}) == 1
    assert {done.returncode for done in results} == {0}


def test_a_profile_of_many_has_all_their_calls_in_each_section(experiments, place, interpose, interpose_here):
    (place / "all.erg").write_text("".join(f"{line}\n" for line in ("#interpose experiment group", *experiments)))
    calls = 40 * len(experiments)

    session, _ = interpose("profile", "runs/all.erg", "--section", "session")
    resources, done = interpose("profile", "runs/*.er", "--section", "resource")
    slices, _ = interpose("profile", "runs/*.er", "runs/all.erg", "--section", "activity", "--slices", "5")
    whole = interpose_here("profile", "runs/*.er", cwd=place.parent)

    assert (done.returncode, done.stderr, whole.returncode) == (0, "", 0)
    figures = {row["figure"]: row for row in session}
    assert figures["experiment"]["shown"] == f"shop.1.er and {len(experiments) - 1} more"
    assert (figures["calls recorded"]["value"], figures["processes"]["value"]) == (calls, len(experiments))
    assert sum(row["calls"] for row in resources) == sum(row["calls"] for row in slices) == calls
    assert sum(row["total_ns"] for row in resources) == figures["run time (of all threads)"]["value"]
    assert [row["elapsed_ns"] for row in slices] == [10_000] * 5
    assert "each slice is the same part of 9 experiments" in whole.stdout


def test_groups_patterns_and_names_together_have_each_experiment_once(experiments, place, interpose):
    (place / "some.erg").write_text("#interpose experiment group\nshop.1.er\nshop.2.er\n")

    rows, _ = interpose("report", "runs/some.erg", "runs/shop.[23].er", "runs/shop.3.er", "--by", "experiment")

    assert {row["experiment"] for row in rows if row["experiment"]} == {f"shop.{n}.er" for n in (1, 2, 3)}


@pytest.mark.parametrize(("more_bytes", "code"), [(0, 0), (9 << 20, 3)], ids=["little", "much"])
def test_processes_are_started_where_there_is_much_to_read(experiments, interpose, monkeypatch, more_bytes, code):
    monkeypatch.setattr(processes, "_START", KILLED)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    os.truncate(experiments[0] / "events", (experiments[0] / "events").stat().st_size + more_bytes)

    _, done = interpose("report", "runs/*.er", "--by", "experiment")

    assert (done.returncode, "was killed" in done.stderr) == (code, code == 3)


def test_an_experiment_whose_reader_is_killed_is_left_out_with_a_line(experiments, interpose, monkeypatch):
    monkeypatch.setattr(processes, "_START", KILLED)

    rows, done = interpose("report", "runs/*.er", "--by", "experiment", "--jobs", "2")

    assert done.returncode == 3
    assert done.stderr == "interpose: shop.3.er: the process that read it was killed by SIGKILL\n"
    assert {row["experiment"] for row in rows} == {path.name for path in experiments if path.name != "shop.3.er"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_damaged_experiments_are_left_out_with_a_line_and_the_others_reported(experiments, interpose, jobs):
    (experiments[1] / "log.xml").write_text("<nothing/>")
    shutil.rmtree(experiments[4])
    experiments[4].mkdir()

    rows, done = interpose("report", "runs/*.er", "--by", "experiment", "--jobs", jobs)

    assert done.returncode == 3
    assert done.stderr == "interpose: shop.2.er/log.xml: not the log of an experiment (and 1 more)\n"
    assert len({row["experiment"] for row in rows}) == len(experiments) - 2


def test_damage_within_an_experiment_is_reported_and_its_sound_part_counts(experiments, interpose):
    os.truncate(experiments[0] / "events", 0)

    rows, done = interpose("report", "runs/*.er", "--by", "kind")

    assert done.returncode == 3
    assert "shop.1.er" in done.stderr
    assert sum(row["self_wall_ns"] for row in rows) == 50_000 * len(experiments)


def test_nothing_that_can_be_read_is_an_error(experiments, place, interpose):
    for path in experiments:
        (path / "log.xml").unlink()

    _, done = interpose("report", "runs/*.er", "--by", "kind")

    assert done.returncode == 1
    assert done.stderr == "interpose: shop.1.er: not an experiment: log.xml is missing\n"


@pytest.mark.long
def test_comparisons_take_any_number_of_runs_on_both_sides(experiments, interpose):
    rows, done = interpose("compare", "runs/shop.[1-4].er", "--with", "runs/shop.[5-9].er", "--jobs", "2")

    assert done.returncode == 0
    assert any(row["intrinsic"] == "os.write" for row in rows)


@pytest.mark.long
def test_readers_are_other_interpreters_that_do_not_run_the_callers_main_module(
    experiments, place, tmp_path, own_environment
):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "print('main runs')\n"
        "sys.stdout.flush()\n"
        "from interpose.cli.main import main\n"
        f"raise SystemExit(main(['report', {str(place)!r} + '/*.er', '--by', 'kind', '--jobs', '2', '--no-cache']))\n"
    )

    done = subprocess.run([sys.executable, program], env=own_environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("main runs") == 1
    assert " db " in done.stdout or "\ndb " in done.stdout


def test_no_reader_is_left_when_the_report_ends_early(experiments, monkeypatch):
    started = []

    class Noted(processes._Reader):
        def __init__(self):
            super().__init__()
            started.append(self.process)

    monkeypatch.setattr(processes, "_Reader", Noted)
    tasks = [(path.name, reading.work.task(str(path), reading.Question("rows", "kind"), None)) for path in experiments]
    answers = processes.answers(tasks, 2)
    next(answers)
    answers.close()

    assert len(started) == 2
    assert all(process.returncode is not None for process in started)
