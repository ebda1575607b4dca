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
from interpose.experiments.metadata.creating import replacing
from interpose.experiments.metadata.log import Log, read_log
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages, DataFile, OpenFile, open_plain

_CLOSINGS = {names.LOG: b"</experiment>\n", names.MAP: b"</map>\n"}
_EMPTY_MAP = b'<?xml version="1.0" encoding="utf-8"?>\n<map>'


def repair(founder: str) -> None:
    """Repair the experiment in the directory `founder`, in its place. Raises OSError, ExperimentError."""
    for directory in [founder, *_descendants(founder)]:
        for name in _CLOSINGS:
            _repair_xml(directory, name)
        try:
            log = read_log(os.path.join(directory, names.LOG), directory, Damages())
        except ExperimentError:
            continue
        for data in log.data.values():
            if data.name == compressed.NAME:
                _repair_compressed(directory, data, log)
            else:
                _repair_data(os.path.join(directory, data.name), data, log)


def _descendants(founder: str) -> list[str]:
    return [process.directory for process in Experiment(founder).processes[1:]]


def _open(path: str) -> int | None:
    """A descriptor of the plain file to change; None if there is none."""
    try:
        os.close(open_plain(path))
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


def _repair_xml(directory: str, name: str) -> None:
    descriptor = _open(os.path.join(directory, name))
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


def _repair_data(path: str, data: DataType, log: Log) -> None:
    if os.sep in data.name or not data.name.isalnum() or data.block_bytes <= 0:
        return
    descriptor = _open(path)
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


def _repair_compressed(directory: str, data: DataType, log: Log) -> None:
    """Replace the file of compressed events by its whole blocks, at once for all readers."""
    path = os.path.join(directory, compressed.NAME)
    events = log.data.get("events")
    if events is None or events.layout is None or not os.path.lexists(path):
        return
    damages = Damages()
    try:
        file = CompressedFile(DataFile(path, path, damages), data, events.layout)
    except LayoutError:
        return
    whole = [found for found, _ in file.blocks()]
    if file.size_bytes() > (whole[-1].end if whole else 0) or damages.count:
        _keep_only(whole, path)


def _keep_only(blocks: list[Found], path: str) -> None:
    descriptor = open_plain(path)
    try:
        with replacing(path) as kept:
            for found in blocks:
                kept.write(OpenFile(descriptor).read(found.offset, found.end - found.offset))
                kept.write(bytes(-kept.tell() % compressed.ALIGNED_BYTES))
    finally:
        os.close(descriptor)
