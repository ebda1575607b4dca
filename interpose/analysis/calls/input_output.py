"""Input and output by file: how often each was read and written, in which sizes, and how long that took.

A file is what the detail of a call names: a path, a stream, an address, a pipe. Times are self times. Calls that raised
count as errors of their operation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.chosen import is_shell
from interpose.analysis.calls.rows import START_UP
from interpose.analysis.consolidation.sums import MOST, Sums
from interpose.errors import UsageError
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.process import Process

READ, WRITE, OPEN, CLOSE, OTHER = "read", "write", "open", "close", "other"
OPERATIONS = (READ, WRITE, OPEN, CLOSE, OTHER)
_BY = ("intrinsic", "stack", "detail", "bytes")
NAMELESS = "<other I/O>"
KIB = 1024
SIZES = (1, KIB, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, KIB**2, 10 * KIB**2, 100 * KIB**2, KIB**3)

# Operations by the last part of an intrinsic's name, of Python and of the C library; all others are `other`.
# So are calls of encrypted connections: the bytes are those of the socket's calls inside them.
_BY_NAME = {
    READ: "read readv pread preadv readall readinto readinto1 read1 readline peek recv recv_into recvfrom recvfrom_into"
    " recvmsg recvmsg_into"
    " __read_chk pread64 __pread64_chk preadv64 __recv_chk recvmmsg"
    " fread fread_unlocked __fread_chk fgets getline getdelim __getdelim",
    WRITE: "write writev pwrite pwritev send sendto sendmsg sendmsg_afalg sendall sendfile"
    " pwrite64 pwritev64 sendmmsg sendfile64 fwrite fwrite_unlocked fputs",
    OPEN: "open FileIO connect connect_ex accept socket memfd_create"
    " open64 __open_2 __open64_2 openat openat64 creat accept4 fopen fopen64",
    CLOSE: "close closerange detach shutdown fclose",
}
_OPERATION = {name: operation for operation, names in _BY_NAME.items() for name in names.split()}
_KINDS = ("file", "screen", "net", "process", "idle")
_PLACES = ("os", "io", "socket", "ssl", "fcntl", "mmap", "libc")  # for calls that are of neither files nor the network
_NOT_OF_FILES = frozenset(("fork", "forkpty", "wait", "waitpid", "waitid", "wait3", "wait4", "system", "popen", "kill"))


@dataclass
class Activity:
    """What the calls of one operation took and moved; `sizes` counts them by `SIZES`, which of them moved how much."""

    sums: Sums = field(default_factory=Sums)
    sizes: list[int] = field(default_factory=lambda: [0] * (len(SIZES) + 1))
    size_times_ns: list[int] = field(default_factory=lambda: [0] * (len(SIZES) + 1))
    least_bytes: int = MOST
    most_bytes: int = 0

    def add(self, sums: Sums, size_bytes: int | None) -> None:
        """Add calls that moved that many bytes each; None if unknown."""
        self.sums.add(sums)
        if size_bytes is None:
            return
        place = bisect_right(SIZES, size_bytes)
        self.sizes[place] += sums.calls
        self.size_times_ns[place] += sums.self_wall_ns
        self.least_bytes = min(self.least_bytes, size_bytes)
        self.most_bytes = max(self.most_bytes, size_bytes)

    def merge(self, other: Activity) -> None:
        """Add what another one has."""
        self.sums.add(other.sums)
        self.sizes = [mine + more for mine, more in zip(self.sizes, other.sizes, strict=True)]
        both = zip(self.size_times_ns, other.size_times_ns, strict=True)
        self.size_times_ns = [mine + more for mine, more in both]
        self.least_bytes = min(self.least_bytes, other.least_bytes)
        self.most_bytes = max(self.most_bytes, other.most_bytes)


@dataclass
class InputOutput:
    """The activity by file, operation and intrinsic; `has_sizes` where it is known how much each call moved."""

    has_sizes: bool = True
    found: dict[tuple[str, str, str], Activity] = field(default_factory=dict)

    def by_operation(self) -> dict[str, Activity]:
        """All files in one, those operations that were made."""
        made: dict[str, Activity] = {}
        for (_, operation, _), activity in self.found.items():
            made.setdefault(operation, Activity()).merge(activity)
        return {operation: made[operation] for operation in OPERATIONS if operation in made}

    def by_file(self) -> dict[str, dict[str, Activity]]:
        """The operations of each file."""
        made: dict[str, dict[str, Activity]] = {}
        for (file, operation, _), activity in self.found.items():
            made.setdefault(file, {}).setdefault(operation, Activity()).merge(activity)
        return made


def input_output(analysis: Analysis) -> InputOutput:
    """The input and output of an analysis."""
    try:
        return _input_output(analysis, _BY)
    except UsageError:  # without events, sizes of single calls are unknown
        if analysis.is_part:
            raise
        return _input_output(analysis, _BY[:-1])


def _input_output(analysis: Analysis, by: tuple[str, ...]) -> InputOutput:
    made = InputOutput(by == _BY)
    for process in analysis.experiment.processes:
        for intrinsic, file, size_bytes, sums in _calls(analysis, process, by):
            operation = operation_of(intrinsic)
            if operation:
                key = (file or NAMELESS, operation, intrinsic.name)
                made.found.setdefault(key, Activity()).add(sums, size_bytes)
    return made


def operation_of(intrinsic: Intrinsic) -> str:
    """Which operation the calls of an intrinsic are; none if they are no input or output."""
    place, _, name = intrinsic.name.rpartition(".")
    if intrinsic.kind not in _KINDS or name in _NOT_OF_FILES:
        return ""
    operation = _OPERATION.get(name, "")
    is_of_files = place.partition(".")[0] in _PLACES
    if intrinsic.kind in ("file", "net"):
        return operation if operation and is_of_files else OTHER
    return operation if is_of_files else ""


def _calls(
    analysis: Analysis, process: Process, by: tuple[str, ...]
) -> Iterator[tuple[Intrinsic, str, int | None, Sums]]:
    for (intrinsic, stack, detail, *size_bytes), sums in analysis.records(process, by).sums().items():
        if not (analysis.is_part and is_shell(intrinsic)):
            file = START_UP if process.is_start_up(stack) else process.string(detail)
            yield process.intrinsic(intrinsic), file, size_bytes[0] if size_bytes else None, sums
