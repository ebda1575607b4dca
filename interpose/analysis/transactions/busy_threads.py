"""Whether the threads that serve requests or tasks, one after the other, had time to spare.

If the threads had none, a request or task first waited for a free thread. Its response time begins only after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from interpose.analysis.analysis import Analysis
from interpose.analysis.consolidation.records import Record, Records, walked
from interpose.analysis.transactions.tracking import IDLE
from interpose.experiments.model.process import Process
from interpose.kinds import IDLE as FOR_WORK

BY = ("thread", "intrinsic")
# With fewer, it may be chance that the thread served one after the other.
SERVED_AT_LEAST = 20
# If a thread is busy for longer, a request waits several times as long as the thread takes to serve it.
BUSY_SHARE = 0.9
# A thread that waits only in these calls serves one connection, and nothing waits for the thread.
RECEIVES = frozenset(("recv", "recv_into", "recvfrom", "recvmsg", "read", "readinto"))


@dataclass(frozen=True)
class Server:
    """A thread that takes requests or tasks: the time from the first to the last one, and its wait for work then."""

    whole_ns: int
    idle_ns: int

    @property
    def is_busy(self) -> bool:
        """Whether it had hardly any time to spare."""
        return self.whole_ns - self.idle_ns >= BUSY_SHARE * self.whole_ns


def servers(analysis: Analysis) -> list[Server]:
    """The threads that took requests or tasks, one after the other."""
    made = ((each, analysis.records_by_transaction(each, BY)) for each in analysis.experiment.processes)
    return [server for process, records in made for server in _servers_of(process, records)]


def _servers_of(process: Process, records: Records) -> Iterator[Server]:
    served: dict[int, list[Record]] = defaultdict(list)
    between: dict[int, Record] = {}
    for record in records.roots:
        if record.is_call and record.name:
            served[record.key[0]].append(record)
        elif record.name == IDLE:
            between[record.key[0]] = record
    for thread, gap in between.items():
        waits = [each for each in walked([gap]) if each.is_call and process.intrinsic(each.key[1]).kind == FOR_WORK]
        takes = any(process.intrinsic(each.key[1]).name.rpartition(".")[2] not in RECEIVES for each in waits)
        if takes and sum(each.sums.calls for each in served[thread]) >= SERVED_AT_LEAST:
            whole_ns = sum(each.sums.wall_ns for each in (gap, *served[thread]))
            yield Server(whole_ns, sum(each.sums.self_wall_ns for each in waits))
