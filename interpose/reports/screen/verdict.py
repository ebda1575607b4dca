"""The verdict: what took the time, in one to three sentences, each with its place, its count, its time and a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Times
from interpose.analysis.findings.waits import BY_CHANCE_NS
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


def verdict(
    times: Times, findings: Sequence[Finding], cwd: str, width: int, shown: Shown | None = None
) -> Iterator[str]:
    """The lines of the verdict, wrapped at `width`; no sentence is cut. `shown` notes the lines of code they name."""
    if idle := _idle(times):
        yield from wrapped(idle, width, _INDENT)
    worth = [each for each in findings if each.bound_ns >= WORTH * times.matters_ns]
    words = Sentences(worth, cwd, times.matters_ns, shown)
    is_cause = bool(worth) and worth[0].bound_ns >= A_CAUSE * times.matters_ns
    if not is_cause:
        yield from wrapped(_nothing(times), width, _INDENT)
    for place, each in enumerate(worth[:FINDINGS]):
        label = "Also" if place else "Slowest" if is_cause else "Largest"
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
    of_kinds: Counter[str] = Counter()
    for (kind, _), wait_ns in times.waits_ns.items():
        of_kinds[kind] += wait_ns
    for kind, wait_ns in of_kinds.most_common(1):
        if wait_ns >= max(MOST * times.matters_ns, BY_CHANCE_NS):
            longest = max((each for each in times.waits_ns if each[0] == kind), key=lambda each: _rank(times, each))
            took = f"{duration(wait_ns)} of {duration(times.matters_ns)}"
            return f"calls of kind {kind} waited for {took}, mostly {longest[1]}"
    return ""


def _rank(times: Times, each: tuple[str, str]) -> tuple[bool, int]:
    """By how long they waited, after all that do not wait for the end of a thread, which waits itself."""
    return "join" not in each[1], times.waits_ns[each]


def _idle(times: Times) -> str:
    """A sentence where the program did little else than wait for work."""
    idle_ns, whole_ns = times.idle_ns, times.whole_ns
    if idle_ns < MOSTLY * whole_ns or not idle_ns:
        return ""
    return f"It waited for work {percent(idle_ns, whole_ns)} of the time ({duration(idle_ns)} of {duration(whole_ns)})."
