"""The verdict: what took the time, in one to three sentences, each with its place, its count, its time and a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interpose.analysis.findings.engine import OF_THE_MACHINE
from interpose.analysis.findings.finding import BY_CHANCE_NS, Finding
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
    kind, wait_ns = _most(times.waits_ns)
    return _waited(times, times.waits_ns, kind) if wait_ns >= max(MOST * times.matters_ns, BY_CHANCE_NS) else ""


def _larger(times: Times, findings: Sequence[Finding], known_ns: int) -> str:
    """That calls of one kind waited for longer than the first finding's, and are in none; empty if there are none.
    Of what they waited, all that the program waited for CPU may be theirs."""
    for_processor_ns = sum(each.bound_ns for each in findings if each.rule == OF_THE_MACHINE)
    least_ns = for_processor_ns + max(known_ns + 1, A_CAUSE * times.matters_ns, BY_CHANCE_NS)
    in_findings = _in_findings(findings)
    left_ns = _not_elsewhere(times, in_findings)
    kind, wait_ns = _most(left_ns)
    if wait_ns < least_ns:
        return ""
    is_largest = kind == _most(times.waits_ns - in_findings)[0]
    no = "No" if is_largest else "Apart from waits for other threads, processes or users, no"
    return f"{no} finding explains the largest wait: {_waited(times, left_ns, kind)}."


def _in_findings(findings: Sequence[Finding]) -> Counter[Kind]:
    """The waits that are in any evidence."""
    known: Counter[Kind] = Counter()
    rows = sorted((row for each in findings for row in each.rows), key=lambda row: row.wait_ns)
    # The last, which waited longest: of calls of which one finding has all, another may have those that failed.
    for row in {replace(row, is_part=False).likeness: row for row in rows}.values():
        known[row.kind, row.intrinsic] += row.wait_ns
    return known


def _not_elsewhere(times: Times, known_ns: Counter[Kind]) -> Counter[Kind]:
    """The waits that are not known, without those that mostly wait for what other threads, tasks, processes or users
    do, or for work."""
    own_ns = Counter({each: wait_ns for each, wait_ns in times.waits_ns.items() if not _is_elsewhere(*each)})
    return own_ns + times.locks_ns - known_ns


def _is_elsewhere(kind: str, intrinsic: str) -> bool:
    return kind in NOT_SLOW or intrinsic in SELECTORS or intrinsic.startswith(NATIVE)


def _most(waits_ns: Counter[Kind]) -> tuple[str, int]:
    """The kind of calls that waited longest, and how long."""
    of_kinds: Counter[str] = Counter()
    for (kind, _), wait_ns in waits_ns.items():
        of_kinds[kind] += wait_ns
    return next(iter(of_kinds.most_common(1)), ("", 0))


def _waited(times: Times, part_ns: Counter[Kind], kind: str) -> str:
    """How long calls of that kind waited, as the table has it, how much of that is meant if it is a part, and the one
    of them that did so longest."""
    of_kind = {each: wait_ns for each, wait_ns in part_ns.items() if each[0] == kind}
    wait_ns = sum(each_ns for each, each_ns in times.waits_ns.items() if each[0] == kind)
    whole, part = duration(wait_ns), duration(sum(of_kind.values()))
    longest = max(of_kind, key=lambda each: _rank(part_ns, each))
    locks = "for locks and " if kind == "sync" else ""
    meant = f", {part} of it {locks}in no finding" if part != whole else ""
    return f"calls of kind {kind} waited for {whole} of {duration(times.matters_ns)}{meant}, mostly {longest[1]}"


def _rank(waits_ns: Counter[Kind], each: Kind) -> tuple[bool, int]:
    """By how long they waited, after all that do not wait for the end of a thread, which waits itself."""
    return "join" not in each[1], waits_ns[each]


def _idle(times: Times) -> str:
    """A sentence where the program did little else than wait for work."""
    idle_ns, whole_ns = times.idle_ns, times.whole_ns
    if idle_ns < MOSTLY * whole_ns or not idle_ns:
        return ""
    return f"It waited for work {percent(idle_ns, whole_ns)} of the time ({duration(idle_ns)} of {duration(whole_ns)})."
