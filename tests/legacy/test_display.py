"""`interpose display statistics`: the figures of the recording itself."""

import json

import pytest

from interpose.analysis.recording.statistics import statistics
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.units import size
from tests.build import Build, event, size_of
from tests.tracing import until

MANY = """
import os
null = os.open(os.devnull, os.O_WRONLY)
for _ in range(40_000):
    os.write(null, b"x")
"""


def figures(experiment):
    return {each.name: each.value for each in statistics(experiment)}


def test_what_was_made_is_recorded_or_dropped(traced, interpose_here):
    done = traced(MANY, INTERPOSE_POOL="1MiB")

    def shown_and_counted():
        """The figures shown; None while they differ from those counted, as a late monitor may still empty the pool."""
        shown = interpose_here("display", "statistics", done.path, "--format", "json")
        found = {each["name"]: each["value"] for each in json.loads(shown.stdout)}
        is_emptied = found["in use"] == 0
        is_left = found["in use"] == 1 << 20 and found["on disk, compressed"] is None
        return found if (is_emptied or is_left) and found == figures(done.experiment) else None

    found = until(shown_and_counted)

    assert found["events made"] == found["events recorded"] + found["events dropped"] > 40_000
    assert found["events dropped because full"] == found["events dropped"] > 20_000
    assert found["pool size"] == found["largest in use"] == 1 << 20
    assert found["records"] == 88 * found["events recorded"]
    if found["in use"]:
        assert found["blocks"] == 17  # and the one that was being written
    assert found["paused now"] is None


def test_what_the_page_says_is_shown_to_people(interpose_here, tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(made=5, recorded=2, dropped=3, passed=7)
    build.events([event(10, 5), event(20, 5)])
    build.ended(100, 50)
    path = build.write()
    control = Control(Experiment(str(path)).founder)
    control.write(pool_bytes=2 << 30, taken_bytes=3 << 20, drained_bytes=1 << 20, most_bytes=5 << 19)
    control.write(full_waits=4, full_wait_ns=2_500_000_000, emptied_after_full=1, triggers=2)

    shown = interpose_here("display", "statistics", str(path)).stdout

    lines = {line.split("  ")[1].strip() if "  " in line else line: line for line in map(compact, shown.splitlines())}
    assert lines["events dropped"].endswith("  3")
    assert lines["uncontended calls"].endswith("  7")
    assert lines["fetches combined"].endswith("  0")
    assert lines["pool size"].endswith("  2.00 GiB")
    assert lines["in use"].endswith("  2.00 MiB")
    assert lines["largest in use"].endswith("  2.50 MiB")
    assert lines["time waited because full"].endswith("  2.50 s")
    assert lines["data pool empty after full"].endswith("  1")
    assert lines["limit"].endswith("  -")
    assert lines["triggers fired"].endswith("  2")


def compact(line):
    """The cells of a line of text, with two blanks between them."""
    return "  ".join(cell.strip() for cell in line.split("  ") if cell.strip())


def test_what_is_compressed_is_told_beside_the_raw_size(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(made=100_000, recorded=100_000)
    path = build.write()
    (path / "events.zst").write_bytes(bytes(range(256)) * 1024)

    found = figures(Experiment(str(path)))

    assert found["records"] == 8_800_000
    assert found["on disk, compressed"] >= 256 * 1024
    assert 2 <= found["on disk of the records"] <= 4


def test_an_experiment_without_a_page_tells_the_rest(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(made=1, recorded=1)
    path = build.write()
    log = path / "log.xml"
    log.write_text(log.read_text().replace("<control ", "<other ").replace("</control>", "</other>"))

    found = figures(Experiment(str(path)))

    assert found["events made"] == 1
    assert "pool size" not in found


def test_a_page_cut_short_is_left_out(tmp_path):
    path = Build(tmp_path / "t.1.er").write()
    experiment = Experiment(str(path))
    (path / "threads").write_bytes((path / "threads").read_bytes()[: size_of("HEAD") + 8])

    assert "pool size" not in figures(experiment)


def test_a_subject_takes_its_own_options_whatever_they_say(interpose_here, tmp_path):
    path = str(Build(tmp_path / "t.1.er").write())

    done = interpose_here("display", "statistics", path, "--format", "json", "-o", "out", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "out").read_text())
    assert "Functions" in interpose_here("display", "statistics", path, "-functions").stdout


def test_without_words_it_is_the_newest_experiment_and_what_one_types(interpose_here):
    done = interpose_here("display", input="")

    assert done.returncode == 1
    assert "no experiment in " in done.stderr


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1 << 31, "2.00 GiB"), (1 << 50, "1,024 TiB")],
)
def test_sizes_have_three_figures(size_bytes, shown):
    assert size(size_bytes) == shown
