"""The damage of the archive or experiments that an experiment was made from, so that it is not taken for whole."""

from __future__ import annotations

from itertools import islice

from interpose.experiments.metadata.lines_of_text import LARGEST_BYTES, read_lines, write_lines
from interpose.experiments.model.files import Damages

DAMAGES = "damages"
_LONGEST = 500  # characters


def note_known(directory: str, damages: Damages) -> None:
    """Add what the file in the experiment's `directory` says to `damages`."""
    for line in read_lines(directory, DAMAGES, DAMAGES, damages):
        place, _, what = line.partition(": ")
        if place.strip():
            damages.add(place[:_LONGEST], what[:_LONGEST] or "damaged")


def keep_known(directory: str, damages: Damages) -> None:
    """Write the first of `damages` into the experiment's `directory`. Raises OSError."""
    most = LARGEST_BYTES // (8 * _LONGEST)  # a character takes at most 4 bytes
    lines = [" ".join(str(each).split())[:_LONGEST] for each in islice(damages.found, most)]
    if lines:
        write_lines(directory, DAMAGES, lines)
