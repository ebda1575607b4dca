"""What a transaction did in other tasks of its thread: a framework may serve a request in a task that it begins within
the server's call.

Such a call is inside of the server's, but its steps are not: the server's call is suspended while they run. So the CPU
time of calls inside of a call, if it is more than what that call has inside itself, is that of other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from interpose.analysis.consolidation.records import Record


class InOtherTasks(NamedTuple):
    """Calls inside of `around` that are transactions and ran in other tasks: from beginning to end, and CPU time."""

    around: Record
    wall_ns: int
    cpu_ns: int


def in_other_tasks(record: Record) -> Iterator[InOtherTasks]:
    """What ran in other tasks within the calls of `record`, by the calls that it is directly inside of."""
    waiting = [record] if record.is_call else []
    while waiting:
        around = waiting.pop()
        waiting.extend(around.inner)
        served = [each for each in around.inner if each.name]
        served_cpu_ns = sum(each.sums.cpu_ns for each in served)
        if not served_cpu_ns:
            continue
        inside_cpu_ns = around.sums.cpu_ns - around.sums.self_cpu_ns
        cpu_ns = min(sum(each.sums.cpu_ns for each in around.inner) - inside_cpu_ns, served_cpu_ns)
        if cpu_ns > 0:
            wall_ns = sum(each.sums.wall_ns for each in served)
            yield InOtherTasks(around, wall_ns * cpu_ns // served_cpu_ns, cpu_ns)


def waits_for(other: InOtherTasks, kind_of: Callable[[Record], str]) -> Counter[str]:
    """By kind, for how long the calls around it awaited what other tasks did: as long as that took, from all that they
    awaited in proportion."""
    suspended: Counter[str] = Counter()
    waiting = [each for each in other.around.inner if not each.name]
    while waiting:
        each = waiting.pop()
        suspended[kind_of(each)] += each.suspended_ns
        waiting.extend(inner for inner in each.inner if not inner.name)
    whole_ns = suspended.total()
    waited_ns = min(other.wall_ns, whole_ns)
    return Counter({kind: ns * waited_ns // whole_ns for kind, ns in suspended.items() if ns})
