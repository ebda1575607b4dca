"""What the readers take from each kind of record; `cext/fields.h` says what the fields mean.

A field that an experiment does not have reads as 0, one that is not named here is not read.
"""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """One call that has ended."""

    start_ns: int
    wall_ns: int
    cpu_ns: int
    inner_wall_ns: int
    inner_cpu_ns: int
    bytes: int
    thread: int
    call: int
    parent: int
    intrinsic: int
    stack: int
    detail: int
    error: int
    task: int


class BlockHead(NamedTuple):
    """The head of a block of events."""

    magic: int
    state: int
    used: int
    thread: int
    sequence: int
    first_ns: int
    last_ns: int


class FileHead(NamedTuple):
    """The head of every other file."""

    magic: int
    version: int
    head_bytes: int
    record_bytes: int
    first: int
    window_bytes: int
    lost: int
    unrecorded: int


class SiteRecord(NamedTuple):
    """A place in the program's code, in numbers."""

    file: int
    function: int
    line: int
    own: int


class StackRecord(NamedTuple):
    """A site and the stack that it was called from, in numbers."""

    site: int
    outer: int


class OpenCall(NamedTuple):
    """A call in progress."""

    start_ns: int
    start_cpu_ns: int
    inner_wall_ns: int
    inner_cpu_ns: int
    call: int
    intrinsic: int
    stack: int
    detail: int


class ThreadRecord(NamedTuple):
    """A thread, without its calls in progress."""

    start_ns: int
    end_ns: int
    start_cpu_ns: int
    end_cpu_ns: int
    seen_ns: int
    made: int
    recorded: int
    dropped: int
    own_wall_ns: int
    own_cpu_ns: int
    tid: int
    main: int
    depth: int


class Overview(NamedTuple):
    """A sample of what a process has used."""

    time_ns: int
    cpu_ns: int
    kind: int
    status: int
