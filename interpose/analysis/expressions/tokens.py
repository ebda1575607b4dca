"""What the names in an expression mean over an event: the one list of tokens, functions and operators.

A token is decided by a field of the event (`by`): one that stands for something, like the number of an intrinsic or of
a stack, and then once for each number; or it is of each call by itself; or of the process, and then once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from interpose.analysis.calls.groupings import experiment_label, host_label, terminal_label, user_label
from interpose.experiments.format.records import Event
from interpose.experiments.metadata.labels import Window, windows
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import UNKNOWN_SITE, Site

TransactionOf = Callable[[Process, Event], str]
FOUNDER = "founder"  # what PROCESS is of it: it has no lineage
OF_PROCESS, OF_CALL = "process", "call"
BY_NUMBER = ("intrinsic", "stack", "detail", "error", "thread")


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a process: when its founder began, the windows of labels, what names transactions."""

    start_ns: int
    labels: Mapping[str, Sequence[Window]] = field(default_factory=dict)
    transaction_of: TransactionOf | None = None


class Type(NamedTuple):
    """What a value is. Of a `number` also the powers of time and of size in it."""

    what: str
    time: int = 0
    size: int = 0

    def __str__(self) -> str:
        if self.what != "number":
            return _SHOWN[self.what]
        return _DIMENSIONS.get((self.time, self.size), "a number of an odd unit")


NUMBER, TIME, SIZE = Type("number"), Type("number", time=1), Type("number", size=1)
TEXT, TRUTH, FRAMES, STACK, LABELS, SEVERAL = map(Type, ("text", "truth", "frames", "stack", "labels", "several"))
_SHOWN = {
    "text": "a text",
    "truth": "a condition",
    "frames": "frames",
    "stack": "a stack",
    "labels": "labels",
    "several": "several",
}
_DIMENSIONS = {(0, 0): "a number", (1, 0): "a time", (0, 1): "a size", (-1, 1): "a rate", (-1, 0): "a frequency"}


@dataclass(frozen=True)
class Token:
    """A token: its type, what decides it, its meaning, and how it is read.

    `read` gets the process and the deciding number; or for a call the process, the event, its depth and the
    surroundings; or the process and its ending. `field` is the field of the event whose value the token is, if calls
    move `moves` (if given). A call in progress does not have tokens with `needs_end`.
    """

    type: Type
    by: str
    meaning: str
    read: Callable[..., Any] = lambda *_: None
    field: str = ""
    moves: str = ""
    needs_end: bool = False


class Function(NamedTuple):
    """A function of a text, which chooses frames: `chooses` says whether a site is one of them."""

    meaning: str
    is_pattern: bool
    chooses: Callable[[Site, Any], bool]


def _is(name: str, type_: Type, meaning: str, needs_end: bool = False, moves: str = "") -> Token:
    """The token that is the event's field `name`."""
    return Token(type_, OF_CALL, meaning, field=name, moves=moves, needs_end=needs_end)


def _made(read: Callable[[Event], int], meaning: str) -> Token:
    """The token that is a time made of an event's fields."""
    return Token(TIME, OF_CALL, meaning, lambda process, event, depth, around: read(event), needs_end=True)


def _site(process: Process, stack: int) -> Site:
    return (process.own_line(stack) if stack else None) or UNKNOWN_SITE


def _thread_id(process: Process, number: int) -> int:
    return next((each.record.tid for each in process.threads if each.number == number), 0)


def _self_wall_ns(event: Event) -> int:
    return max(event.wall_ns - event.inner_wall_ns, 0)


def _self_cpu_ns(event: Event) -> int:
    return max(event.cpu_ns - event.inner_cpu_ns, 0)


def _transaction(process: Process, event: Event, depth: int, around: Surroundings) -> str:
    return around.transaction_of(process, event) if around.transaction_of else ""


def _string(process: Process, number: int) -> str:
    return process.string(number)


TOKENS: dict[str, Token] = {
    "KIND": Token(TEXT, "intrinsic", "db, screen, file …", lambda process, number: process.intrinsic(number).kind),
    "INTRINSIC": Token(TEXT, "intrinsic", "its dotted name", lambda process, number: process.intrinsic(number).name),
    "WALL": _is("wall_ns", TIME, "time from beginning to end", needs_end=True),
    "CPU": _is("cpu_ns", TIME, "the part on a processor", needs_end=True),
    "SELF_WALL": _made(_self_wall_ns, "WALL without the recorded calls inside"),
    "SELF_CPU": _made(_self_cpu_ns, "CPU without the recorded calls inside"),
    "WAIT": _made(lambda event: max(_self_wall_ns(event) - _self_cpu_ns(event), 0), "SELF_WALL less SELF_CPU"),
    "START": Token(
        TIME,
        OF_CALL,
        "when it began, since the beginning of the recording",
        lambda process, event, depth, around: event.start_ns - around.start_ns,
    ),
    "END": Token(
        TIME,
        OF_CALL,
        "when it ended, since the beginning of the recording",
        lambda process, event, depth, around: event.start_ns + event.wall_ns - around.start_ns,
        needs_end=True,
    ),
    "BYTES": _is("bytes", SIZE, "bytes moved", moves="bytes"),
    "ROWS": _is("bytes", NUMBER, "rows moved", moves="rows"),
    "CALL": _is("call", NUMBER, "its number within the thread"),
    "PARENT": _is("parent", NUMBER, "number of the call around it, or 0"),
    "DEPTH": Token(
        NUMBER, OF_CALL, "number of recorded calls around it", lambda process, event, depth, around: depth
    ),
    "TASK": _is("task", NUMBER, "asynchronous task, or 0"),
    "THREAD": Token(NUMBER, "thread", "the kernel's number of the thread", _thread_id),
    "PID": Token(NUMBER, OF_PROCESS, "the process's number", lambda process, state: process.log.pid),
    "PROCESS": Token(
        TEXT, OF_PROCESS, "its lineage: 'founder', '_f1', …", lambda process, state: process.lineage or FOUNDER
    ),
    "EXPERIMENT": Token(TEXT, OF_PROCESS, "name of the experiment", lambda process, state: experiment_label(process)),
    "HOST": Token(TEXT, OF_PROCESS, "the host that it ran on", lambda process, state: host_label(process)),
    "USER": Token(TEXT, OF_PROCESS, "the user", lambda process, state: user_label(process)),
    "TERMINAL": Token(TEXT, OF_PROCESS, "the terminal, or 'none'", lambda process, state: terminal_label(process)),
    "STATE": Token(
        TEXT, OF_PROCESS, "'ended'; for a call in progress, how its process ended", lambda process, state: state
    ),
    "DETAIL": Token(TEXT, "detail", "statement, path or address", _string),
    "ERROR": Token(TEXT, "error", "error that the call raised: 'OSError', or 'OSError errno 2'; or ''", _string),
    "FILE": Token(TEXT, "stack", "file of your line", lambda process, stack: _site(process, stack).file),
    "LINE": Token(NUMBER, "stack", "number of your line", lambda process, stack: _site(process, stack).line),
    "FUNCTION": Token(
        TEXT, "stack", "function of your line", lambda process, stack: _site(process, stack).function
    ),
    "SITE": Token(
        TEXT,
        "stack",
        "your line: 'FILE:LINE'",
        lambda process, stack: f"{_site(process, stack).file}:{_site(process, stack).line}",
    ),
    "STACK": Token(STACK, "stack", "its recorded frames"),
    "LABEL": Token(LABELS, OF_CALL, "the labels with a window in which it began"),
    "TRANSACTION": Token(TEXT, OF_CALL, "name of its transaction, as in interpose transactions", _transaction),
}


def _is_in_file(site: Site, pattern: Any) -> bool:
    found: bool = pattern.is_in(site.file)
    return found


def _is_in_function(site: Site, pattern: Any) -> bool:
    found: bool = pattern.is_in(site.function)
    return found


def _is_line(site: Site, written: str) -> bool:
    file, _, line = written.rpartition(":")
    return str(site.line) == line and (site.file == file or site.file.endswith(f"/{file}"))


FUNCTIONS: dict[str, Function] = {
    "FNAME": Function("FNAME('orders'): frames whose file's name matches the regular expression", True, _is_in_file),
    "FUNC": Function("FUNC('^save_'): frames whose function's name matches", True, _is_in_function),
    "LINE": Function("LINE('orders.py:88'): frames at that line", False, _is_line),
}

SYNTAX = (
    ("|| && !", "or, and, not"),
    ("== != < <= > >=", "compare equal types; a time needs a unit: ns us ms s m h; a size: B KiB MiB GiB"),
    ("=~", "a text matches a regular expression, anywhere in it: DETAIL =~ '^select'"),
    ("+ - * / %", "arithmetic: WAIT > WALL / 2"),
    ("IN", "KIND IN ('db', 'net'); FUNC('save') IN STACK: the stack has all of them; 'load' IN LABEL"),
    ("SOME IN", "(FNAME('a.py'), 'save') SOME IN STACK: the stack has one of them; a text is a function's full name"),
    ("ORDERED IN", "('main', 'save') ORDERED IN STACK: each called the next, directly or not"),
    ("LEAF IN", "FUNC('save') LEAF IN STACK: the innermost frame is one of them"),
    ("a label's name", "it began in one of the label's windows"),
)


def surroundings(experiment: Experiment, transaction_of: TransactionOf | None = None) -> Surroundings:
    """Those of one experiment."""
    labels = {mark.name.upper(): windows(experiment.marks, mark.name) for mark in experiment.marks}
    return Surroundings(experiment.founder.log.start_ns, labels, transaction_of)
