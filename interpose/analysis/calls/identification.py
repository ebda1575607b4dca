"""What data collectors identified: the time of each module, section and statement, and where the rest was.

A call that no collector identified is in a pseudo-section by the origin of its code, and time outside calls has rows of
its own. So wall times of all rows add up to the thread time, and so do CPU times.
"""

from __future__ import annotations

from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import closing_rows
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.recording.installed import packages_above
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import UNKNOWN_SITE

SYSTEM = ".SYSTEM"
PYTHON, STDLIB, SITE, NATIVE, UNKNOWN = ".PYTHON", ".STDLIB", ".SITE", ".NATIVE", ".UNKNOWN"
NAMED = "named"  # what only says that a transaction got a name
BY = ("thread", "intrinsic", "stack")


class Identified(NamedTuple):
    """A module, one of its sections, a statement (0: unknown), and the collector that named it."""

    module: str
    section: str
    statement: int = 0
    collector: str = ""


def identified(analysis: Analysis) -> dict[Identified, Sums]:
    """The calls of an analysis by identification, and time outside calls, with their figures."""
    found: dict[Identified, Sums] = {}
    for process in analysis.experiment.processes:
        for (_, intrinsic, stack), sums in analysis.records(process, BY).sums().items():
            if process.intrinsic(intrinsic).transaction != NAMED:
                found.setdefault(identity_of(process, stack), Sums()).add(sums)
    for account in analysis.accounts:
        for share in account.threads.values():
            for row in closing_rows(share):
                found.setdefault(Identified(SYSTEM, f".{(row.kind or '').upper()}"), Sums()).add(row.sums)
    return found


def identity_of(process: Process, stack: int) -> Identified:
    """What a call from `stack` was identified as; else the pseudo-section of where it was made."""
    if not stack:
        keeps_stacks = process.log.settings.get("INTERPOSE_STACK", "own") != "none"
        return Identified(SYSTEM, NATIVE if keeps_stacks else UNKNOWN)
    site = next(iter(process.frames(stack)), UNKNOWN_SITE)
    if site.collector:
        return Identified(site.file, site.function, site.line, site.collector)
    if site == UNKNOWN_SITE:
        return Identified(SYSTEM, UNKNOWN)
    if site.own:
        return Identified(SYSTEM, PYTHON)
    return Identified(SYSTEM, SITE if packages_above(site.file) else STDLIB)
