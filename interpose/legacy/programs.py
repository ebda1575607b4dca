"""Wall and CPU time by program, as a dashboard shows them: each source that calls were made from, and what ran between.

The rows add up to the thread time, and to its CPU time.
"""

from __future__ import annotations

from dataclasses import dataclass

from interpose.analysis.calls.profile import PROGRAM, closing_rows, program_label
from interpose.analysis.findings.survey import Survey

BETWEEN = "between calls"


@dataclass
class Program:
    """A source, what a script did between its calls (`part` says so), or what is of no program."""

    name: str
    part: str = ""
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0


def programs(survey: Survey) -> list[Program]:
    """The programs of what was surveyed, those that took most CPU time first."""
    found: dict[tuple[str, str], Program] = {}

    def add(name: str, part: str, calls: int, wall_ns: int, cpu_ns: int) -> None:
        row = found.setdefault((name, part), Program(name, part))
        row.calls += calls
        row.wall_ns += wall_ns
        row.cpu_ns += cpu_ns

    for each in survey.calls:
        file = each.site.file if each.site else program_label(survey.experiment.processes[min(each.threads)[0]])
        add(file, "", each.calls, each.wall_ns, each.cpu_ns)
    for account in survey.accounts:
        for share in account.threads.values():
            add(program_label(account.process), BETWEEN, 0, share.program_wall_ns, share.program_cpu_ns)
    for row in closing_rows(survey.total):
        if row.kind != PROGRAM:
            add(row.kind or "", "", 0, row.sums.self_wall_ns, row.sums.self_cpu_ns)
    return sorted(found.values(), key=lambda row: (-row.cpu_ns, -row.wall_ns, row.name))
