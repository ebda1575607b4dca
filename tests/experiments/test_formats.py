"""Experiments of every version of the format are read, with the compiled modules and without."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interpose.analysis.calls.trace import trace
from interpose.cli.experiment_choice import open_experiment
from interpose.cli.main import main
from interpose.experiments.format.covered import Covered
from interpose.experiments.format.traces import read_stretches
from interpose.experiments.metadata.log import READS_UP_TO
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

TOP = Path(__file__).parents[2]
FORMATS = Path(__file__).parent / "formats"
VERSIONS = (1, 3, 4)
FIRST_LINE = 15  # of the program; before it there are its imports

EXECUTE, SLEEP, WRITE = "sqlite3.Cursor.execute", "time.sleep", "os.write"
OF_THE_CHILD = {"io.FileIO": 1, "io.FileIO.tell": 1, WRITE: 1, "io.FileIO.close": 1}
OF_THE_FOUNDER = {
    "sqlite3.connect": 1,
    EXECUTE: 6,
    "sqlite3.Connection.commit": 3,
    "sqlite3.Cursor.fetchall": 1,
    "sqlite3.Connection.close": 1,
    SLEEP: 5,
    "threading.Event.wait": 2,
    "threading.Condition.wait": 2,
    "threading.Lock.acquire": 4,
    "threading.Thread.join": 2,
    "io.FileIO": 2,
    "io.FileIO.tell": 2,
    WRITE: 4,
    "io.FileIO.close": 2,
    "os.fork": 1,
    "os.waitpid": 1,
}
CALLS = {
    1: ({EXECUTE: 6, SLEEP: 5, WRITE: 4}, {WRITE: 1}),
    3: (OF_THE_FOUNDER, OF_THE_CHILD),
    4: ({**OF_THE_FOUNDER, "interpose.transaction": 3}, OF_THE_CHILD),
}
MADE = {1: ([9, 3, 3], [1]), 3: ([187, 6, 6], [4]), 4: ([176, 6, 6], [4])}
# Of the sleeps inside of a query: in version 1 those inside of fetchall, which was not interposed, were in nothing.
NESTED_SLEEPS = {1: 1, 3: 3, 4: 3}

COMMANDS = (
    ("report",),
    ("events",),
    ("profile",),
    ("overview",),
    ("processes",),
)
OF_LINES = (("lines",), ("coverage", "report"))
# An interpreter in which nothing compiled of ours can be imported, and what its readers show.
WITHOUT_EXTENSIONS = """
import importlib.machinery, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name.startswith("interpose.") else None
        if spec and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
            raise ModuleNotFoundError(f"{name} is not compiled here", name=name)

sys.meta_path.insert(0, Refusing())
"""
SHOW = """
import sys
from interpose.cli.main import main
code = main(sys.argv[1:])
import importlib.machinery
for name, module in sorted(sys.modules.items()):
    loader = getattr(module, "__loader__", None)
    if name.startswith("interpose.") and isinstance(loader, importlib.machinery.ExtensionFileLoader):
        sys.stderr.write(f"compiled: {name}\\n")
sys.exit(code)
"""


def path_of(version: int) -> Path:
    return FORMATS / f"version-{version}.er.tar.zst"


@pytest.fixture(params=VERSIONS)
def version(request) -> int:
    return request.param


@pytest.fixture
def experiment(version) -> Experiment:
    return open_experiment(str(path_of(version)))


def is_of_the_program(process: Process, stack: int) -> bool:
    """Whether a call was made from the functions of the program: not by the interpreter as it began, nor by imports."""
    line = process.own_line(stack)
    if line is None or Path(line.file).name != "orders.py":
        return False
    return line.line >= FIRST_LINE and line.function != "<module>"


def rows(experiment):
    return [row for row in trace(experiment) if is_of_the_program(row.process, row.event.stack)]


def name_of(row) -> str:
    return row.process.intrinsic(row.event.intrinsic).name


def test_the_newest_format_is_kept_here():
    fields = (TOP / "cext" / "core" / "fields.h").read_text()

    written = int(re.search(r"#define FORMAT_VERSION (\d+)", fields)[1])
    assert written == max(VERSIONS) == READS_UP_TO


def test_the_experiment_is_of_that_version_and_undamaged(experiment, version):
    assert [process.log.version for process in experiment.processes] == [version, version]
    list(trace(experiment))
    assert not experiment.damages.count


def test_the_calls_of_each_process_are_all_read(experiment, version):
    found = {process.lineage: Counter() for process in experiment.processes}
    for row in rows(experiment):
        found[row.process.lineage][name_of(row)] += 1

    founder, child = CALLS[version]
    assert found == {"": Counter(founder), "_f1": Counter(child)}


def test_the_threads_of_each_process_made_and_recorded_their_calls(experiment, version):
    made = [[thread.record.made for thread in process.threads] for process in experiment.processes]
    recorded = [[thread.record.recorded for thread in process.threads] for process in experiment.processes]

    assert tuple(made) == MADE[version]
    assert recorded == made


def test_details_and_errors_are_those_of_the_statements(experiment):
    found = [
        (row.process.string(row.event.detail), row.process.string(row.event.error) if row.event.error else "")
        for row in rows(experiment)
        if name_of(row) == EXECUTE
    ]

    assert found == [
        ("CREATE TABLE orders (customer TEXT, amount INTEGER)", ""),
        *[("INSERT INTO orders (customer, amount) VALUES (?, ?)", "")] * 3,
        ("SELECT doubled(amount) FROM orders", ""),
        ("SELECT * FROM nowhere", "OperationalError"),
    ]


def test_calls_inside_of_others_stand_inside_of_them(experiment, version):
    sleeps = [row for row in rows(experiment) if name_of(row) == SLEEP]

    assert sum(row.event.parent > 0 for row in sleeps) == NESTED_SLEEPS[version]


def test_times_of_calls_are_possible(experiment):
    assert all(0 <= row.event.cpu_ns <= row.event.wall_ns for row in trace(experiment))
    in_threads = [row.event.wall_ns for row in rows(experiment) if name_of(row) == SLEEP and not row.event.parent]
    assert all(wall_ns >= 1_000_000 for wall_ns in in_threads[-2:])  # each thread slept for 1 ms


def test_bytes_written_are_those_of_the_program(experiment):
    assert [row.event.bytes for row in rows(experiment) if name_of(row) == WRITE] == [4, 4, 4, 4, 6]


def test_lines_of_version_4_were_executed_as_often_as_the_program_says():
    experiment = open_experiment(str(path_of(4)))
    source = (FORMATS / "orders.py").read_text().splitlines()

    executed = Counter()
    for stretch in read_stretches(experiment.founder):
        for function in stretch.functions:
            for line in function.lines:
                executed[line.line] += line.executed

    assert executed[source.index("        total += 2") + 1] == 3 + 5 + 8
    assert executed[source.index("    base.commit()") + 1] == 3


def test_coverage_of_version_4_has_what_ran_and_what_did_not():
    experiment = open_experiment(str(path_of(4)))
    source = (FORMATS / "orders.py").read_text().splitlines()

    executed = {}
    for code, point, was_executed in Covered(experiment.founder).places():
        if code.file.endswith("orders.py"):
            executed[point.line] = executed.get(point.line, False) or was_executed

    assert executed[source.index("    os.waitpid(child, 0)") + 1]
    assert not executed[source.index("        os._exit(0)") + 1]  # the child's alone


def commands_of(version: int) -> tuple[tuple[str, ...], ...]:
    return (*COMMANDS, *OF_LINES) if version == 4 else COMMANDS


@pytest.mark.parametrize(("version", "words"), [(v, words) for v in VERSIONS for words in commands_of(v)])
def test_a_command_shows_it(version, words, place, capsys):
    assert main([*words, str(path_of(version))]) == 0

    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) > 2
    assert "Traceback" not in shown.err


def test_the_report_names_what_was_called(version, place, capsys):
    assert main(["report", str(path_of(version))]) == 0

    assert EXECUTE in capsys.readouterr().out


def test_events_gives_a_row_for_each_call(experiment, version, place, capsys):
    assert main(["events", "--format", "json", str(path_of(version))]) == 0

    shown = json.loads(capsys.readouterr().out)
    assert len(shown) == len(list(trace(experiment))) == sum(sum(made) for made in MADE[version])


def test_check_finds_it_sound(version, place, capsys):
    path = path_of(version)

    assert main(["check", str(path)]) == 0
    calls = sum(sum(made) for made in MADE[version])
    assert f"undamaged: 2 processes, {calls} calls" in capsys.readouterr().out


def test_nothing_in_them_is_of_the_machine_that_recorded(version, experiment):
    for process in experiment.processes:
        names = [text for _, text in process.strings()]
        assert not [text for text in names if text.startswith(("/root", "/home"))]
        log = Path(process.directory, "log.xml").read_text()
        assert 'host="h"' in log
        assert "/root" not in log


def shown(source: str, words: tuple[str, ...], path: Path, environment, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", source, *words, "--format", "json", str(path)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("words", [("report",), ("events",), ("lines",)], ids=" ".join)
def test_the_plain_readers_show_the_same_as_the_compiled_ones(words, own_environment, tmp_path):
    plain = shown(WITHOUT_EXTENSIONS + SHOW, words, path_of(4), own_environment, tmp_path)
    compiled = shown(SHOW, words, path_of(4), own_environment, tmp_path)

    assert "compiled:" not in plain.stderr
    assert "compiled: interpose.experiments.format.compiled_columns" in compiled.stderr or words == ("lines",)
    assert (plain.returncode, compiled.returncode) == (0, 0), plain.stderr
    assert json.loads(plain.stdout) == json.loads(compiled.stdout)
