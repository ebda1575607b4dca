"""The dialogue of an experiment: what terminals showed and what was typed, for all processes in the order of time."""

from __future__ import annotations

import codecs
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from interpose.experiments.format.dialogue import ENDS_LINES, REDACTED, SHOWN, SIZE, TYPED, UNSEEN, Piece
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

LONGEST_LINE = 64 * 1024
WORDS = {SHOWN: "shown", TYPED: "typed", UNSEEN: "unseen", SIZE: "size"}


class Spoken(NamedTuple):
    """A piece, its process, and its text. An incomplete character at its end belongs to the next piece of its kind."""

    process: Process
    piece: Piece
    text: str

    @property
    def what(self) -> str:
        """`shown`, `typed`, `unseen` or `size`."""
        return WORDS.get(self.piece.what, "?")

    @property
    def redacted(self) -> bool:
        """Whether something was left out of it."""
        return bool(self.piece.flags & REDACTED)

    @property
    def as_on_screen(self) -> str:
        """The text as the terminal got it: with line ends that begin at the left, where it made them so."""
        return self.text.replace("\n", "\r\n") if self.piece.flags & ENDS_LINES else self.text


@dataclass
class Line:
    """A line of the dialogue: when it began, its process, its type (as in Spoken), and its text."""

    time_ns: int
    process: Process
    what: str
    text: str


def is_kept(experiment: Experiment) -> bool:
    """Whether any of the processes has a dialogue."""
    return any(process.dialogue for process in experiment.processes)


def lost_pieces(experiment: Experiment) -> int:
    """For how many pieces there was no room."""
    return sum(process.dialogue.lost for process in experiment.processes if process.dialogue)


def spoken(experiment: Experiment) -> Iterator[Spoken]:
    """All pieces, in the order of their times."""
    yield from heapq.merge(*(_of(process) for process in experiment.processes), key=lambda each: each.piece.time_ns)


def _of(process: Process) -> Iterator[Spoken]:
    decoders: dict[tuple[int, int], codecs.IncrementalDecoder] = {}
    make = codecs.getincrementaldecoder("utf-8")
    for piece in process.dialogue.pieces() if process.dialogue else ():
        if piece.what in (SHOWN, TYPED):
            decoder = decoders.setdefault((piece.descriptor, piece.what), make("replace"))
            yield Spoken(process, piece, decoder.decode(piece.data))
        elif piece.what == SIZE:
            rows, columns = piece.size
            yield Spoken(process, piece, f"{columns}x{rows}")
        else:
            yield Spoken(process, piece, "")


def lines_of(pieces: Iterator[Spoken]) -> Iterator[Line]:
    """The dialogue line by line. Pieces from one process are joined until the line ends or something of another type
    comes."""
    open_line: Line | None = None
    for each in pieces:
        if each.what == "size":
            continue
        if open_line and (open_line.process is not each.process or open_line.what != each.what):
            yield open_line
            open_line = None
        *whole, rest = each.text.split("\n")
        for text in whole:
            line = open_line or Line(each.piece.time_ns, each.process, each.what, "")
            line.text += text
            yield line
            open_line = None
        if rest or each.what == "unseen":
            open_line = open_line or Line(each.piece.time_ns, each.process, each.what, "")
            open_line.text += rest
            if len(open_line.text) > LONGEST_LINE:
                yield open_line
                open_line = None
    if open_line:
        yield open_line
