"""Writes an experiment that no program recorded: the consolidated records of several.

Its files are like a recorder's except for their layouts, which log.xml describes anyway: a number takes eight bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpose.experiments.format import consolidated
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.layout import DataType, Field, Layout
from interpose.experiments.format.records import (
    BlockHead,
    Event,
    FileHead,
    Overview,
    SiteRecord,
    StackRecord,
    ThreadRecord,
)
from interpose.experiments.format.written_tables import records_file, strings_file
from interpose.experiments.metadata import describe, names
from interpose.experiments.metadata.log import READS_UP_TO, Log
from interpose.experiments.metadata.map import Intrinsic, map_document

WINDOW_BYTES = 64 * 1024
_TABLES: dict[str, type[Any]] = {
    "sites": SiteRecord,
    "stacks": StackRecord,
    "threads": ThreadRecord,
    "overview": Overview,
}


@dataclass
class Written:
    """A process to write: its log where known, its records, and what their numbers refer to.

    Tables begin with number 1; intrinsics have one number for each kind of their calls.
    """

    log: Log
    said: Consolidated
    records: Iterable[Found]
    intrinsics: list[Intrinsic] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    sites: list[SiteRecord] = field(default_factory=list)
    stacks: list[StackRecord] = field(default_factory=list)
    threads: list[ThreadRecord] = field(default_factory=list)
    overview: list[Overview] = field(default_factory=list)


def write_process(directory: str, written: Written) -> None:
    """Write the process into `directory`, which is there and empty. Raises OSError."""
    files = {
        "strings": strings_file(READS_UP_TO, _HEAD, _data_type("strings"), _encoded(written.strings)),
        "sites": records_file(READS_UP_TO, _HEAD, _data_type("sites"), written.sites),
        "stacks": records_file(READS_UP_TO, _HEAD, _data_type("stacks"), written.stacks),
        "threads": records_file(READS_UP_TO, _HEAD, _data_type("threads"), written.threads),
        "overview": records_file(READS_UP_TO, _HEAD, _data_type("overview"), written.overview),
        "events": b"",
        names.MAP: map_document(written.intrinsics),
        names.LOG: _log(written.log),
    }
    consolidated.write(directory, written.said, written.records)
    for name, data in files.items():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(os.path.join(directory, name), flags, 0o600), "wb") as file:
            file.write(data)


def _layout(record: type[Any]) -> Layout:
    return Layout([Field(name, "u64", 8 * place) for place, name in enumerate(record._fields)], 8 * len(record._fields))


_HEAD = _layout(FileHead)
_HEAD_BYTES = _HEAD.record_bytes


def _data_type(name: str) -> DataType:
    return DataType(name, _layout(_TABLES[name]) if name in _TABLES else None, _HEAD_BYTES, WINDOW_BYTES)


def _encoded(texts: Sequence[str]) -> Iterable[bytes]:
    return (text.encode("utf-8", "replace") for text in texts)


def _log(log: Log) -> bytes:
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<experiment version="{READS_UP_TO}">']
    lines += [describe.element(tag, 1, **values) for tag, values in _about(log).items()]
    lines += ["  <settings>"]
    lines += [describe.element("setting", 2, name=name, value=value) for name, value in log.settings.items()]
    cost = {"call_ns": log.call_ns, "inside_ns": log.inside_ns}
    if log.statement_ns:
        cost["statement_ns"] = log.statement_ns
    lines += ["  </settings>", describe.element("cost", 1, **cost)]
    lines += [*_group("head", _HEAD), *_data()]
    lines.append(describe.opening("command", 1, executable=log.executable, cwd=log.cwd))
    lines += [f"    <argument>{describe.escape(argument)}</argument>" for argument in log.arguments]
    process = {"pid": log.pid, "ppid": log.ppid, "start_ns": log.start_ns, "time_ns": log.time_ns}
    if log.elapsed_ns:
        process["elapsed_ns"] = log.elapsed_ns
    lines += ["  </command>", describe.element("process", 1, **process, parent="", lineage="")]
    return "\n".join([*lines, "</experiment>", ""]).encode()


def _about(log: Log) -> dict[str, dict[str, str]]:
    """The elements that are kept as they were."""
    found = {"collector": log.collector, "system": log.system, "user": log.user, "clock": log.clock}
    return {tag: dict(values) for tag, values in found.items() if values}


def _data() -> Iterable[str]:
    """The descriptions of the files."""
    same = {"head_bytes": _HEAD_BYTES, "block_bytes": WINDOW_BYTES}
    yield describe.element("data", 1, name="strings", record_bytes=0, **same)
    for name, record in _TABLES.items():
        layout = _layout(record)
        yield from _group("data", layout, name=name, record_bytes=layout.record_bytes, **same)
    events, block = _layout(Event), _layout(BlockHead)
    about = {"record_bytes": events.record_bytes, "head_bytes": 0, "block_bytes": WINDOW_BYTES}
    yield describe.opening("data", 1, name="events", **about)
    yield from _group("block", block, 2, bytes=block.record_bytes)
    yield from _group("data", events)[1:]


def _group(tag: str, layout: Layout, depth: int = 1, **attributes: object) -> list[str]:
    fields = [
        describe.element("field", depth + 1, name=each.name, type=each.type, offset=each.offset, title=each.name)
        for each in layout.fields.values()
    ]
    return [describe.opening(tag, depth, **attributes), *fields, f"{'  ' * depth}</{tag}>"]
