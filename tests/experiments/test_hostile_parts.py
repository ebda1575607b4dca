"""Files beside the recorded ones, as anybody may have written them: read in part or refused, never a traceback."""

import io
import os
import re
import tarfile
import tempfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.analysis.recording.soundness import read_all
from interpose.errors import ExperimentError
from interpose.experiments.format.dynamic import DYNTEXT, read_dynamic
from interpose.experiments.format.objects import read_objects
from interpose.experiments.maintenance.archives import ARCHIVES, INDEX, read_index
from interpose.experiments.maintenance.packed import pack, unpack
from interpose.experiments.maintenance.repair import repair
from interpose.experiments.metadata import names
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.excluded import read_excluded
from interpose.experiments.metadata.group import members
from interpose.experiments.metadata.labels import LABELS, read_marks, windows
from interpose.experiments.metadata.notes import NOTES, read_notes
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages, DataFile
from interpose.exports.raw import raw
from tests.build import START_NS, Build
from tests.experiments.test_hostile import small

INDEX_LINE = b'{"path": "/p", "content": "a_' + b"0" * 32 + b'", "kind": "source", "bytes": 1,'
INDEX_LINE += b' "mtime_ns": 1, "changed": false}\n'
MARK = b'<labels><mark name="a" action="start" time_ns="1" comment="x"/></labels>'
MAPPED = b"7f00-7f01 r-xp 00000000 08:01 42                         /usr/lib/libc.so.6\n"
GROUP = b"#interpose experiment group\na.er\nb.erg\n"
TEXT = b"\1\0\0\0\3\0\0\0abc\0"

flips = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=6)


def flipped(data, changes):
    made = bytearray(data)
    for place, by in changes:
        made[place % len(made)] ^= by
    return bytes(made)


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=300), flips))
def test_small_files_of_any_bytes_are_read_without_a_traceback(given_bytes):
    def hostile(data):
        return given_bytes if isinstance(given_bytes, bytes) else flipped(data, given_bytes)

    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / ARCHIVES).mkdir()
        files = {NOTES: b"x\n", LABELS: MARK, DYNTEXT: TEXT, f"{ARCHIVES}/{INDEX}": INDEX_LINE, "objects": MAPPED}
        files[names.EXCLUDED] = b"12\n13\n"
        for name, data in files.items():
            (top / name).write_bytes(hostile(data))
        (top / "g.erg").write_bytes(hostile(GROUP))
        damages = Damages()

        entries = read_index(directory, "x", damages)
        assert all("/" not in entry.content for entry in entries.values())
        assert len(read_notes(directory, "x", damages)) <= 300
        assert all(0 <= number < 10**10 for number in read_excluded(directory))
        marks = read_marks(directory, "x", damages)
        assert all(window.start_ns <= window.stop_ns for window in windows(marks, "a"))
        texts = read_dynamic(DataFile(f"{directory}/{DYNTEXT}", "x", damages), str)
        assert sum(map(len, texts.values())) <= 300
        assert len(list(read_objects(DataFile(f"{directory}/objects", "x", damages)))) <= 1
        try:
            assert members(f"{directory}/g.erg")
        except ExperimentError as error:
            assert "\n" not in str(error)


def tar_of(directory):
    pack(str(directory / "test.1.er"), str(directory / "x"))
    return zstandard.ZstdDecompressor().decompressobj().decompress((directory / "x").read_bytes())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 511), st.integers(1, 255)), max_size=3), st.integers(0, 9), st.booleans())
def test_headers_with_any_bit_flipped_lead_nowhere_else(changes, member, is_sealed):
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        small(top / "test.1.er").write()
        data = tar_of(top)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            offsets = [info.offset for info in archive.getmembers()]
        at = offsets[member % len(offsets)]
        header = bytearray(flipped(data[at : at + 512], changes) if changes else data[at : at + 512])
        if is_sealed:  # as somebody would who means it
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
        (top / "y").write_bytes(zstandard.compress(data[:at] + bytes(header) + data[at + 512 :]))
        (top / "into").mkdir()
        before = sorted(os.listdir(directory))

        try:
            path = unpack(str(top / "y"), str(top / "into"), Damages())
        except ExperimentError:
            path = None

        assert sorted(os.listdir(directory)) == before
        found = list((top / "into").rglob("*"))
        assert not [each for each in found if each.is_symlink() or not (each.is_file() or each.is_dir())]
        assert path is None or os.path.dirname(path) == str(top / "into")


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["log.xml", "map.xml", "strings", "sites", "stacks", "threads", "events"]), flips)
def test_whatever_is_flipped_can_be_exported_and_repaired(name, changes):
    with tempfile.TemporaryDirectory() as directory:
        path = small(Path(directory) / "test.1.er").write()
        (path / name).write_bytes(flipped((path / name).read_bytes(), changes))

        try:
            assert all("\n" not in line for line in raw(Experiment(str(path))))
            repair(str(path))
            list(raw(Experiment(str(path))))
        except ExperimentError as error:
            assert "\n" not in str(error)


# --- as large as can be said in a few bytes of disk


def test_a_hole_of_a_terabyte_among_compressed_events_is_passed_over(tmp_path):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    with open(path / "events.zst", "wb") as file:
        file.truncate(1 << 40)

    damages = read(path)

    assert damages == [f"test.1.er/events.zst: no sound block from byte 0 on, of {1 << 40}"]


@pytest.mark.parametrize("name", ["strings", "sites", "stacks", "threads", "overview", "children", "events"])
def test_a_hole_of_a_terabyte_is_no_damage_and_passed_over(tmp_path, name):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    os.truncate(path / name, 1 << 40)

    assert read(path) == []


def read(path):
    """All of an experiment, in whichever way; gives what of it is damaged."""
    experiment = Experiment(str(path))
    for _ in raw(experiment):
        pass
    read_all(experiment)
    return [str(each) for each in experiment.damages.found]


def many(build):
    for number in range(30):
        build.thread(tid=number, open_calls=[{"start_ns": START_NS, "call": 1 + each} for each in range(10)])
        build.sample(time_ns=START_NS + number, kind=2)
        build.child(how=3, pid=number + 1)
        build.string(str(number))
    return str(build.write())


@pytest.mark.parametrize(
    ("place", "limit", "said"),
    [
        ("model.threads.THREADS_AT_MOST", 9, "threads: more than 9 records, the rest was not read"),
        ("model.threads.OPEN_CALLS_AT_MOST", 25, "threads: more than 25 calls in progress"),
        ("model.process.SAMPLES_AT_MOST", 9, "overview: more than 9 records, the rest was not read"),
        ("model.process.CHILDREN_AT_MOST", 9, "children: more than 9 records, the rest was not read"),
        ("format.tables.STRINGS_AT_MOST", 9, "strings: more than 9 strings, the rest was not read"),
    ],
)
def test_of_more_than_memory_should_hold_the_first_are_read(tmp_path, monkeypatch, place, limit, said):
    path = many(Build(tmp_path / "test.1.er"))
    monkeypatch.setattr(f"interpose.experiments.{place}", limit)

    process = Experiment(path).founder
    kept = (process.threads, process.overview, process.children, list(process.strings()))

    assert f"test.1.er/{said}" in [str(each) for each in process.damages.found]
    assert min(map(len, kept)) in (limit, 30)
    if place.startswith("model.threads.OPEN"):
        assert sum(len(thread.open_calls) for thread in process.threads) == 20


def test_of_more_descendants_than_memory_should_hold_the_first_are_read(tmp_path, monkeypatch):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    for number in range(5):
        small(path / f"_f{number + 1}.er").write()
    monkeypatch.setattr("interpose.experiments.model.experiment.PROCESSES_AT_MOST", 3)

    experiment = Experiment(str(path))

    assert [process.lineage for process in experiment.processes] == ["", "_f1", "_f2", "_f3"]
    assert [str(each) for each in experiment.damages.found] == [
        "test.1.er: more than 3 processes, the others were not read"
    ]


def test_an_index_is_read_up_to_what_memory_should_hold(tmp_path, monkeypatch):
    (tmp_path / ARCHIVES).mkdir()
    (tmp_path / ARCHIVES / INDEX).write_bytes(INDEX_LINE + INDEX_LINE.replace(b'"/p"', b'"/q"'))
    monkeypatch.setattr("interpose.experiments.maintenance.archives.LARGEST_INDEX_BYTES", len(INDEX_LINE))
    damages = Damages()

    assert list(read_index(str(tmp_path), "x", damages)) == ["/p"]
    assert "longer than" in str(damages.found[0])


def test_a_control_page_that_cannot_be_there_or_has_other_fields_is_refused(tmp_path):
    path = small(tmp_path / "test.1.er", whole_files=True).write()
    log = (path / "log.xml").read_text()

    for changed in (
        re.sub('<control offset="[0-9]+"', '<control offset="99999999999999999999"', log),
        re.sub('<control offset="[0-9]+"', '<control offset="9223372036854775800"', log),
        log.replace('name="monitor"', 'name="nothing"'),
        re.sub("<control.*?</control>", "", log),
    ):
        (path / "log.xml").write_text(changed)
        before = (path / "threads").read_bytes()
        with pytest.raises(ExperimentError):
            Control(Experiment(str(path)).founder).write(monitor=77)
        assert (path / "threads").read_bytes() == before


def test_each_damage_counts_once_however_many_there_are(monkeypatch):
    monkeypatch.setattr(Damages, "COUNTED", 300)
    damages = Damages()

    for number in [*range(200), *range(200)]:
        damages.add("events", f"record {number}")
    counted = damages.count
    for number in range(1000):
        damages.add("stacks", f"record {number}")

    assert (counted, len(damages.found), damages.count) == (200, Damages.KEPT, 300)
