"""Sentences about child processes."""

from __future__ import annotations

from collections import Counter

from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.waits import NATIVE_STARTS, PIPE, POLL
from interpose.analysis.recording.installed import package_of
from interpose.analysis.time.turns import SELECTORS
from interpose.reports.formats.units import duration
from interpose.reports.sentences.wording import Wording, mean_of

# Calls that start a child process.
_STARTS = frozenset(
    (
        *("subprocess.Popen", "subprocess.fork_exec", "multiprocessing.Process.start", "os.system"),
        *("os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp"),
    )
)


# Below this share of the wait, what recording took in the children is not worth a sentence.
_RECORDING_SHARE = 0.1


def children(words: Wording, finding: Finding) -> str:
    """The wait, and what recording took in the children if that is much."""
    is_much = finding.recording_ns > _RECORDING_SHARE * finding.wall_ns
    recording = f" Recording took {duration(finding.recording_ns)} in them (estimated)." if is_much else ""
    return _wait(words, finding) + recording


def _wait(words: Wording, finding: Finding) -> str:
    of = f" ({finding.about})" if finding.about else ""
    where, took = words.where(finding.first), words.took(finding)
    if finding.unit == PIPE:
        end = "pseudo-terminal" if all(row.detail.endswith("/ptmx") for row in finding.rows) else "pipe"
        return f"The program waited at a {end} while child processes{of} ran, at {where} ({took})."
    if finding.unit == POLL:
        package = package_of(finding.rows[0].caller.file) if finding.rows[0].caller else ""
        return f"At {where}, {package} slept again and again while child processes{of} ran ({took})."
    starter = f" {words.line(finding.starter)} started them." if finding.starter else ""
    started = _started(finding)
    if started > 1:
        waited = f"The program waited for {started:,} child processes{of} at {where}{mean_of(finding, started)}"
        return f"{waited} ({took}).{_forkserver(finding)}"
    most, waits, wall_ns = _waits(finding)
    is_all = duration(wall_ns) == duration(finding.wall_ns)
    times, mean = (f" {waits:,} times", f", {duration(wall_ns // waits)} each") if waits > 1 and is_all else ("", "")
    mostly = f", mostly in {waits:,} calls of {most}" if waits > 1 and not is_all else ""
    return f"The program waited{times} for child processes{of} at {where}{mean} ({took}){mostly}.{starter}"


def _forkserver(finding: Finding) -> str:
    """What one of the starts waited for, too."""
    return " One start also started multiprocessing's forkserver." if finding.is_forkserver else ""


def _started(finding: Finding) -> int:
    """How many children were started, by the intrinsic with the most starts, as one may contain another; native starts
    contain no others."""
    starts: Counter[str] = Counter()
    for row in finding.rows:
        if row.intrinsic in _STARTS | NATIVE_STARTS:
            starts["" if row.intrinsic in NATIVE_STARTS else row.intrinsic] += row.calls
    return starts.pop("", 0) + max(starts.values(), default=0)


def _waits(finding: Finding) -> tuple[str, int, int]:
    """The intrinsic that waited longest, how often, and how long; no number if children were started here, or of a
    selector: a wait may take many."""
    most = finding.rows[0].intrinsic
    rows = [row for row in finding.rows if row.intrinsic == most]
    is_often = most not in SELECTORS and not _started(finding)
    return most, sum(row.calls for row in rows) if is_often else 0, sum(row.wall_ns for row in rows)
