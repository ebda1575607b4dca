"""Rules about what to record next, for what this recording does not tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from interpose.analysis.calls.profile import program_label
from interpose.analysis.findings.finding import Finding, found
from interpose.analysis.findings.survey import Survey, total_of

# From here on it is the program's own work that is to be looked at before its calls.
HOT = 0.3


def hot_program(survey: Survey) -> Iterator[Finding]:
    """A program whose own CPU time, between its calls, is much of the time: its lines tell what it does there."""
    if any("lines" in each.process.log.settings.get("INTERPOSE", "").split(",") for each in survey.analysis.accounts):
        return
    used: Counter[str] = Counter()
    for each in survey.analysis.accounts:
        used[program_label(each.process)] += sum(share.program_cpu_ns for share in each.threads.values())
    for program, cpu_ns in used.most_common(1):
        if cpu_ns >= HOT * survey.matters_ns:
            yield found("hot program", (), time_ns=cpu_ns, about=program)


def calls_without_lines(survey: Survey) -> Iterator[Finding]:
    """Calls of which no line was recorded, because it was to be so."""
    settings = (each.process.log.settings for each in survey.analysis.accounts)
    if any(each.get("INTERPOSE_STACK") == "none" for each in settings):
        rows = [each for each in survey.calls if each.site is None]
        if total_of(rows)[0]:
            yield found("no lines", rows)
