"""Numbered records: every number gives what was written under it, whatever windows lie between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import DataFile
from tests.build import BLOCK_BYTES, Build


def opened(build):
    return Experiment(str(build.write()))


def founder(build):
    return opened(build).founder


@given(texts=st.lists(st.binary(max_size=40).filter(bool), unique=True, max_size=30))
def test_strings_come_back_by_their_numbers(tmp_path_factory, texts):
    build = Build(tmp_path_factory.mktemp("strings") / "t.1.er")
    numbers = [build.string(text) for text in texts]

    process = founder(build)

    assert [process.string(number) for number in numbers] == [
        text.decode("utf-8", "replace") for text in texts
    ]
    assert process.string(0) == ""


def test_strings_go_on_in_the_next_window(tmp_path):
    build = Build(tmp_path / "t.1.er")
    numbers = [build.string(f"{number} " + "x" * 9_000) for number in range(30)]

    process = founder(build)

    assert len(build.strings_file("strings", build.strings)) > 3 * BLOCK_BYTES
    assert [process.string(number).split()[0] for number in numbers] == [str(number) for number in range(30)]
    assert process.damages.found == []


def test_a_string_written_after_the_file_was_opened_is_found(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.string("early")
    process = founder(build)
    process.string(1)
    late = build.string("late")
    build.write()

    assert process.string(late) == "late"


def test_what_lies_close_together_is_read_at_once_in_any_order(tmp_path, monkeypatch):
    build = Build(tmp_path / "t.1.er")
    file = "/home/u/shop/orders.py"
    stacks = [build.stack(build.site(file, number, f"function {number}")) for number in range(1, 101)]
    process = founder(build)
    names = ("strings", "sites", "stacks")
    process.own_line(stacks[50])
    read = []
    plain = DataFile.read
    monkeypatch.setattr(DataFile, "read", lambda self, *place: read.append(self.path) or plain(self, *place))

    lines = [process.own_line(stack).line for stack in reversed(stacks)]

    assert lines == list(range(100, 0, -1))
    assert [sum(path.endswith(f"/{name}") for path in read) <= 1 for name in names] == [True] * 3


@pytest.mark.parametrize("length", [16 * 1024 + 1, 2**31, 0xFFFFFFFE])
def test_a_hostile_length_ends_the_strings(tmp_path, length):
    build = Build(tmp_path / "t.1.er")
    for text in ("one", "two", "three"):
        build.string(text)
    path = build.write() / "strings"
    data = bytearray(path.read_bytes())
    data[72:76] = length.to_bytes(4, "little")
    path.write_bytes(data)

    process = Experiment(str(tmp_path / "t.1.er")).founder

    assert [process.string(number) for number in (1, 2, 3)] == ["one", "?", "?"]
    assert f"t.1.er/strings: string 2 is {length} bytes long" in map(str, process.damages.found)


def test_more_sites_than_a_window_holds_come_back(tmp_path):
    build = Build(tmp_path / "t.1.er")
    numbers = [build.site("app.py", line, "f") for line in range(1, 5001)]

    process = founder(build)

    assert [process.site(number).line for number in numbers] == list(range(1, 5001))
    assert process.damages.found == []


def test_threads_lie_in_many_windows_with_a_hole_between(tmp_path):
    build = Build(tmp_path / "t.1.er", whole_files=False)
    for number in range(40):
        build.thread(tid=number + 1)
    path = build.write() / "threads"
    with open(path, "r+b") as file:
        file.truncate(64 * BLOCK_BYTES)
        file.seek(50 * BLOCK_BYTES)
        file.write(build.thread_record({"start_ns": 1, "tid": 99}, []))

    threads = Experiment(str(tmp_path / "t.1.er")).founder.threads

    assert [thread.record.tid for thread in threads] == [*range(1, 41), 99]
    assert threads[-1].number == 50 * 32


@pytest.mark.parametrize(
    ("offset", "value", "what"),
    [
        (0, b"NOTOURS!", "does not begin as a file of an experiment"),
        (8, b"\7\0\0\0", "format 7; this version reads up to 4"),
        (16, b"\1\0\0\0", "its head does not agree with log.xml"),
    ],
)
def test_a_head_that_is_not_ours_is_noted(tmp_path, offset, value, what):
    build = Build(tmp_path / "t.1.er")
    build.site("app.py", 1, "f")
    path = build.write() / "sites"
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)

    process = Experiment(str(tmp_path / "t.1.er")).founder
    process.site(1)

    assert f"t.1.er/sites: {what}" in map(str, process.damages.found)
