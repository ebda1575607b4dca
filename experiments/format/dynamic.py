"""The source text of code that is in no file (a notebook's cell, generated methods), as first seen."""

from __future__ import annotations

import struct
from collections.abc import Callable

from interpose.experiments.model.files import DataFile

DYNTEXT = "dyntext"
LARGEST_TEXT_BYTES = 256 * 1024
LARGEST_FILE_BYTES = 16 << 20
_HEAD = struct.Struct("<II")  # the number of the string that is its name, and how many bytes follow


def read_dynamic(file: DataFile, string: Callable[[int], str]) -> dict[str, str]:
    """The texts by the names that sites have for their files; as many as are whole."""
    data = file.read(0, LARGEST_FILE_BYTES)
    texts: dict[str, str] = {}
    place = 0
    while place + _HEAD.size <= len(data):
        name, size_bytes = _HEAD.unpack_from(data, place)
        begin = place + _HEAD.size
        if size_bytes > LARGEST_TEXT_BYTES or begin + size_bytes > len(data):
            file.damaged(f"cut short at byte {place}" if begin + size_bytes > len(data) else "no text is that long")
            break
        texts[string(name)] = data[begin : begin + size_bytes].decode("utf-8", "replace")
        place = begin + (size_bytes + 3 & ~3)
    return texts
