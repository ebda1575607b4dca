"""Consolidated records in an experiment: the file `consolidated`, beside a process's events or in place of them.

It is text in a zstandard frame: a line that describes the others, a line for each record, after the record that
contains it, and a line for each of the slowest events. Every line is a JSON value. All numbers are whole and not
negative, except the -1 that stands for no outer record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from interpose.errors import Caught, ExperimentError
from interpose.experiments.format.compressed import zstandard_module
from interpose.experiments.format.sequences import Ranges
from interpose.experiments.metadata.creating import replacing
from interpose.experiments.model.files import DataFile, OpenFile

NAME = "consolidated"
OTHER = 2**32 - 1  # the number that stands for all details beyond the limit of records
VERSION = 1
LARGEST_BYTES = 1 << 30  # of the text
LONGEST_LINE = 1 << 20
RECORDS_AT_MOST = 2_100_000
BUCKETS = 3776  # of histograms: of all times that 64 bits hold
COUNTS_AT_MOST = 20_000_000  # in the histograms of a file
DEEPEST = 10_000
LARGEST_FIGURE = 2**63 - 1
SLOWEST_AT_MOST = 10_000
OPEN_NUMBERS = 13  # of what a thread was in
_LARGEST = 2**64 - 1
_READ_BYTES = 1 << 16
_LEVEL = 3


class Found(NamedTuple):
    """A record: like calls, or transactions with one name.

    `outer` is the position of the record that contains it, or -1. `key` has the numbers of the common fields, `name` is
    that of a transaction, or 0. The figures are in the order that `Consolidated` gives. `walls` and `cpus` count times
    in buckets, or are None. In the `key` of a transaction that is not a call, only the thread is not 0.
    """

    outer: int
    key: tuple[int, ...]
    name: int
    figures: Sequence[int]
    walls: dict[int, int] | None
    cpus: dict[int, int] | None


@dataclass
class Consolidated:
    """What a file says about itself: the fields of keys, the figures, and the blocks of events that its records
    contain.

    `blocks` are the sequences of these blocks. `until` has, for each thread, its number and the instants on both clocks
    up to which its transactions are in the records; or `open` has what it was in (`Tracker.open_states`). `slowest` are
    the slowest events, with the names of their fields.
    """

    by: tuple[str, ...]
    figures: tuple[str, ...]
    blocks: Ranges = field(default_factory=Ranges)
    until: list[tuple[int, int, int]] = field(default_factory=list)
    open: list[tuple[int, ...]] = field(default_factory=list)
    slowest: list[dict[str, int]] = field(default_factory=list)


def write(directory: str, said: Consolidated, records: Iterable[Found]) -> None:
    """Replace the records of the process in `directory`, at once for all readers. Raises OSError."""
    with replacing(os.path.join(directory, NAME)) as file:
        _write(file, said, records)
        file.flush()
        os.fsync(file.fileno())


def _write(file: Any, said: Consolidated, records: Iterable[Found]) -> None:
    head = {"by": said.by, "figures": said.figures, "blocks": said.blocks.found, "until": said.until}
    head["open"] = said.open
    with zstandard_module().ZstdCompressor(level=_LEVEL).stream_writer(file, closefd=False) as into:
        into.write(_line({"consolidated": VERSION, **head}))
        for record in records:
            into.write(_line([*record[:4], _flat(record.walls), _flat(record.cpus)]))
        for event in said.slowest:
            into.write(_line(event))


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _flat(counts: Mapping[int, int] | None) -> list[int] | None:
    return None if counts is None else [number for pair in sorted(counts.items()) for number in pair]


def read(file: DataFile) -> tuple[Consolidated, list[Found]] | None:
    """The file's description and its records; None if it is missing or empty. Damage is noted."""
    with file.opened_if_there() as opened:
        if opened is None:
            return None
        try:
            lines = _lines(_Text(opened))
            said = _said(next(lines, b""))
            return said, _records(said, lines)
        except (_Damaged, OSError, ExperimentError, MemoryError) as error:
            file.damaged(str(error) or "too large")
        except zstandard_module().ZstdError as error:
            file.damaged(f"not a frame of zstandard: {error}")
    return None


class _Damaged(Caught):
    """What is wrong with the file."""


class _Text:
    """A file read from its beginning on, as zstandard reads."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._offset = 0

    def read(self, count: int) -> bytes:
        """The next bytes, up to `count`; none at the end."""
        data = self._file.read(self._offset, count)
        self._offset += len(data)
        return data


def _lines(file: _Text) -> Iterator[bytes]:
    """The lines of the text in the frame, of bounded length, and as many as are of a bounded text."""
    left, begun = LARGEST_BYTES, b""
    with zstandard_module().ZstdDecompressor(max_window_size=1 << 23).stream_reader(file) as text:
        while data := text.read(_READ_BYTES):
            left -= len(data)
            *whole, begun = (begun + data).split(b"\n")
            if left < 0 or len(begun) > LONGEST_LINE:
                raise _Damaged(f"a text of more than {LARGEST_BYTES:,} bytes, or a line of {LONGEST_LINE:,}")
            yield from whole
    if begun:
        raise _Damaged("cut short")


def _said(line: bytes) -> Consolidated:
    head = _value(line)
    if not isinstance(head, dict) or head.get("consolidated") != VERSION:
        version = head.get("consolidated") if isinstance(head, dict) else None
        raise _Damaged(f"of version {version!r}; this reads {VERSION}")
    by, figures, blocks, until = (head.get(name) for name in ("by", "figures", "blocks", "until"))
    if not (_are_texts(by) and _are_texts(figures) and isinstance(blocks, list) and isinstance(until, list)):
        raise _Damaged("its first line does not say what the others are")
    assert isinstance(by, list) and isinstance(figures, list)
    ranges = Ranges((first, last) for first, last in (_numbers(each, 2) for each in blocks))
    threads = [(number, ns, cpu_ns) for number, ns, cpu_ns in (_numbers(each, 3) for each in until)]
    opened = head.get("open", [])
    if not isinstance(opened, list):
        raise _Damaged("its first line does not say what was open")
    states = [tuple(_numbers(each, OPEN_NUMBERS)) for each in opened]
    return Consolidated(tuple(by), tuple(figures), ranges, threads, states)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) < 100 and all(isinstance(each, str) for each in value)


def _records(said: Consolidated, lines: Iterator[bytes]) -> list[Found]:
    found: list[Found] = []
    depths: list[int] = []
    counts = 0
    for line in lines:
        value = _value(line)
        if isinstance(value, dict):
            _take_slow(said, value)
        elif len(found) == RECORDS_AT_MOST:
            raise _Damaged(f"more than {RECORDS_AT_MOST:,} records")
        else:
            found.append(_record(said, value, len(found)))
            depths.append(depths[found[-1].outer] + 1 if found[-1].outer >= 0 else 0)
            counts += len(found[-1].walls or ()) + len(found[-1].cpus or ())
            if depths[-1] > DEEPEST or counts > COUNTS_AT_MOST:
                raise _Damaged(f"records more than {DEEPEST:,} deep, or histograms of more than {COUNTS_AT_MOST:,}")
    return found


def _record(said: Consolidated, value: Any, place: int) -> Found:
    if not isinstance(value, list) or len(value) != 6:
        raise _Damaged(f"line {place + 2} is not a record")
    outer, key, name, figures, walls, cpus = value
    if type(outer) is not int or not -1 <= outer < place:
        raise _Damaged(f"line {place + 2}: inside of record {outer!r}")
    (name,) = _numbers([name], 1)
    counts = [None if each is None else _counts(each) for each in (walls, cpus)]
    numbers = tuple(_numbers(figures, len(said.figures)))
    if max(numbers, default=0) > LARGEST_FIGURE:
        raise _Damaged(f"line {place + 2}: a figure that cannot be")
    return Found(outer, tuple(_numbers(key, len(said.by))), name, numbers, *counts)


def _take_slow(said: Consolidated, value: dict[str, Any]) -> None:
    if len(said.slowest) < SLOWEST_AT_MOST and len(value) < 100:
        said.slowest.append(dict(zip(value, _numbers(list(value.values()), len(value)), strict=True)))


def _counts(value: Any) -> dict[int, int]:
    if not isinstance(value, list) or len(value) % 2:
        raise _Damaged("a histogram that is none")
    numbers = _numbers(value, len(value))
    if len(value) > 2 * BUCKETS or max(numbers[::2], default=0) >= BUCKETS:
        raise _Damaged("a histogram with buckets that cannot be")
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def _numbers(value: Any, count: int) -> list[int]:
    if not isinstance(value, list) or len(value) != count:
        raise _Damaged(f"{count} numbers are not there")
    for each in value:
        if type(each) is not int or not 0 <= each <= _LARGEST:
            raise _Damaged(f"{str(each)[:40]!r} is not a number")
    return value


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"a line is not JSON: {error}") from None
