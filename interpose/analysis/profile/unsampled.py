"""What threads spent after their last samples: recording had stopped, the monitor was killed, or the thread could no
longer be sampled. Nothing says what they ran then, so it is the row `not sampled`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interpose.analysis.calls.account import ProcessAccount, Share
from interpose.analysis.profile.balance import Spent, apportioned
from interpose.analysis.profile.weights import OUTSIDE_CALLS, Pool, Walked, Weights

STOPPED_AFTER = 10  # usual intervals without a sample: then the samples of a thread have ended before the thread


def unsampled(
    account: ProcessAccount, walked: Walked, spent: Mapping[Pool, Spent], delays: Mapping[int, int]
) -> Iterator[tuple[Pool, Spent]]:
    """The part of what was `spent` in each pool that its thread spent after its last sample: none if its samples went
    on until its end. `delays` is how long each thread waited for CPU in all."""
    for thread in account.process.threads:
        number, share = thread.number, account.threads.get(thread.number)
        seen = walked.seen.get(number)
        left_ns = thread.record.start_ns + share.wall_ns - seen.last_ns if share and seen else 0
        if share and seen and left_ns >= STOPPED_AFTER * seen.usual_ns:
            left_cpu_ns = min(max(thread.record.start_cpu_ns + share.cpu_ns - seen.cpu_ns, 0), left_ns)
            left = Spent(left_ns, left_cpu_ns, max(delays[number] - walked.delays_ns[number], 0))
            pools = {pool: each for pool, each in spent.items() if pool[0] == number}
            samples = {pool: walked.pools.get(pool, Weights()) for pool in pools}
            yield from _divided(left, pools, samples, share, seen.usual_ns)


def _divided(
    left: Spent, pools: Mapping[Pool, Spent], samples: Mapping[Pool, Weights], share: Share, usual_ns: float
) -> Iterator[tuple[Pool, Spent]]:
    """Divide at most what was `left` of a thread among its pools: each gets what its samples do not explain. The rest
    belongs to calls and pauses."""
    cpu: dict[Pool, float] = {}
    waits: dict[Pool, float] = {}
    for pool, spent in pools.items():
        # Samples in the recorder are of the code around it, whose CPU time does not contain the overhead.
        overhead_ns = share.own_cpu_ns if pool[1] == OUTSIDE_CALLS else 0
        cpu[pool] = min(max(spent.cpu_ns + overhead_ns - sum(samples[pool].cpu_ns.values()), 0), spent.cpu_ns)
        waiting = samples[pool].samples - sum(samples[pool].ran.values())
        waits[pool] = max(spent.waited_ns - waiting * usual_ns, 0)
    cpu_of = dict(apportioned(min(left.cpu_ns, int(sum(cpu.values()))), cpu, (0, OUTSIDE_CALLS)))
    waits_of = dict(apportioned(min(left.waited_ns, int(sum(waits.values()))), waits, (0, OUTSIDE_CALLS)))
    whole_ns = sum(waits_of.values())
    for pool, spent in pools.items():
        cpu_ns, waited_ns = min(cpu_of.get(pool, 0), spent.cpu_ns), min(waits_of.get(pool, 0), spent.waited_ns)
        delay_ns = left.processor_ns * waited_ns // whole_ns if whole_ns else 0
        if cpu_ns or waited_ns:
            yield pool, Spent(cpu_ns + waited_ns, cpu_ns, min(delay_ns, waited_ns))
