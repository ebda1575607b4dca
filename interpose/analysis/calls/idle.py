"""How long threads waited for work in calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from interpose.analysis.calls.in_progress import InProgress
from interpose.analysis.consolidation.records import Records
from interpose.experiments.model.process import Process
from interpose.kinds import IDLE


def idle_waits(process: Process, records: Records, open_calls: Iterable[InProgress]) -> Counter[int]:
    """How long each thread of `process` waited in idle calls, ended or in progress, without the CPU time of these.

    `records` are by the thread first, and by the intrinsic."""
    waited_ns: Counter[int] = Counter()
    idle = {number for number, each in process.numbered_intrinsics.items() if each.kind == IDLE}
    place = records.by.index("intrinsic")
    for record in records.calls() if idle else ():
        if record.key[place] in idle:
            waited_ns[record.key[0]] += max(record.sums.self_wall_ns - record.sums.self_cpu_ns, 0)
    for each in open_calls:
        if each.call.intrinsic in idle:
            waited_ns[each.thread] += max(each.self_wall_ns - each.self_cpu_ns, 0)
    return waited_ns
