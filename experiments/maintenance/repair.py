"""Repairs an experiment: what is cut short then ends with its last whole item.

Nothing is invented. Invalid blocks become free space, unreadable compressed blocks are left out, and a log ends with
its closing tag after the last whole element.
"""

from __future__ import annotations

import os
from xml.parsers import expat

from interpose.errors import ExperimentError
from interpose.experiments.format import compressed
from interpose.experiments.format.blocks import BLOCK_MAGIC
from interpose.experiments.format.compressed import CompressedFile, Found
from interpose.experiments.format.elements import LARGEST_XML_BYTES
from interpose.experiments.format.layout import DataType, LayoutError
from interpose.experiments.metadata import names
from interpose.experiments.metadata.creating import Directory
from interpose.experiments.metadata.log import Log, read_log
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages, DataFile, OpenFile

_CLOSINGS = {names.LOG: b"</experiment>\n", names.MAP: b"</map>\n"}
_EMPTY_MAP = b'<?xml version="1.0" encoding="utf-8"?>\n<map>'


def repair(founder: str) -> None:
    """Repair the experiment in the directory `founder`, in its place. Raises OSError; ExperimentError, also
    if a part of that path is a link."""
    for path in [founder, *_descendants(founder)]:
        with Directory(path) as directory:
            _repair(directory)


def _repair(directory: Directory) -> None:
    for name in _CLOSINGS:
        _repair_xml(directory, name)
    try:
        log = read_log(os.path.join(directory.path, names.LOG), directory.path, Damages())
    except ExperimentError:
        return
    for data in log.data.values():
        if data.name == compressed.NAME:
            _repair_compressed(directory, data, log)
        else:
            _repair_data(directory, data, log)


def _descendants(founder: str) -> list[str]:
    found = Experiment(founder).processes[1:]
    return [os.path.join(founder, os.path.basename(process.directory)) for process in found]


def _open(directory: Directory, name: str) -> int | None:
    """A descriptor of the plain file to change; None if there is none."""
    try:
        return directory.open(name, os.O_RDWR)
    except OSError:
        return None


def _repair_xml(directory: Directory, name: str) -> None:
    descriptor = _open(directory, name)
    if descriptor is None:
        return
    with open(descriptor, "r+b") as file:
        data = file.read(LARGEST_XML_BYTES)
        end = _end_of_whole_elements(data)
        if end is None:
            return
        begin = data[:end] if end else _EMPTY_MAP if name == names.MAP else b""
        if begin:
            file.seek(0)
            file.truncate()
            file.write(begin + b"\n" + _CLOSINGS[name])


def _end_of_whole_elements(data: bytes) -> int | None:
    """Where the last whole element in the outermost one ends, 0 if that did not begin; None if all is well."""
    parser = expat.ParserCreate("utf-8")
    depth, end = 0, 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, end
        depth += 1
        if depth == 1:
            end = data.index(b">", parser.CurrentByteIndex) + 1

    def finish(name: str) -> None:
        nonlocal depth, end
        depth -= 1
        if depth == 1:
            end = data.index(b">", parser.CurrentByteIndex) + 1

    parser.StartElementHandler = begin
    parser.EndElementHandler = finish
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):
        return end
    return None


def _repair_data(directory: Directory, data: DataType, log: Log) -> None:
    if not data.name.isidentifier() or data.block_bytes <= 0:
        return
    descriptor = _open(directory, data.name)
    if descriptor is None:
        return
    try:
        size_bytes = os.fstat(descriptor).st_size
        if data.name == "events":
            _repair_blocks(descriptor, data, size_bytes)
        elif data.layout is None:
            os.ftruncate(descriptor, _end_of_whole_strings(descriptor, data, size_bytes))
        else:
            os.ftruncate(descriptor, _end_of_whole_records(data, size_bytes))
    finally:
        os.close(descriptor)


def _end_of_whole_records(data: DataType, size_bytes: int) -> int:
    assert data.layout is not None
    window = size_bytes // data.block_bytes * data.block_bytes
    head_bytes = data.head_bytes if window == 0 else 0
    into = size_bytes - window - head_bytes
    return size_bytes if into < 0 else size_bytes - into % data.layout.record_bytes


def _end_of_whole_strings(descriptor: int, data: DataType, size_bytes: int) -> int:
    place = data.head_bytes
    while place + 4 <= size_bytes:
        length = int.from_bytes(os.pread(descriptor, 4, place), "little")
        window_end = (place // data.block_bytes + 1) * data.block_bytes
        if length == 0 and window_end > size_bytes:
            return place if size_bytes < window_end else size_bytes
        after = window_end if length in (0, 0xFFFFFFFF) else place + 4 + (length + 3 & ~3)
        if after > size_bytes or after > window_end:
            return place
        place = after if window_end - after >= 4 else window_end
    return min(place, size_bytes)


def _repair_blocks(descriptor: int, data: DataType, size_bytes: int) -> None:
    """Write into a block that is cut short how many events are whole; empty an invalid one."""
    if data.inner is None or data.layout is None or not {"magic", "used"} <= set(data.inner.fields):
        return
    fields = data.inner.fields
    head_bytes, event_bytes = data.inner.record_bytes, data.layout.record_bytes
    for place in range(0, size_bytes, data.block_bytes):
        there = min(data.block_bytes, size_bytes - place)
        head = os.pread(descriptor, head_bytes, place)
        room = max(there - head_bytes, 0) // event_bytes
        if len(head) < head_bytes or not _is_block(head, fields["magic"].offset):
            if any(head):
                os.pwrite(descriptor, bytes(there), place)
            continue
        used = int.from_bytes(head[fields["used"].offset : fields["used"].end], "little")
        if used > room:
            os.pwrite(descriptor, room.to_bytes(fields["used"].size_bytes, "little"), place + fields["used"].offset)
            whole = head_bytes + room * event_bytes
            os.pwrite(descriptor, bytes(there - whole), place + whole)
    os.ftruncate(descriptor, -(-size_bytes // data.block_bytes) * data.block_bytes)


def _is_block(head: bytes, offset: int) -> bool:
    return int.from_bytes(head[offset : offset + 4], "little") == BLOCK_MAGIC


def _repair_compressed(directory: Directory, data: DataType, log: Log) -> None:
    """Replace the file of compressed events by its whole blocks, at once for all readers."""
    path = os.path.join(directory.path, compressed.NAME)
    events = log.data.get("events")
    if events is None or events.layout is None or not directory.status_of(compressed.NAME):
        return
    damages = Damages()
    try:
        file = CompressedFile(DataFile(path, path, damages), data, events.layout)
    except LayoutError:
        return
    whole = [found for found, _ in file.blocks()]
    if file.size_bytes() > (whole[-1].end if whole else 0) or damages.count:
        _keep_only(whole, directory)


def _keep_only(blocks: list[Found], directory: Directory) -> None:
    descriptor = directory.open(compressed.NAME)
    try:
        with directory.replacing(compressed.NAME) as kept:
            for found in blocks:
                kept.write(OpenFile(descriptor).read(found.offset, found.end - found.offset))
                kept.write(bytes(-kept.tell() % compressed.ALIGNED_BYTES))
    finally:
        os.close(descriptor)
