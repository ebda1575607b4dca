"""Rules about waits outside of recorded calls: for CPU, for the interpreter lock, and without a known cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.findings.finding import BY_CHANCE_NS, Finding, Floor, found
from interpose.analysis.findings.survey import Survey
from interpose.analysis.findings.waits import GIL
from interpose.analysis.profile.profiled import NO_CODE, NO_PYTHON, application_line
from interpose.analysis.recording.left_out import left_out
from interpose.experiments.model.stacks import Site

NO_LOCK = "the interpreter has no lock"  # as cext/cpython/interpreter_lock.c says it
# In a thread that computes at least this share of the process's time, others may wait for the interpreter lock.
COMPUTES_SHARE = 0.05
INTERPRETER_LOCK = "interpreter lock"


def unseen_waits(survey: Survey) -> Iterator[Finding]:
    """Time outside of recorded calls and without a processor: others used the processors, or the cause is unknown. If
    several threads of a process computed, and waits for the interpreter lock were not recorded, it was probably that
    lock. Where calls were left out, no wait is reported as unexplained: the time may have been in those calls."""
    accounts = survey.analysis.accounts
    if not all("calls" in each.process.log.recorded for each in accounts):
        return
    waited = survey.unseen
    for_processor_ns = min(waited.processor_ns + waited.in_calls_ns, survey.matters_ns)
    if for_processor_ns > 0:
        yield found("wait for CPU", (), time_ns=for_processor_ns)
    if waited.unexplained_ns > 0 and not left_out(accounts):
        computing = max(_computing_threads(survey).values(), default=0)
        about = INTERPRETER_LOCK if computing > 1 else ""
        floor, time_ns = Floor(time_ns=BY_CHANCE_NS), waited.unexplained_ns
        made = found("unexplained wait", (), time_ns=time_ns, about=about, units=computing, unit="thread", floor=floor)
        yield made if about else replace(made, site=_waits_mostly_at(survey))


def _waits_mostly_at(survey: Survey) -> Site | None:
    """The line of the application with at least half of the unexplained wait, as far as it was sampled; `NO_PYTHON` if
    no Python code ran then."""
    lines = survey.profiled.code(application_line)
    site = max(lines, key=lambda each: lines[each].unexplained_ns, default=None)
    if site is None or 2 * lines[site].unexplained_ns < survey.unseen.unexplained_ns:
        return None
    return site if site == NO_PYTHON or site not in NO_CODE else None


def explained_ns(survey: Survey, finding: Finding) -> int:
    """The time that goes with a cause, and the waits for CPU that would go with it: code that computes less
    waits less, and so do fewer calls."""
    if finding.rule != "computing":
        waited_ns = sum(max(row.wall_ns - row.cpu_ns, 0) for row in finding.rows) if finding.units else 0
        return finding.wall_ns + min(waited_ns, survey.unseen.in_calls_ns)
    used_ns = max(survey.code_cpu_ns.total(), finding.wall_ns)
    return finding.wall_ns + survey.code_waited_for_cpu_ns * finding.wall_ns // used_ns


def _knows_interpreter_lock(account: ProcessAccount) -> bool:
    """Whether all GIL waits of a process are known: they were recorded, or its interpreter has no lock."""
    return any(each.kind == GIL and each.why_not in ("", NO_LOCK) for each in account.process.intrinsics)


def _computing_threads(survey: Survey) -> Counter[int]:
    """How many threads of each process computed for some of its time, where its interpreter lock may be the cause."""
    found: Counter[int] = Counter()
    accounts = survey.analysis.accounts
    for (process, _), cpu_ns in survey.code_cpu_ns.items():
        account = accounts[process]
        lived_ns = account.latest_ns - account.process.log.start_ns
        is_unknown = account.process.log.is_python and not _knows_interpreter_lock(account)
        found[process] += is_unknown and cpu_ns >= COMPUTES_SHARE * lived_ns > 0
    return found
