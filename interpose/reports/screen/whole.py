"""The report as one object, for machines: what the first screen says, with times in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from interpose.analysis.calls.profile import by_kind
from interpose.analysis.findings.engine import found_in
from interpose.analysis.profile.counts import Counted, counted_in
from interpose.analysis.profile.memory import Memory, memories
from interpose.analysis.profile.profiled import Sampling
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.analysis.recording.left_out import left_out
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.reports.screen.remarks import (
    libraries,
    not_followed,
    not_interposed,
    not_marked,
    stacks_not_known,
    warnings,
)
from interpose.reports.screen.screen import Screen, has_findings
from interpose.reports.screen.state import completeness, is_well
from interpose.reports.tables.findings import findings_table
from interpose.reports.tables.rows import profile_table


def whole_report(screen: Screen) -> dict[str, Any]:
    """Totals, the rows of the kinds (which add up to `thread_ns`), findings, memory in bytes with what
    it grew by in each line until its peak, what was counted, the samples of code, the CPU time of children that are
    not in the rows, the wait between calls without a known cause, which calls were left out (where that wait may have
    been), and warnings as sentences."""
    whole = screen.profile.total
    return {
        "elapsed_ns": elapsed_ns(screen.analysis),
        "thread_ns": whole.wall_ns,
        "overhead_in_calls_ns": whole.inside_wall_ns,
        "cpu_ns": whole.cpu_ns,
        "complete": is_well(completeness(screen.analysis)),
        "rows": _rows(screen),
        "findings": _findings(screen),
        "memory": [_memory(each) for each in memories(screen.experiment)],
        "counters": [_counter(each) for each in counted_in(screen.experiment)],
        "samples": _samples(screen.profiled.sampling),
        "children_not_followed": [vars(each) for each in unfollowed_cpu(screen.experiment)],
        "unexplained_wait_ns": screen.unseen.unexplained_ns,
        "not_recorded": left_out(screen.analysis.accounts),
        "warnings": list(warnings_of(screen)),
    }


def _rows(screen: Screen) -> list[dict[str, Any]]:
    made = replace(screen.profile, rows=by_kind(screen.profile))
    table = profile_table(made, "kind", screen.log)
    return [dict(table.values(row)) for row in table.rows]


def _samples(sampling: Sampling) -> dict[str, int]:
    """The samples of code, how many of these could not be read and, of these, how many have estimated callers."""
    return {"samples": sampling.samples, "unreadable": sampling.torn, "callers_estimated": sampling.estimated}


def _memory(memory: Memory) -> dict[str, Any]:
    rows = [
        {"function": site.function, "file": site.file, "line": site.line, "grew_bytes": grew_bytes, "waited": waited}
        for site, grew_bytes, waited in memory.growth
    ]
    return {
        "pid": memory.process.log.pid,
        "first_bytes": memory.first_bytes,
        "peak_bytes": memory.peak_bytes,
        "limit_bytes": memory.limit_bytes,
        "rows": rows,
    }


def _counter(counter: Counted) -> dict[str, Any]:
    return {
        "pid": counter.process.log.pid,
        "name": counter.name,
        "count": counter.total if counter.is_read else None,
        "not_sampled": counter.not_sampled if counter.is_read else None,
        "in_user_mode": counter.in_user_mode,
        "why_not": counter.why_not,
    }


def _findings(screen: Screen) -> list[dict[str, Any]]:
    if screen.survey is None or not has_findings(screen):
        return []
    table = findings_table(found_in(screen.survey), screen.survey.matters_ns, screen.log.cwd)
    return [dict(table.values(each)) for each in table.rows]


def warnings_of(screen: Screen) -> Iterator[str]:
    """What could not be done or is incomplete, in the words of the first screen."""
    told = completeness(screen.analysis)
    if not is_well(told):
        yield told
    for lines in (warnings, stacks_not_known, not_interposed, not_marked, libraries, not_followed):
        yield from (" ".join(line.split()).removeprefix("warning ") for line in lines(screen))
