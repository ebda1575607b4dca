"""What the readers take from each kind of record; `cext/core/fields.h` says what the fields mean.

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
    start_cpu_ns: int = 0


class BlockHead(NamedTuple):
    """The head of a block of events."""

    magic: int
    state: int
    used: int
    thread: int
    sequence: int
    first_ns: int
    last_ns: int
    dropped: int
    recorded: int = 0
    before_wall_ns: int = 0
    before_cpu_ns: int = 0
    own_wall_ns: int = 0
    own_cpu_ns: int = 0


class CompressedHead(NamedTuple):
    """The head of a compressed block of events."""

    magic: int
    transform: int
    stored_bytes: int
    raw_bytes: int
    used: int
    thread: int
    sequence: int
    first_ns: int
    last_ns: int
    dropped: int
    checksum: int
    head_checksum: int


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
    overwritten: int
    taken_bytes: int


class SiteRecord(NamedTuple):
    """A place in the program's code, in numbers."""

    file: int
    function: int
    line: int
    own: int
    collector: int
    interpreter: int = 0


class StackRecord(NamedTuple):
    """A site and the stack that it was called from, in numbers."""

    site: int
    outer: int
    cut: int = 0


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
    passed: int
    run_delay_ns: int
    gathered: int
    inside_wall_ns: int
    inside_cpu_ns: int
    name: int


class TaskRecord(NamedTuple):
    """A task that had a name when it was numbered."""

    number: int
    name: int
    thread: int


class ContextRecord(NamedTuple):
    """The trace context that a request came with, and the call that served it."""

    trace_high: int
    trace_low: int
    parent: int
    thread: int
    call: int
    flags: int


class CountRecord(NamedTuple):
    """Calls of the intrinsic of the record's number that were counted, not timed."""

    counted: int


class Overview(NamedTuple):
    """A sample of what a process has used."""

    time_ns: int
    cpu_ns: int
    user_ns: int
    system_ns: int
    max_rss_bytes: int
    minor_faults: int
    major_faults: int
    in_blocks: int
    out_blocks: int
    voluntary_switches: int
    involuntary_switches: int
    kind: int
    status: int
    run_delay_ns: int
    every_ns: int


class ChildRecord(NamedTuple):
    """An attempt to start a process."""

    start_ns: int
    end_ns: int
    pid: int
    how: int
    status: int
    error: int
    command: int
    why: int
    thread: int
    number: int
    cpu_ns: int = 0
    stack: int = 0
    memory_kib: int = 0
    system_ns: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    in_blocks: int = 0
    out_blocks: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    usage: int = 0
    starter_memory_kib: int = 0


class TraceRecord(NamedTuple):
    """A stretch of line trace, or several with the same target."""

    start_ns: int
    end_ns: int
    start_ticks: int
    last_ns: int
    last_ticks: int
    on_ns: int
    user_ns: int
    system_ns: int
    children_user_ns: int
    children_system_ns: int
    beyond: int
    left_out: int
    speeds_ticks: int
    speeds: int
    speed_ticks: int
    target: int
    depth: int
    stretches: int
    system: int


class FunctionRecord(NamedTuple):
    """A function as one thread, or one task of it, ran it."""

    calls: int
    ticks: int
    off_ticks: int
    own_ticks: int
    kind: int
    trace: int
    thread: int
    task: int
    file: int
    function: int
    module: int
    first_line: int
    own: int
    first_spot: int
    spots: int
    event_ticks: int


class LineRecord(NamedTuple):
    """A position in a line of a function, with its counts."""

    executed: int
    ticks: int
    back: int
    off_ticks: int
    event_ticks: int
    function: int
    line: int
    system_ns: int
    inner_ticks: int
    inner_off_ticks: int
    inner_event_ticks: int


class LoopRecord(NamedTuple):
    """A loop of a function."""

    passes: int
    function: int
    line: int
    level: int
    spot: int
    by_back: int


class CoveredRecord(NamedTuple):
    """A code object under statement coverage, in one context."""

    kind: int
    file: int
    function: int
    module: int
    first_line: int
    own: int
    context: int
    first_place: int
    places: int
    first_branch: int
    branches: int
    has_columns: int
    start_ns: int


class PlaceRecord(NamedTuple):
    """A position in a code object, and whether it was reached."""

    code: int
    line: int
    column: int
    executed: int


class BranchRecord(NamedTuple):
    """A conditional jump from one place to two others."""

    code: int
    origin: int
    next: int
    other: int
    went_next: int
    went_other: int


class MemoryRecord(NamedTuple):
    """The memory of a process, seen from outside, when its size had changed."""

    time_ns: int
    resident_bytes: int
    limit_bytes: int
    thread: int
    stack: int


class SampledCountRecord(NamedTuple):
    """What a counter of a thread has counted up to a sample, since the one before."""

    counted: int
    kind: int
    counter: int
    sample: int
    tid: int
    thread: int


class HeapRecord(NamedTuple):
    """What a process allocated, as a whole."""

    start_ns: int
    end_ns: int
    every_bytes: int
    live_bytes: int
    peak_bytes: int
    peak_ns: int
    peaks: int
    samples: int
    left_out: int


class HeapSiteRecord(NamedTuple):
    """The memory allocated from one stack."""

    bytes: int
    freed_bytes: int
    allocations: int
    frees: int
    peak_bytes: int
    peaks: int
    last_ns: int
    stack: int
    used: int


class SampleRecord(NamedTuple):
    """One or more samples of a thread that are alike, one after the other."""

    time_ns: int
    last_ns: int
    cpu_ns: int
    run_delay_ns: int
    tid: int
    thread: int
    samples: int
    state: int
    call: int
    intrinsic: int
    stack: int
    task: int
