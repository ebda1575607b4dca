"""Wall and CPU time by program, as a dashboard shows them: each source that calls were made from, and what ran between.

The rows add up to the thread time, and to its CPU time.
"""

from __future__ import annotations

from dataclasses import dataclass

from interpose.analysis.calls.groupings import program_label
from interpose.analysis.calls.profile import closing_rows
from interpose.analysis.calls.rows import CODE
from interpose.analysis.findings.survey import Survey
from interpose.analysis.recording.lineage import script_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import is_dynamic, path_of

BETWEEN = "between calls"


@dataclass
class Program:
    """A source, or a script's time between its calls (`part` says so), or time of no program."""

    name: str
    part: str = ""
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0


def programs(survey: Survey) -> list[Program]:
    """The programs of a survey, most CPU time first."""
    found: dict[tuple[str, str], Program] = {}

    def add(name: str, part: str, calls: int, wall_ns: int, cpu_ns: int) -> None:
        row = found.setdefault((name, part), Program(name, part))
        row.calls += calls
        row.wall_ns += wall_ns
        row.cpu_ns += cpu_ns

    processes = survey.analysis.experiment.processes
    names = {process: _name_of(process) for process in processes}
    for each in survey.calls:
        process = processes[min(each.threads)[0]]
        is_in_a_file = each.site is not None and not is_dynamic(each.site.file)
        name = path_of(process, each.site.file) if each.site and is_in_a_file else names[process]
        add(name, "", each.calls, each.wall_ns, each.cpu_ns)
    for account in survey.analysis.accounts:
        for share in account.threads.values():
            add(names[account.process], BETWEEN, 0, share.program_wall_ns, share.program_cpu_ns)
    for row in closing_rows(survey.analysis.total):
        if row.kind != CODE:
            add(row.kind or "", "", 0, row.sums.self_wall_ns, row.sums.self_cpu_ns)
    return sorted(found.values(), key=lambda row: (-row.cpu_ns, -row.wall_ns, row.name))


def _name_of(process: Process) -> str:
    """What the process ran: a script by its path, as in its lines; otherwise the arguments (`-m module`)."""
    script = script_of(process)
    return path_of(process, script) if script and not script.startswith("-") else program_label(process)
