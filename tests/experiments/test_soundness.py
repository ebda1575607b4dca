"""`interpose check`, `check --repair` and `interpose export`: what is sound, whole again, in text."""

import json
import os
import random
import re

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.main import main
from interpose.errors import ExperimentError
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event
from tests.experiments.test_hostile import FILES, small

pytestmark = pytest.mark.usefixtures("place")


def calls(path):
    return sum(row.sums.calls for row in profile(Analysis(Experiment(str(path))), "kind").rows)


def test_a_sound_experiment_is_called_so(tmp_path, capsys):
    small(tmp_path / "test.1.er", whole_files=True).write()

    assert main(["check", "test.1.er"]) == 0

    assert capsys.readouterr().out == "test.1.er: undamaged: 1 process, 3 calls, 0 archived files\n"


def test_of_damages_that_differ_in_numbers_only_a_few_are_shown_and_the_others_counted(tmp_path, capsys):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    build.block([event(number, 1, call=number + 1, detail=901 + number) for number in range(10)])
    build.thread(end_ns=START_NS + 1000, made=10, recorded=10)
    build.ended(1000, 0)
    build.write()

    assert main(["check", "test.1.er"]) == 3

    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.endswith(" is not there")]) == 3
    assert "test.1.er/strings: 7 more of this kind" in lines


def test_each_thing_that_is_not_sound_has_a_line(tmp_path, capsys):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    os.truncate(path / "strings", 100)
    os.truncate(path / "stacks", 5)

    assert main(["check", "test.1.er"]) == 3

    *damages, last = capsys.readouterr().out.splitlines()
    assert "test.1.er/stacks: cut short in its head" in damages
    assert any(line.startswith("test.1.er/strings: ") for line in damages)
    assert last == "test.1.er: damaged; read: 1 process, 3 calls, 0 archived files"


def test_each_experiment_is_called_by_the_path_that_was_given(tmp_path, capsys):
    for directory in "AB":
        small(tmp_path / directory / "n.er", whole_files=True).write()
    os.truncate("B/n.er/stacks", 5)

    assert main(["check", "A/n.er", "B/n.er/"]) == 3

    good, *damages, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("A/n.er: undamaged: ")
    assert "B/n.er/stacks: cut short in its head" in damages
    assert bad.startswith("B/n.er: damaged; read: ")


def test_a_recorded_experiment_is_sound(traced, capsys):
    done = traced("import os\nfor _ in range(3000): os.stat('.')\nif not os.fork(): os.stat('/')\nelse: os.wait()\n")

    main(["report", done.path])
    capsys.readouterr()
    code = main(["check", done.path])

    assert (code, capsys.readouterr().out.count("\n")) == (0, 1)


@pytest.mark.parametrize("cuts", [13, pytest.param(37, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_is_repaired_in_a_copy(tmp_path, name, cuts, capsys):
    """What was read of the damaged one is read of the repaired, and nothing in it is cut short any more."""
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    whole = (path / name).read_bytes()
    end = len(whole.rstrip(b"\0"))

    for size in {*range(0, end, max(end // cuts, 1)), end - 1, end + 1}:
        (path / name).write_bytes(whole[:size])
        try:
            found = calls(path)
        except ExperimentError:
            continue
        main(["check", "--repair", "-o", f"new{size}.er", "test.1.er"])
        repaired = Experiment(f"new{size}.er")
        assert (path / name).read_bytes() == whole[:size]
        assert calls(f"new{size}.er") == found
        profile(Analysis(repaired), "site")
        cut = [str(each) for each in repaired.damages.found if "in block" in each.what or "no element" in each.what]
        assert not cut, size


def test_a_log_that_is_cut_gets_its_end(tmp_path, capsys):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    log = (path / "log.xml").read_text()
    (path / "log.xml").write_text(log[: log.index("<process") + 5])

    main(["check", "test.1.er"])
    before = capsys.readouterr().out
    main(["check", "--repair", "--in-place", "test.1.er"])

    assert "log.xml: line" in before
    assert "log.xml: line" not in capsys.readouterr().out
    assert (path / "log.xml").read_text().endswith("</command>\n</experiment>\n")


def test_blocks_that_are_none_become_room(tmp_path, capsys):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    with open(path / "events", "ab") as file:
        file.write(b"x" * 100_000)

    main(["check", "--repair", "test.1.er"])

    assert calls("test.1.repaired.er") == 3
    assert Experiment("test.1.repaired.er").damages.found == []
    assert main(["check", "test.1.repaired.er"]) == 0


def compressed_whole(path):
    """An experiment whose events are compressed, in four blocks; gives where each begins and the last ends."""
    build = Build(path)
    build.intrinsic("os.write", "file")
    for number in range(4):
        build.block([event(10 * number + each, 5, call=10 * number + each) for each in range(3)])
    build.moved = [0, 1, 2, 3]
    build.thread(recorded=12)
    build.write()
    data = (path / "events.zst").read_bytes()
    return data, [place for place in range(0, len(data), 8) if data[place : place + 4] == b"IZBK"] + [len(data)]


@pytest.mark.parametrize("spoilt", ["head", "frame", "both"])
@pytest.mark.parametrize("block", range(4))
def test_of_compressed_events_the_whole_blocks_are_kept(tmp_path, block, spoilt, capsys):
    path = tmp_path / "test.1.er"
    data, begins = compressed_whole(path)
    made = bytearray(data)
    for into in {"head": [9], "frame": [70], "both": [9, 70]}[spoilt]:
        made[begins[block] + into] ^= 0x55
    (path / "events.zst").write_bytes(made)

    assert main(["check", "--repair", "test.1.er"]) == 3

    repaired = Experiment("test.1.repaired.er").founder
    kept = [begins[number] for number in range(4) if number != block]
    assert (tmp_path / "test.1.repaired.er" / "events.zst").read_bytes() == b"".join(
        data[begin : begins[begins.index(begin) + 1]] for begin in kept
    )
    assert calls("test.1.repaired.er") == 9
    assert repaired.damages.found == []
    assert "3 of 12 recorded calls are not there" in capsys.readouterr().out
    assert (path / "events.zst").read_bytes() == made


@pytest.mark.parametrize("step", [17, pytest.param(5, marks=pytest.mark.slow)])
def test_compressed_events_that_are_cut_anywhere_end_with_a_whole_block(tmp_path, step, capsys):
    path = tmp_path / "test.1.er"
    data, begins = compressed_whole(path)

    for size in range(0, len(data), step):
        (path / "events.zst").write_bytes(data[:size])
        main(["check", "--repair", "--in-place", "test.1.er"])
        whole = [begin for begin in begins if begin <= size + 7]
        assert len((path / "events.zst").read_bytes()) in {0, *whole, size}
        assert calls("test.1.er") in (3 * (len(whole) - 1), 3 * max(len(whole) - 2, 0))
        assert not list(path.glob("events.zst.*"))
    assert "cut short" not in capsys.readouterr().out


def test_sound_compressed_events_are_left_as_they_are(tmp_path):
    path = tmp_path / "test.1.er"
    compressed_whole(path)
    before = (path / "events.zst").stat()

    assert main(["check", "--repair", "--in-place", "test.1.er"]) == 0

    after = (path / "events.zst").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--repair"], 1, "test.1.repaired.er: already exists"),
        (["-o", "x.er"], 2, "-o and --in-place need --repair"),
        (["--repair", "-o", "x"], 2, "-o x: its name must end with .er"),
    ],
)
def test_a_repair_overwrites_nothing(tmp_path, words, code, said, capsys):
    small(tmp_path / "test.1.er").write()
    (tmp_path / "test.1.repaired.er").mkdir()

    assert main(["check", *words, "test.1.er"]) == code
    assert capsys.readouterr().err == f"interpose: {said}\n"


def test_a_repair_does_not_write_through_links(tmp_path):
    path = small(tmp_path / "test.1.er").write()
    (tmp_path / "mine").write_bytes(b"x" * 100)
    (path / "sites").unlink()
    (path / "sites").symlink_to(tmp_path / "mine")

    main(["check", "--repair", "--in-place", "test.1.er"])

    assert (tmp_path / "mine").read_bytes() == b"x" * 100


def test_all_fields_of_all_records_are_exported(tmp_path, capsys):
    small(tmp_path / "test.1.er").write()

    assert main(["export", "test.1.er"]) == 0

    out = capsys.readouterr().out
    titles = re.findall(r"^\[test\.1\.er/(.*)\]$", out, re.M)
    assert titles == ["log.xml", "map.xml", "strings", "sites", "stacks", "threads", "overview", "children", "events"]
    assert "number=1 text=/home/u/shop/app.py" in out
    assert re.search(r"^  start_ns=5000000000010 start_cpu_ns=0 wall_ns=500 cpu_ns=20 .*\bparent=1\b", out, re.M)
    assert re.search(r"^block magic=[0-9]+ state=2 used=3 ", out, re.M)


def test_what_is_exported_cannot_move_the_cursor(tmp_path, capsys):
    build = small(tmp_path / "test.1.er")
    build.string("\x1b[2J")
    build.write()
    (tmp_path / "test.1.er" / "notes").write_bytes(b"\x1b[2J\xff")

    main(["export", "-o", "out.txt", "test.1.er"])

    assert b"\x1b" not in (tmp_path / "out.txt").read_bytes()


@pytest.mark.parametrize("field", ["made", "recorded", "dropped", "passed"])
def test_counts_of_calls_that_cannot_be_right_are_in_no_report(tmp_path, capsys, field):
    build = Build(tmp_path / "t.1.er")
    build.events([event(0, 50, 0, intrinsic=build.intrinsic("time.sleep", "sleep"))])
    counted = {"made": 1, "recorded": 1, field: 4_945_552_089_602_452_026}
    build.thread(main=1, tid=812, end_ns=START_NS + SECOND, end_cpu_ns=50, **counted)
    build.ended(SECOND, 150)
    path = str(build.write())

    assert main(["check", path]) == 3
    checked = capsys.readouterr().out
    main(["report", path])
    reported = capsys.readouterr().out

    assert checked.splitlines()[0] == f"{path}/threads: thread 1: its counts of calls cannot be right"
    assert "incomplete: threads: thread 1: its counts of calls cannot be right" in reported
    assert not re.search(r"\d{1,3}(,\d{3}){4}", checked + reported)


def sampled_and_covered(path):
    build = small(path)
    inner = build.sampled_stack(("app.py", 3, "main"), ("app.py", 9, "work"))
    for number in range(8):
        build.thread_sample(START_NS + number, cpu_ns=number, stack=inner, samples=1, thread=1, state=1)
    build.covered_code("app.py", "main", [(1, 1, 1), (2, 5, 0)], [(1, 2, 0, 1, 0)])
    return build.write()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["samples", "sampled_stacks", "sampled_sites", "places", "branches", "covered"])
def test_random_bytes_in_place_of_records_are_damage(tmp_path, capsys, name, seed):
    path = sampled_and_covered(tmp_path / "test.1.er")
    assert main(["check", "test.1.er"]) == 0, capsys.readouterr().out
    whole = (path / name).read_bytes()
    end = len(whole.rstrip(b"\0"))
    (path / name).write_bytes(whole[:64] + random.Random(seed).randbytes(end - 64) + whole[end:])

    assert main(["check", "test.1.er"]) == 3

    assert "\ntest.1.er: damaged; read: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["samples", "sampled_strings", "sampled_stacks", "sampled_sites"])
def test_a_file_of_samples_that_is_cut_is_repaired(tmp_path, capsys, name):
    path = sampled_and_covered(tmp_path / "test.1.er")
    whole = (path / name).read_bytes().rstrip(b"\0")
    os.truncate(path / name, len(whole) - 1)
    assert main(["check", "test.1.er"]) == 3
    assert f"test.1.er/{name}: cut short " in capsys.readouterr().out

    main(["check", "--repair", "test.1.er"])

    assert f"/{name}: cut short" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"state": 9}, "samples: 1 impossible record, left out"),
        ({"cpu_ns": 2**63}, "samples: 1 impossible record, left out"),
        ({"last_ns": START_NS - 1}, "samples: a sample ends before it begins, left out"),
        ({"stack": 77}, "sampled_stacks: number 77 is not there"),
        ({"task": 77}, "sampled_strings: number 77 is not there"),
        ({"thread": 77}, "samples: thread 77 is not there"),
    ],
)
def test_a_sample_that_cannot_be_is_damage(tmp_path, capsys, values, why):
    build = small(tmp_path / "test.1.er")
    build.thread_sample(START_NS + 1, **{"cpu_ns": 5, "thread": 1, "state": 1, "samples": 1} | values)
    build.write()

    assert main(["check", "test.1.er"]) == 3

    assert f"test.1.er/{why}" in capsys.readouterr().out


@pytest.mark.parametrize("values", [{"state": 9}, {"last_ns": START_NS - 1}])
def test_a_report_warns_of_samples_that_cannot_be(tmp_path, capsys, values):
    build = small(tmp_path / "test.1.er")
    build.thread_sample(START_NS + 1, **{"cpu_ns": 5} | values)
    build.thread_sample(START_NS + 2, cpu_ns=6)
    build.write()

    assert main(["report", "--format", "json", "test.1.er"]) == 3

    found = json.loads(capsys.readouterr().out)
    assert found["complete"] is False
    assert any("samples: " in each and "left out" in each for each in found["warnings"])


def test_samples_are_exported_raw(tmp_path, capsys):
    sampled_and_covered(tmp_path / "test.1.er")

    assert main(["export", "--to", "raw", "test.1.er"]) == 0

    out = capsys.readouterr().out
    titles = re.findall(r"^\[test\.1\.er/(.*)\]$", out, re.M)
    assert {"samples", "sampled_sites", "sampled_stacks", "sampled_strings"} <= set(titles)
    assert len(re.findall(r"^number=\d+ time_ns=\d+ last_ns=", out, re.M)) == 8
