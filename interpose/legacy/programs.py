"""Wall and CPU time by program, as a dashboard shows them: each source that calls were made from, and what ran between.

The rows add up to the thread time, and to its CPU time. If transactions were sampled and are not estimated, that of
the others is a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interpose.analysis.calls.groupings import program_label
from interpose.analysis.calls.profile import closing_rows
from interpose.analysis.calls.rows import CODE, IN_PROGRESS, NOT_KEPT
from interpose.analysis.findings.survey import Survey
from interpose.analysis.recording.lineage import script_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import is_dynamic, normal_path_of, path_of
from interpose.experiments.model.stacks import Site

BETWEEN = "between calls"


@dataclass
class Program:
    """A source, or a script's time between its calls (`part` says so), or time of no program. Without `is_counted`
    there may be more calls, in transactions that were not sampled."""

    name: str
    part: str = ""
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    is_counted: bool = True


def programs(survey: Survey) -> list[Program]:
    """The programs of a survey, most CPU time first."""
    found: dict[tuple[str, str], Program] = {}

    def add(name: str, part: str, calls: int, wall_ns: int, cpu_ns: int) -> None:
        row = found.setdefault((name, part), Program(name, part))
        row.calls += calls
        row.wall_ns += wall_ns
        row.cpu_ns += cpu_ns

    processes = survey.analysis.experiment.processes
    made = [(processes[min(calls.threads)[0]], calls) for calls in survey.calls]
    sources = [_source_of(process, calls.site) for process, calls in made]
    different = set(sources)
    names = {process: _name_of(process, different) for process in processes}
    for (process, calls), source in zip(made, sources, strict=True):
        add(source or names[process], "", calls.calls, calls.wall_ns, calls.cpu_ns)
    for account in survey.analysis.accounts:
        for share in account.threads.values():
            add(names[account.process], BETWEEN, 0, share.program_wall_ns, share.program_cpu_ns)
    for row in closing_rows(survey.analysis.total):
        if row.kind not in (CODE, IN_PROGRESS):  # the calls of the survey include those in progress
            add(row.kind or "", "", 0, row.sums.self_wall_ns, row.sums.self_cpu_ns)
    others = survey.not_kept
    if others.seen > others.kept:
        add(NOT_KEPT, "", 0, others.passed_wall_ns, others.passed_cpu_ns)
        for each in found.values():
            each.is_counted = not each.calls and each.name != NOT_KEPT
    return sorted(found.values(), key=lambda row: (-row.cpu_ns, -row.wall_ns, row.name))


def _source_of(process: Process, site: Site | None) -> str:
    """The source with the line of a call; empty if that is in no file."""
    return path_of(process, site.file) if site is not None and not is_dynamic(site.file) else ""


def _name_of(process: Process, sources: Iterable[str]) -> str:
    """What the process ran: a script by its path, as in its lines; a module or an archive by its source, if calls were
    made from that; otherwise the arguments (`-m module`)."""
    script = script_of(process)
    option, _, module = script.partition(" ")
    name = normal_path_of(process, script) if script and not script.startswith("-") else program_label(process)
    place = f"/{module.replace('.', '/')}" if option == "-m" else name
    ends = (f"{place}/__main__.py", f"{place}.py") if option == "-m" else (f"{place}/__main__.py",)
    return min((source for source in sources if source.endswith(ends)), default=name)
