"""The load objects that a process had mapped: a copy of /proc/PID/maps, made on request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from interpose.experiments.model.files import DataFile

OBJECTS = "objects"
LARGEST_OBJECTS_BYTES = 4 << 20
# proc_pid_maps(5): addresses, rights, offset, device, inode, path.
_MAPPED = re.compile(rb"[0-9a-f]+-[0-9a-f]+ r.x. [0-9a-f]+ ([0-9a-f]{1,4}):([0-9a-f]{1,5}) ([0-9]{1,19}) +(/.*)")


class MappedObject(NamedTuple):
    """A file that code was mapped from, and which file that was."""

    path: str
    device: int
    inode: int


def read_objects(file: DataFile) -> Iterator[MappedObject]:
    """The files that code was mapped from, each once."""
    seen = set()
    for line in file.read(0, LARGEST_OBJECTS_BYTES).split(b"\n"):
        found = _MAPPED.fullmatch(line)
        if found and found[4] not in seen and not found[4].endswith(b" (deleted)"):
            seen.add(found[4])
            major, minor = int(found[1], 16), int(found[2], 16)
            path = found[4].decode("utf-8", "surrogateescape").replace("\\012", "\n")
            yield MappedObject(path, _device(major, minor), int(found[3]))


def _device(major: int, minor: int) -> int:
    """As makedev(3) has it, for any numbers."""
    return (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & ~0xFF) << 12 | (major & ~0xFFF) << 32
