"""What each line of the program's own sources took in the calls that it made."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site


@dataclass
class Line:
    """The calls that were made from one line: how many, what they took, and of which intrinsics they were."""

    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    intrinsics: dict[str, int] = field(default_factory=dict)


@dataclass
class HotFile:
    """A source that calls were made from: one of its sites, the process that it was seen in, and its lines."""

    process: Process
    site: Site
    lines: dict[int, Line] = field(default_factory=lambda: defaultdict(Line))

    @property
    def wall_ns(self) -> int:
        """Wall time of the calls from all of its lines."""
        return sum(line.wall_ns for line in self.lines.values())


def hot_files(survey: Survey) -> list[HotFile]:
    """Your own sources with recorded calls, longest calls first."""
    found: dict[str, HotFile] = {}
    for each in survey.calls:
        if each.site is None or not each.site.own or each.kind == "idle":
            continue
        process = survey.analysis.experiment.processes[min(each.threads)[0]]
        line = found.setdefault(each.site.file, HotFile(process, each.site)).lines[each.site.line]
        line.calls += each.calls
        line.wall_ns += each.wall_ns
        line.cpu_ns += each.cpu_ns
        line.intrinsics[each.intrinsic] = line.intrinsics.get(each.intrinsic, 0) + each.calls
    return sorted(found.values(), key=lambda file: -file.wall_ns)
