"""The verdict: what took the time, in one to three sentences, each with its place, its count, its time and a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interpose.analysis.findings.engine import OF_THE_MACHINE
from interpose.analysis.findings.finding import BY_CHANCE_NS, Calls, Finding
from interpose.analysis.findings.survey import Times
from interpose.analysis.findings.waits import NOT_SLOW
from interpose.analysis.time.turns import SELECTORS
from interpose.kinds import NATIVE
from interpose.reports.formats.short_paths import Shown
from interpose.reports.formats.table import wrapped
from interpose.reports.formats.units import count, duration, percent
from interpose.reports.sentences.sentences import Sentences

BY_FINDING = "interpose report --by finding"
# What could save less than this share of the time is not said first; `--by finding` has it.
WORTH = 0.05
# Below this share there is no single cause to be named.
A_CAUSE = 0.1
MOSTLY = 0.9
# A kind of calls that waited for more than this share of the time stands out, even if nothing tells why.
MOST = 0.5
FINDINGS = 3
_INDENT = "  "

Kind = tuple[str, str]  # and the intrinsic


def verdict(
    times: Times, findings: Sequence[Finding], cwd: str, width: int, shown: Shown | None = None
) -> Iterator[str]:
    """The lines of the verdict, wrapped at `width`; no sentence is cut. `shown` notes the lines of code they name."""
    if idle := _idle(times):
        yield from wrapped(idle, width, _INDENT)
    worth = [each for each in findings if each.bound_ns >= WORTH * times.matters_ns]
    words = Sentences(worth, cwd, times.matters_ns, shown)
    is_cause = bool(worth) and worth[0].bound_ns >= A_CAUSE * times.matters_ns
    larger = _larger(times, findings, worth[0].wall_ns) if is_cause else ""
    if larger or not is_cause:
        yield from wrapped(larger or _nothing(times), width, _INDENT)
    for place, each in enumerate(worth[:FINDINGS]):
        label = "Also" if place else "Slowest" if is_cause and not larger else "Largest"
        yield from wrapped(f"{label}: {words.with_advice(each)}", width, _INDENT)
    if len(findings) > len(worth[:FINDINGS]):
        more = count(len(findings) - len(worth[:FINDINGS]), "more finding")
        yield from wrapped(f"{more}: {BY_FINDING}", width, _INDENT)


def _nothing(times: Times) -> str:
    """That no cause is large: in a short run a tenth may be less than rules look at. Where calls of transactions are
    unknown, it is said of what is known."""
    short = f" and {BY_CHANCE_NS // 1_000_000} ms" if A_CAUSE * times.matters_ns < BY_CHANCE_NS else ""
    where = " in what was recorded" if times.not_kept_ns else ""
    unknown = f" The calls in another {duration(times.not_kept_ns)} are unknown." if times.not_kept_ns else ""
    if waits := _waits(times):
        return f"No single cause is known{where}: {waits}.{unknown}"
    return f"Nothing stands out{where}: no single cause takes {100 * A_CAUSE:.0f} % of the time{short}.{unknown}"


def _waits(times: Times) -> str:
    """The kind of calls that waited for most of the time, and the one that did so longest; empty for none."""
    return _waited_most(times, times.waits_ns, max(MOST * times.matters_ns, BY_CHANCE_NS))


def _larger(times: Times, findings: Sequence[Finding], known_ns: int) -> str:
    """That calls of one kind waited for longer than the first finding's, and are in none; empty if there are none.
    Of what they waited, all that the program waited for CPU may be theirs."""
    for_processor_ns = sum(each.bound_ns for each in findings if each.rule == OF_THE_MACHINE)
    least_ns = for_processor_ns + max(known_ns + 1, A_CAUSE * times.matters_ns, BY_CHANCE_NS)
    waits = _waited_most(times, _in_no_finding(times, findings), least_ns)
    return f"No finding explains the largest wait: {waits}." if waits else ""


def _in_no_finding(times: Times, findings: Sequence[Finding]) -> Counter[Kind]:
    """The waits that are in no evidence, without those that mostly wait for other threads, tasks, processes or users,
    or for work."""
    known: Counter[Kind] = Counter()
    rows = sorted((row for each in findings for row in each.rows), key=_waited_ns)
    # The last, which waited longest: of calls of which one finding has all, another may have those that failed.
    for row in {replace(row, is_part=False).likeness: row for row in rows}.values():
        known[row.kind, row.intrinsic] += _waited_ns(row)
    return Counter({each: left_ns for each, left_ns in (times.waits_ns - known).items() if not _is_elsewhere(*each)})


def _waited_ns(row: Calls) -> int:
    return max(row.wall_ns - row.cpu_ns, 0)


def _is_elsewhere(kind: str, intrinsic: str) -> bool:
    return kind in NOT_SLOW or intrinsic in SELECTORS or intrinsic.startswith(NATIVE)


def _waited_most(times: Times, waits_ns: Counter[Kind], least_ns: float) -> str:
    """The kind of calls that waited longest, if that is `least_ns`, and the one of them that did so longest."""
    of_kinds: Counter[str] = Counter()
    for (kind, _), wait_ns in waits_ns.items():
        of_kinds[kind] += wait_ns
    for kind, wait_ns in of_kinds.most_common(1):
        if wait_ns >= least_ns:
            longest = max((each for each in waits_ns if each[0] == kind), key=lambda each: _rank(waits_ns, each))
            took = f"{duration(wait_ns)} of {duration(times.matters_ns)}"
            return f"calls of kind {kind} waited for {took}, mostly {longest[1]}"
    return ""


def _rank(waits_ns: Counter[Kind], each: Kind) -> tuple[bool, int]:
    """By how long they waited, after all that do not wait for the end of a thread, which waits itself."""
    return "join" not in each[1], waits_ns[each]


def _idle(times: Times) -> str:
    """A sentence where the program did little else than wait for work."""
    idle_ns, whole_ns = times.idle_ns, times.whole_ns
    if idle_ns < MOSTLY * whole_ns or not idle_ns:
        return ""
    return f"It waited for work {percent(idle_ns, whole_ns)} of the time ({duration(idle_ns)} of {duration(whole_ns)})."
