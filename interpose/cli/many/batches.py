"""Neighbouring experiments whose answers are merged and kept as one, so that a later report reads fewer.

Where a batch ends depends on the name of its last experiment alone. So a new experiment changes one batch, and all
others are found again.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Sequence

MEAN = 32
LARGEST = 4 * MEAN


def batches(paths: Sequence[str]) -> list[range]:
    """The positions of neighbours, in order; each position is in one batch."""
    made, begin = [], 0
    for place, path in enumerate(paths):
        name = os.path.basename(path).encode("utf-8", "surrogateescape")
        if zlib.crc32(name) % MEAN == 0 or place + 1 - begin == LARGEST:
            made.append(range(begin, place + 1))
            begin = place + 1
    return [*made, range(begin, len(paths))] if begin < len(paths) else made


def name_of(stamps: Sequence[str]) -> str:
    """The name of the merged answer of experiments whose own answers have these."""
    return hashlib.sha256("\n".join(["together", *stamps]).encode()).hexdigest()
