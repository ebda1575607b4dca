"""Reads log.xml and map.xml: what was recorded, how, and how the records are packed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO

from interpose import quantities
from interpose.errors import ExperimentError
from interpose.experiments.format.elements import LARGEST_XML_BYTES, Attributes, integer, parse_elements
from interpose.experiments.format.layout import TYPES, DataType, Field, Layout, LayoutError
from interpose.experiments.metadata.describe import BY_KERNEL, OF_PROGRAMS
from interpose.experiments.model.files import Damages, open_plain

READS_UP_TO = 4
ROOTS_AT_MOST = 256
LOWERED, FILTERED, WARNING, WITHIN = "level", "filter", "warning", "within"  # kinds of a LogEvent
FATES = (KEPT, PASSED_OVER) = ("kept", "passed over")
_TRACE_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
_ONE_IN = re.compile(r"(?:1/)?([0-9]{1,7})")
# Where the descriptions of records begin and end in a log, and what is read in their place if they are known.
_FIRST, _LAST, _KNOWN = b"<head>", b"</data>", b"<known"
_LARGEST_KNOWN_BYTES = 1 << 18


@dataclass(frozen=True)
class LogEvent:
    """An event of the run itself: `exit` with `status` or `signal`; `stopped` with `why`; `level` if calls of the
    intrinsic with that number were throttled to a `level`, because they took a `share` of the CPU time. `sample`,
    `filter` and `warning` have a `text`: the label, the filter from then on, what could not be done. `missed` says
    `what` was not recorded (calls, lines, coverage, transactions), and `why`; of transactions it has a `count`, of
    functions. `within` says that the process was started in a transaction that sampling `kept` or `passed over`, as
    `text` says; `unrecorded` that its child `pid` was not recorded, and `why`."""

    kind: str
    time_ns: int
    status: int | None = None
    signal: int | None = None
    why: str = ""
    intrinsic: int | None = None
    level: str = ""
    share: str = ""
    text: str = ""
    what: str = ""
    pid: int | None = None
    count: int | None = None


@dataclass
class Log:
    """The content of log.xml. Missing values are empty or 0."""

    version: int = 0
    collector: Attributes = field(default_factory=dict)
    system: Attributes = field(default_factory=dict)
    settings: Attributes = field(default_factory=dict)
    clock: Attributes = field(default_factory=dict)
    interposed: Attributes = field(default_factory=dict)
    resolution_ns: int = 0
    call_ns: int = 0
    inside_ns: int = 0
    statement_ns: int = 0
    head: Layout | None = None
    control: Layout | None = None
    control_offset: int = 0
    data: dict[str, DataType] = field(default_factory=dict)
    executable: str = ""
    cwd: str = ""
    user: Attributes = field(default_factory=dict)
    trace: Attributes = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    interpreter: dict[str, int] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    pid: int = 0
    ppid: int = 0
    pid_namespace: int = 0  # its inode; 0 if unknown
    start_ns: int = 0
    is_start_estimated: bool = False  # it was lost, and something of the process that began soon after stands in
    time_ns: int = 0
    elapsed_ns: int = 0  # how long the experiments took that were merged into this one; 0 in all others
    parent: str = ""
    events: list[LogEvent] = field(default_factory=list)

    @property
    def is_python(self) -> bool:
        """Whether the program is recorded as Python: of others, only calls of the C library are, or system calls."""
        return self.interposed.get("by") not in (OF_PROGRAMS, BY_KERNEL)

    @property
    def has_all_system_calls(self) -> bool:
        """Whether all kinds of system calls are recorded."""
        return self.interposed.get("by") == BY_KERNEL and not self.settings.get("INTERPOSE_KINDS")

    @property
    def trace_parent(self) -> tuple[str, str] | None:
        """The trace in which the process was started, and the span that started it, from TRACEPARENT: 32 and 16
        hexadecimal digits."""
        found = _TRACE_PARENT.fullmatch(self.trace.get("parent", ""))
        return (found[1], found[2]) if found else None

    def has_numbers_of(self, other: Log) -> bool:
        """Whether both read process numbers in the same PID namespace. Earlier versions did not record it; then yes."""
        return 0 in (self.pid_namespace, other.pid_namespace) or self.pid_namespace == other.pid_namespace

    def missed(self, what: str) -> list[str]:
        """Why some of `what` (calls, lines, coverage, profile) was not recorded."""
        return [event.why for event in self.events if event.kind == "missed" and event.what == what]

    @property
    def unmarked(self) -> dict[str, int]:
        """How many functions with @transaction are not marked, by the reason."""
        found: dict[str, int] = {}
        for event in self.events:
            if event.kind == "missed" and event.what == "transactions":
                found[event.why] = found.get(event.why, 0) + (event.count or 0)
        return found

    def why_unrecorded(self, pid: int, since_ns: int) -> str:
        """Why the child with this number, started then, was not recorded, as it said itself; empty if it did not."""
        said = [event for event in self.events if event.kind == "unrecorded" and event.pid == pid]
        return next((event.why for event in said if event.time_ns >= since_ns), "")

    @property
    def recorded(self) -> frozenset[str]:
        """What is recorded: calls, lines, coverage, profile; calls if the log does not say."""
        words = frozenset(self.settings.get("INTERPOSE", "").split(",")) - {""}
        return words - {"1"} | {"calls"} if "1" in words or not words else words

    @property
    def one_in(self) -> int:
        """N if one of N transactions was kept; 0 if all were."""
        found = _ONE_IN.fullmatch(self.settings.get("INTERPOSE_TRANSACTIONS", ""))
        return int(found[1]) if found and int(found[1]) > 1 else 0

    @property
    def within(self) -> str:
        """Whether the transaction in which the process was started was `kept` or `passed over`; empty without one."""
        found = [event.text for event in self.events if event.kind == WITHIN]
        return found[0] if found and found[0] in FATES else ""

    @property
    def interval(self) -> str:
        """The interval of CPU time at which calls were sampled; empty if all were recorded."""
        return self.settings.get("INTERPOSE_INTERVAL", "") if self.interval_ns else ""

    @property
    def interval_ns(self) -> int:
        """The same in nanoseconds; 0 if all were recorded."""
        try:
            return quantities.duration_ns(self.settings.get("INTERPOSE_INTERVAL", ""))
        except ValueError:
            return 0

    @property
    def profile_hz(self) -> float | None:
        """How many times a second its Python code is to be sampled; None if not."""
        text = self.settings.get("INTERPOSE_PROFILE", "off")
        try:
            return quantities.rate_hz(text) if "profile" in self.recorded else None
        except ValueError:
            return None


def read_log(path: str, place: str, damages: Damages) -> Log:
    """The content of the log.xml at `path`, up to where it is cut short or not well-formed.

    Raises ExperimentError if it is missing, is not the log of an experiment, or has a later version.
    """
    try:
        with open(open_plain(path), "rb") as file:
            data = file.read(LARGEST_XML_BYTES + 1)
    except OSError as error:
        raise ExperimentError(f"{place}: {error.strerror}") from error
    return parse_log(data, place, damages)


def parse_log(data: bytes, place: str, damages: Damages) -> Log:
    """The log in `data`, the content of the file."""
    if (known := _with_known_descriptions(data)) is not None:
        return known
    log = _parsed(data, place, damages).log
    if not log.version:
        raise ExperimentError(f"{place}: not the log of an experiment")
    return log


def _with_known_descriptions(data: bytes) -> Log | None:
    """The log in `data`, the greater part of which describes records as all runs do; None if it is not read in full
    without damage that way."""
    begin, end = data.find(_FIRST), data.rfind(_LAST) + len(_LAST)
    if not 0 <= begin < end <= _LARGEST_KNOWN_BYTES or _KNOWN in data:
        return None
    described = _descriptions(data[begin:end])
    if described is None:
        return None
    damages = Damages()
    try:
        reader = _parsed(data[:begin] + _KNOWN + b"/>" + data[end:], "", damages, described)
    except ExperimentError:
        return None
    return reader.log if reader.took_known and not damages.found else None


@lru_cache(maxsize=16)
def _descriptions(data: bytes) -> Log | None:
    """A log of the descriptions of records in `data` alone; None if these are damaged, or something else is there."""
    damages = Damages()
    try:
        reader = _parsed(b'<experiment version="1">' + data + b"</experiment>", "", damages)
    except ExperimentError:
        return None
    log = reader.log
    alone = Log(version=1, head=log.head, control=log.control, control_offset=log.control_offset, data=log.data)
    return log if log == alone and not damages.found and reader.is_between else None


def _parsed(data: bytes, place: str, damages: Damages, known: Log | None = None) -> _LogReader:
    reader = _LogReader(place, damages, known)
    parse_elements(BytesIO(data), place, damages, reader.begin, reader.text, reader.end)
    return reader


class _LogReader:
    """Gathers a Log from the elements of a log.xml. `known` has the descriptions that one element stands for."""

    def __init__(self, place: str, damages: Damages, known: Log | None) -> None:
        self.log = Log()
        self.took_known = False
        self._known = known
        self._place = place
        self._damages = damages
        self._depth = 0
        self._argument: list[str] | None = None
        self._open: list[_Description] = []
        self._inner: tuple[Layout, Attributes] | None = None

    @property
    def is_between(self) -> bool:
        """Whether no description is read in part, so that what follows does not depend on what was read."""
        return self._inner is None

    def begin(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if name != "experiment" and not self.log.version:
            raise ExperimentError(f"{self._place}: not the log of an experiment")
        if name in _DESCRIBED:
            self._open.append(_Description(name, attributes))
        elif element := _ELEMENTS.get(name):
            element(self, attributes)

    def text(self, text: str) -> None:
        if self._argument is not None:
            self._argument.append(text)

    def end(self, name: str) -> None:
        self._depth -= 1
        if name == "argument" and self._argument is not None:
            self.log.arguments.append("".join(self._argument))
            self._argument = None
        elif self._open and name == self._open[-1].element:
            description = self._open.pop()
            try:
                self._described(name, description)
            except LayoutError as error:
                self._damages.add(self._place, f"{name} {description.attributes.get('name', '')}: {error}")

    def _number(self, attributes: Attributes, name: str) -> int:
        text = attributes.get(name, "0")
        number = integer(text)
        if number is None or number < 0:
            self._damages.add(self._place, f"{name} is not a number")
            return 0
        return number

    def _experiment(self, attributes: Attributes) -> None:
        version = self._number(attributes, "version")
        if version > READS_UP_TO:
            raise ExperimentError(f"{self._place}: format {version}; this version reads up to {READS_UP_TO}")
        self.log.version = version

    def _root(self, attributes: Attributes) -> None:
        path = attributes.get("path", "")
        if path and len(self.log.roots) < ROOTS_AT_MOST:
            self.log.roots.append(path)

    def _interpreter(self, attributes: Attributes) -> None:
        self.log.interpreter = {name: self._number(attributes, name) for name in attributes}

    def _library(self, attributes: Attributes) -> None:
        path = attributes.get("path", "")
        if path and len(self.log.libraries) < ROOTS_AT_MOST:
            self.log.libraries.append(path)

    def _setting(self, attributes: Attributes) -> None:
        self.log.settings[attributes.get("name", "?")] = attributes.get("value", "")

    def _clock(self, attributes: Attributes) -> None:
        self.log.clock.update(attributes)
        self.log.resolution_ns = self._number(attributes, "resolution_ns")

    def _cost(self, attributes: Attributes) -> None:
        self.log.call_ns = self._number(attributes, "call_ns")
        self.log.inside_ns = self._number(attributes, "inside_ns")
        if "statement_ns" in attributes:
            self.log.statement_ns = self._number(attributes, "statement_ns")

    def _command(self, attributes: Attributes) -> None:
        self.log.executable = attributes.get("executable", "")
        self.log.cwd = attributes.get("cwd", "")

    def _begin_argument(self, attributes: Attributes) -> None:
        self._argument = []

    def _take_known(self, attributes: Attributes) -> None:
        """Take over the known descriptions, directly in the root element: there they mean what they mean alone."""
        if self._known and self._depth == 2 and self.is_between:
            self.log.head = self._known.head
            if self._known.control:
                self.log.control, self.log.control_offset = self._known.control, self._known.control_offset
            self.log.data.update(self._known.data)
            self.took_known = True

    def _process(self, attributes: Attributes) -> None:
        self.log.pid = self._number(attributes, "pid")
        self.log.ppid = self._number(attributes, "ppid")
        self.log.pid_namespace = self._number(attributes, "pid_namespace")
        self.log.start_ns = self._number(attributes, "start_ns")
        self.log.time_ns = self._number(attributes, "time_ns")
        self.log.elapsed_ns = self._number(attributes, "elapsed_ns")
        self.log.parent = attributes.get("parent", "")

    def _event(self, attributes: Attributes) -> None:
        self.log.events.append(
            LogEvent(
                kind=attributes.get("kind", ""),
                time_ns=self._number(attributes, "time_ns"),
                status=integer(attributes.get("status", "")),
                signal=integer(attributes.get("signal", "")),
                why=attributes.get("why", ""),
                intrinsic=integer(attributes.get("intrinsic", "")),
                level=attributes.get("level", ""),
                share=attributes.get("share", ""),
                text=attributes.get("text", ""),
                what=attributes.get("what", ""),
                pid=integer(attributes.get("pid", "")),
                count=integer(attributes.get("count", "")),
            )
        )

    def _field(self, attributes: Attributes) -> None:
        kind = attributes.get("type", "")
        if self._open and kind in TYPES:
            self._open[-1].fields.append(
                Field(attributes.get("name", ""), kind, self._number(attributes, "offset"))
            )

    def _described(self, name: str, description: _Description) -> None:
        """Take a description over, now that all of it was read. Raises LayoutError."""
        if name == "head":
            end = max((field.end for field in description.fields), default=0)
            self.log.head = _layout(tuple(description.fields), end)
        elif name == "control":
            end = max((field.end for field in description.fields), default=0)
            self.log.control = _layout(tuple(description.fields), end)
            self.log.control_offset = self._number(description.attributes, "offset")
        elif name == "data":
            inner, self._inner = self._inner, None
            data = self._data_type(description, inner)
            self.log.data[data.name] = data
        else:
            size = self._number(description.attributes, "bytes" if name == "block" else "record_bytes")
            self._inner = _layout(tuple(description.fields), size), description.attributes

    def _data_type(self, description: _Description, described: tuple[Layout, Attributes] | None) -> DataType:
        attributes = description.attributes
        record_bytes = self._number(attributes, "record_bytes")
        inner, inner_attributes = described or (None, {})
        return DataType(
            name=attributes.get("name", ""),
            layout=_layout(tuple(description.fields), record_bytes) if record_bytes else None,
            head_bytes=self._number(attributes, "head_bytes"),
            block_bytes=self._number(attributes, "block_bytes"),
            inner=inner,
            inner_offset=self._number(inner_attributes, "offset"),
            inner_records=self._number(inner_attributes, "records"),
        )


class _Description:
    """The fields of one description while it is read."""

    def __init__(self, element: str, attributes: Attributes) -> None:
        self.element = element
        self.attributes = attributes
        self.fields: list[Field] = []


_ELEMENTS: dict[str, Callable[[_LogReader, Attributes], None]] = {
    "experiment": _LogReader._experiment,
    "collector": lambda reader, attributes: reader.log.collector.update(attributes),
    "system": lambda reader, attributes: reader.log.system.update(attributes),
    "user": lambda reader, attributes: reader.log.user.update(attributes),
    "trace": lambda reader, attributes: reader.log.trace.update(attributes),
    "root": _LogReader._root,
    "interpreter": _LogReader._interpreter,
    "library": _LogReader._library,
    "setting": _LogReader._setting,
    "clock": _LogReader._clock,
    "interposed": lambda reader, attributes: reader.log.interposed.update(attributes),
    "cost": _LogReader._cost,
    "field": _LogReader._field,
    "command": _LogReader._command,
    "argument": _LogReader._begin_argument,
    "process": _LogReader._process,
    "event": _LogReader._event,
    "known": _LogReader._take_known,
}
_DESCRIBED = frozenset(("head", "control", "data", "block", "table"))


@lru_cache(maxsize=64)
def _layout(fields: tuple[Field, ...], record_bytes: int) -> Layout:
    """The layout of these fields; all runs have the same few. Raises LayoutError."""
    return Layout(fields, record_bytes)
