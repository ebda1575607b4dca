"""Files beside the recorded ones, as anybody may have written them: read in part or refused, never a traceback."""

import io
import os
import tarfile
import tempfile
from pathlib import Path

import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.errors import ExperimentError
from interpose.experiments.archives import ARCHIVES, INDEX, read_index
from interpose.experiments.dynamic import DYNTEXT, read_dynamic
from interpose.experiments.experiment import Experiment
from interpose.experiments.files import Damages, DataFile
from interpose.experiments.group import members
from interpose.experiments.labels import LABELS, read_marks, windows
from interpose.experiments.notes import NOTES, read_notes
from interpose.experiments.objects import read_objects
from interpose.experiments.packed import pack, unpack
from interpose.experiments.repair import repair
from interpose.reports.raw import raw
from tests.test_hostile import small

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
        for name, data in files.items():
            (top / name).write_bytes(hostile(data))
        (top / "g.erg").write_bytes(hostile(GROUP))
        damages = Damages()

        entries = read_index(directory, "x", damages)
        assert all("/" not in entry.content for entry in entries.values())
        assert len(read_notes(directory, "x", damages)) <= 300
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
