"""What a user has noted of an experiment: lines of text in a file of their own, which may be edited."""

from __future__ import annotations

from interpose.experiments.metadata.lines_of_text import read_lines, write_lines
from interpose.experiments.model.files import Damages

NOTES = "notes"


def read_notes(directory: str, place: str, damages: Damages) -> list[str]:
    """The lines of the notes. A file longer than notes can be is not read to its end, and noted."""
    return read_lines(directory, NOTES, place, damages)


def write_notes(directory: str, lines: list[str]) -> None:
    """Replace the notes, at once for all readers. Raises OSError, or ExperimentError if there are too many."""
    write_lines(directory, NOTES, lines)
