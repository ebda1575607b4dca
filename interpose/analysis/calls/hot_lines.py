"""What each line of the program's own sources took in the calls that it made: the sums of its rows by line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.calls.rows import Row
from interpose.analysis.consolidation.sums import Sums
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site


@dataclass
class Line:
    """The calls that were made from one line: what they took, how many were of which intrinsic, and their self time
    without that of calls that waited for work."""

    sums: Sums = field(default_factory=Sums)
    intrinsics: Counter[str] = field(default_factory=Counter)
    busy_ns: int = 0

    def add(self, row: Row) -> None:
        """Take the calls of `row` in as well."""
        self.sums.add(row.sums)
        self.intrinsics[row.intrinsic or ""] += row.sums.calls
        self.busy_ns += 0 if row.is_idle else row.sums.self_wall_ns


@dataclass
class HotFile:
    """A source that calls were made from: one of its sites, a process that it was seen in, and its lines."""

    process: Process
    site: Site
    lines: dict[int, Line] = field(default_factory=lambda: defaultdict(Line))

    @property
    def busy_ns(self) -> int:
        """Self time of the calls from all of its lines, without waiting for work."""
        return sum(line.busy_ns for line in self.lines.values())


def hot_files(rows: Iterable[Row], experiment: Experiment) -> list[HotFile]:
    """Your own sources with recorded calls, longest calls first; `rows` are those by line."""
    process_of = {file: process for process in reversed(experiment.processes) for file in process.files()}
    found: dict[str, HotFile] = {}
    for row in rows:
        if row.is_of_calls and row.site and row.site.own and row.site.file in process_of:
            file = found.setdefault(row.site.file, HotFile(process_of[row.site.file], row.site))
            file.lines[row.site.line].add(row)
    return sorted(found.values(), key=lambda file: -file.busy_ns)
