"""Makes files of an experiment as a whole, ready to be written: numbered records, and strings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpose.experiments.format.layout import DataType, Layout, Packer
from interpose.experiments.format.records import FileHead
from interpose.experiments.format.tables import FILE_MAGIC, LONGEST_STRING_BYTES

_NEXT_WINDOW = b"\xff" * 4


def records_file(version: int, head: Layout, data: DataType, records: Iterable[Any]) -> bytes:
    """A file of `records` (named tuples of `experiments/format/records.py`), laid out as `data` says. Numbers begin at
    1. No record crosses the end of a window. Raises LayoutError."""
    made, packer = bytearray(_head(version, head, data)), None
    for record in records:
        packer = packer or Packer(_layout(data), type(record))
        if data.block_bytes - len(made) % data.block_bytes < _layout(data).record_bytes:
            made += bytes(-len(made) % data.block_bytes)
        made += packer.one(record)
    return bytes(made)


def strings_file(version: int, head: Layout, data: DataType, texts: Iterable[bytes]) -> bytes:
    """The file of strings, laid out as `data` says. Numbers begin at 1. An empty string becomes `?`; one that is too
    long is cut."""
    made = bytearray(_head(version, head, data))
    for text in texts:
        encoded = text[: LONGEST_STRING_BYTES - 1] or b"?"
        record = len(encoded).to_bytes(4, "little") + encoded + bytes(-len(encoded) % 4)
        left = data.block_bytes - len(made) % data.block_bytes
        if len(record) > left:
            made += _NEXT_WINDOW.ljust(left, b"\0") if left >= 4 else bytes(left)
        made += record
    return bytes(made)


def _layout(data: DataType) -> Layout:
    assert data.layout is not None
    return data.layout


def _head(version: int, head: Layout, data: DataType) -> bytes:
    values = {"magic": FILE_MAGIC, "version": version, "head_bytes": data.head_bytes, "first": 1}
    values |= {"record_bytes": data.layout.record_bytes if data.layout else 0, "window_bytes": data.block_bytes}
    packed = Packer(head, FileHead).one(FileHead(**{name: values.get(name, 0) for name in FileHead._fields}))
    return packed.ljust(data.head_bytes, b"\0")
