"""The dialogue as a table, and as an asciicast (version 2: a head, then an event a line, all JSON)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from interpose.analysis.calls.groupings import process_label
from interpose.analysis.recording.dialogue import Line, Spoken
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.formats.units import SECOND_NS

NAMES = ("since_ns", "process", "descriptor", "what", "text", "redacted")
UNSEEN = "(typed without echo)"
# What a terminal acts upon: sequences that begin with ESC [, strings (titles and similar), single characters.
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*([@-~])|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]", re.DOTALL)
_MOVING = "HfdJ"
_WIDTH, _HEIGHT = 80, 24
LONGEST_TITLE = 200


def lines_table(experiment: Experiment, rows: Iterable[Line]) -> Table:
    """A row for each line, for people; nothing in it moves a cursor."""
    start_ns = experiment.founder.log.start_ns
    columns = [Column("since start", lambda row: f"{(row.time_ns - start_ns) / SECOND_NS:.3f} s")]
    if len(experiment.processes) > 1:
        columns.append(Column("process", lambda row: row.process.lineage or "founder", right=False))
    columns.append(Column("", lambda row: ">" if row.what in ("typed", "unseen") else "", right=False))
    columns.append(Column("dialogue", _shown, right=False, flexible=True))
    return Table(NAMES, lambda row: {}, columns, rows)


def pieces_table(experiment: Experiment, rows: Iterable[Spoken]) -> Table:
    """A row for each piece, for machines, with its text as it was."""
    start_ns = experiment.founder.log.start_ns
    return Table(NAMES, lambda row: _values(row, start_ns), [], rows)


def _values(row: Spoken, start_ns: int) -> dict[str, object]:
    since_ns = row.piece.time_ns - start_ns
    values = (since_ns, process_label(row.process), row.piece.descriptor, row.what, row.text, row.redacted)
    return dict(zip(NAMES, values, strict=True))


def _shown(row: Line) -> str:
    return UNSEEN if row.what == "unseen" else clean(readable(row.text))


def readable(text: str) -> str:
    """Text without what only a terminal understands; where it moved the cursor to another place, a gap."""
    plain = _SEQUENCE.sub(lambda found: "  " if found[1] and found[1] in _MOVING else "", text)
    return plain.replace("\r", "").replace("\t", "    ").rstrip()


def asciicast(log: Log, pieces: Iterable[Spoken]) -> Iterator[str]:
    """The lines of an asciicast; `log` is the founder's. Typed text is shown if the terminal echoed it."""
    left = iter(pieces)
    first = next(left, None)
    size = _size_of(first) if first and first.what == "size" else (_WIDTH, _HEIGHT)
    about = {"timestamp": log.time_ns // SECOND_NS, "title": " ".join(log.arguments)[:LONGEST_TITLE]}
    yield json.dumps({"version": 2, "width": size[0], "height": size[1], **about})
    for each in [first, *left] if first else ():
        since_s = round(max(each.piece.time_ns - log.start_ns, 0) / SECOND_NS, 6)
        if each.what == "size":
            yield json.dumps([since_s, "r", each.text])
        elif each.what == "typed" and each.text:
            yield json.dumps([since_s, "i", each.text.replace("\n", "\r")])
        if each.what in ("typed", "shown") and each.text:
            yield json.dumps([since_s, "o", each.as_on_screen])


def _size_of(each: Spoken) -> tuple[int, int]:
    rows, columns = each.piece.size
    return columns or _WIDTH, rows or _HEIGHT
