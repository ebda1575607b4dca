"""Sentences about child processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.waits import PIPE
from interpose.analysis.time.turns import SELECTORS
from interpose.reports.formats.units import duration
from interpose.reports.sentences.wording import Wording

# Calls that start a child process.
_STARTS = frozenset(
    (
        *("subprocess.Popen", "subprocess.fork_exec", "multiprocessing.Process.start", "os.system"),
        *("os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp"),
    )
)


def children(words: Wording, finding: Finding) -> str:
    of = f" ({finding.about})" if finding.about else ""
    where, took = words.where(finding.first), words.took(finding)
    if finding.unit == PIPE:
        return f"The program waited at a pipe while child processes{of} ran, at {where} ({took})."
    started = _most_calls(each for each in finding.rows if each.intrinsic in _STARTS)
    waits = started or _waits(finding)
    mean = f", {duration(finding.wall_ns // waits)} each" if waits > 1 else ""
    if started > 1:
        return f"The program waited for {started:,} child processes{of} at {where}{mean} ({took})."
    times = f" {waits:,} times" if waits > 1 else ""
    starter = f" {words.line(finding.starter)} started them." if finding.starter else ""
    return f"The program waited{times} for child processes{of} at {where}{mean} ({took}).{starter}"


def _waits(finding: Finding) -> int:
    """How often it was waited, by the calls that took most; 0 if they are of a selector: a wait may take many."""
    most = finding.rows[0].intrinsic
    return 0 if most in SELECTORS else _most_calls(each for each in finding.rows if each.intrinsic == most)


def _most_calls(rows: Iterable[Calls]) -> int:
    """The calls of the intrinsic with the most: a start may contain another one."""
    calls: Counter[str] = Counter()
    for row in rows:
        calls[row.intrinsic] += row.calls
    return max(calls.values(), default=0)
