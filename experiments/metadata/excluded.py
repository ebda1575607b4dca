"""The processes that INTERPOSE_FOLLOW excluded: each has put its number into a file in the founder's directory."""

from __future__ import annotations

import os

from interpose.experiments.metadata import names
from interpose.experiments.model.files import open_plain

LARGEST_BYTES = 1 << 20
LONGEST_NUMBER = 10  # in digits


def read_excluded(founder: str) -> frozenset[int]:
    """The process numbers; of a file that is damaged, those that can be read, and none of a file that is too long."""
    try:
        with open(open_plain(os.path.join(founder, names.EXCLUDED)), "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError:
        return frozenset()
    lines = data.split(b"\n") if len(data) <= LARGEST_BYTES else []
    return frozenset(int(line) for line in lines if line.isdigit() and len(line) <= LONGEST_NUMBER)
