"""The raw data of an experiment as text: every file, every record with the names of its fields."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.experiments.format.covered import COVERED_TABLES
from interpose.experiments.format.dialogue import DIALOGUE
from interpose.experiments.format.dynamic import DYNTEXT
from interpose.experiments.format.layout import Bytes, Layout
from interpose.experiments.format.objects import OBJECTS
from interpose.experiments.format.trace_contexts import NAME as CONTEXTS
from interpose.experiments.format.traces import LINE_TABLES
from interpose.experiments.metadata import names
from interpose.experiments.metadata.notes import NOTES
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import open_plain
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import COUNTS, MEMORY, SAMPLES, SITES, STACKS, STRINGS
from interpose.reports.formats.table import clean

_TEXTS = (names.LOG, names.MAP, NOTES, OBJECTS, "archive.log", "archives/index.jsonl", "labels.xml")
_FIRST = ("sites", "stacks", "threads", "overview", "children")
_OTHERS = ("counts", "tasks", CONTEXTS, "heap", "heap_sites", SAMPLES, SITES, STACKS, MEMORY, COUNTS)
_LONGEST_LINE_BYTES = 1 << 20


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the lines of all files of all processes."""
    for line in raw(analysis.experiment):
        out.write(line.encode("utf-8", "backslashreplace") + b"\n")


def raw(experiment: Experiment) -> Iterator[str]:
    """The lines of all files of all processes."""
    for process in experiment.processes:
        for name in _TEXTS:
            yield from _text(process, name)
        yield from _strings(process, "strings", process.strings())
        for table_name in (*_FIRST, *LINE_TABLES, *COVERED_TABLES, *_OTHERS):
            yield from _records(process, table_name)
        if sampled := process.strings_if_there(STRINGS):
            yield from _strings(process, STRINGS, sampled.all())
        yield from _events(process)
        yield from _dynamic(process)
        yield from _dialogue(process)


def _dialogue(process: Process) -> Iterator[str]:
    if process.dialogue:
        yield _title(process, DIALOGUE)
        for each in process.dialogue.pieces():
            text = clean(each.data.decode("utf-8", "backslashreplace"))
            about = f"time_ns={each.time_ns} thread={each.thread} descriptor={each.descriptor} what={each.what}"
            yield f"{about} flags={each.flags} text={text}"


def _title(process: Process, name: str) -> str:
    return clean(f"[{process.place}/{name}]")


def _text(process: Process, name: str) -> Iterator[str]:
    try:
        descriptor = open_plain(os.path.join(process.directory, name))
    except OSError:
        return
    yield _title(process, name)
    with open(descriptor, "rb") as file:
        while line := file.readline(_LONGEST_LINE_BYTES):
            yield clean(line.decode("utf-8", "replace").rstrip("\n"))


def _strings(process: Process, name: str, strings: Iterable[tuple[int, str]]) -> Iterator[str]:
    yield _title(process, name)
    for number, text in strings:
        yield f"number={number} text={clean(text)}"


def _records(process: Process, name: str) -> Iterator[str]:
    table = process.raw_table(name)
    data = process.log.data.get(name)
    if table is None or data is None or data.layout is None:
        return
    yield _title(process, name)
    for number, _, record in table.as_written():
        yield f"number={number} {_shown(data.layout, record)}"
        if data.inner:
            end = data.inner_offset + data.inner_records * data.inner.record_bytes
            for entry in _whole(data.inner, record[data.inner_offset : end]):
                yield f"  {entry}"


def _events(process: Process) -> Iterator[str]:
    if process.events is None:
        return
    yield _title(process, "events")
    for block in process.events.blocks_as_written():
        head = " ".join(f"{name}={value}" for name, value in block.head._asdict().items())
        yield f"block {head}"
        for event in _whole(process.events.layout, block.events):
            yield f"  {event}"


def _dynamic(process: Process) -> Iterator[str]:
    texts = process.dynamic_texts()
    if texts:
        yield _title(process, DYNTEXT)
    for name, text in texts.items():
        yield clean(f"name={name}")
        yield from (f"  {clean(line)}" for line in text.splitlines())


def _whole(layout: Layout, data: Bytes) -> Iterator[str]:
    """The records in `data` that are not all zeros."""
    size = layout.record_bytes
    for place in range(0, len(data) - size + 1, size):
        record = bytes(data[place : place + size])
        if any(record):
            yield _shown(layout, record)


def _shown(layout: Layout, record: bytes) -> str:
    found = list(layout.fields)
    return clean(" ".join(f"{n}={v}" for n, v in zip(found, layout.picker(found).one(record), strict=True)))
