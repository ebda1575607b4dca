"""Wall time divided as it was spent: on a processor, waiting, or ready to run while others had the processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from interpose.analysis.calls.account import ProcessAccount, Share
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import READY, RECORDS, RUNS, WAITS, Sampled


class Spent(NamedTuple):
    """Wall time, divided into CPU time, wait and run-queue delay; `has_delay` is false if the kernel gave none."""

    wall_ns: int = 0
    cpu_ns: int = 0
    wait_ns: int = 0
    delay_ns: int = 0
    has_delay: bool = False


class Unseen(NamedTuple):
    """The program's wait between its calls: for a processor (estimated), and without a known cause; and its wait for
    CPU in calls and while they were recorded, at most, and in calls that wait for work, at least."""

    processor_ns: int = 0
    unexplained_ns: int = 0
    in_calls_ns: int = 0
    idle_ns: int = 0


def unseen_wait(accounts: Iterable[ProcessAccount]) -> Unseen:
    """The wait of the program between its calls, thread by thread.

    The kernel says how long a thread waited for CPU, but not where. A preempted thread was computing, so the
    part of that time between calls is proportional to the CPU time there. It is at most the wait there, and at least
    what exceeds all waits elsewhere. Where all system calls are recorded, a thread waits for little else between them.
    """
    waits = [wait for account in accounts for wait in unseen_by_thread(account, delays_of(account)).values()]
    return Unseen(*map(sum, zip(*waits, strict=True))) if waits else Unseen()


def delays_of(account: ProcessAccount) -> dict[int, int]:
    """How long each thread of a process waited for CPU, as the kernel had counted when last asked. Of a thread without
    an end, such as one of a killed process, a sample may have asked last."""
    threads = account.process.threads
    delays = {thread.number: thread.record.run_delay_ns for thread in threads}
    if any(not thread.record.end_ns for thread in threads):
        for number, delay_ns in _delays_by_samples(account.process).items():
            delays[number] = max(delays.get(number, 0), delay_ns)
    return delays


def _delays_by_samples(process: Process) -> dict[int, int]:
    """How long each thread waited for CPU between its first sample and its last."""
    first: dict[int, int] = {}
    delays: dict[int, int] = {}
    for sample in Sampled(process).samples():
        if sample.state in (RUNS, WAITS, READY, RECORDS):
            before_ns = first.setdefault(sample.thread, sample.run_delay_ns)
            delays[sample.thread] = max(sample.run_delay_ns - before_ns, 0)
    return delays


def unseen_by_thread(account: ProcessAccount, delays: Mapping[int, int]) -> dict[int, Unseen]:
    """The same of each thread of a process, which waited for CPU so long in all."""
    found = {}
    for number, share in account.threads.items():
        waited_ns = max(share.program_wall_ns - share.program_cpu_ns, 0)
        delay_ns = _delay_while_recorded(share, delays.get(number, 0))
        delayed_ns = min(waited_ns, delay_ns)
        if not account.process.log.has_all_system_calls:
            delayed_ns = _delay_of_program(share, waited_ns, delay_ns)
        elsewhere = delay_in_calls(share, delayed_ns, delay_ns, account.idle_waits_ns.get(number, 0))
        found[number] = Unseen(delayed_ns, waited_ns - delayed_ns, *elsewhere)
    return found


def delay_in_calls(share: Share, of_code_ns: int, delay_ns: int, idle_wait_ns: int) -> tuple[int, int]:
    """How much of a thread's wait for CPU was in its calls, at most, and in those that wait for work, at least.
    Together they are what was not in its code, at most what the thread waited elsewhere.

    The kernel does not say which; a thread that wakes up to work waits for CPU as part of the wait for work."""
    elsewhere_ns = _waited_elsewhere(share)
    delayed_ns = max(min(delay_ns - of_code_ns, elsewhere_ns), 0)
    in_calls_ns = min(delayed_ns, max(elsewhere_ns - idle_wait_ns, 0))
    return in_calls_ns, delayed_ns - in_calls_ns


def _waited_elsewhere(share: Share) -> int:
    unknown_ns = share.before_wall_ns + share.paused_wall_ns - share.before_cpu_ns - share.paused_cpu_ns
    of_code_ns = max(share.program_wall_ns - share.program_cpu_ns, 0)
    return max(share.wall_ns - share.cpu_ns - of_code_ns - unknown_ns, 0)


def _delay_while_recorded(share: Share, delay_ns: int) -> int:
    """The part of a thread's wait for CPU that is not before a ring or in a pause: in proportion to its CPU time."""
    unknown_cpu_ns = share.before_cpu_ns + share.paused_cpu_ns
    return delay_ns * max(share.cpu_ns - unknown_cpu_ns, 0) // share.cpu_ns if unknown_cpu_ns else delay_ns


def _delay_of_program(share: Share, waited_ns: int, delay_ns: int) -> int:
    like_cpu_ns = delay_ns * share.program_cpu_ns // share.cpu_ns if share.cpu_ns > 0 else 0
    return min(max(like_cpu_ns, delay_ns - _waited_elsewhere(share)), waited_ns)


def whole_of(parts: Iterable[Spent]) -> Spent:
    """All of `parts` in one."""
    found = Spent()
    for each in parts:
        wall_ns, cpu_ns = found.wall_ns + each.wall_ns, found.cpu_ns + each.cpu_ns
        wait_ns, delay_ns = found.wait_ns + each.wait_ns, found.delay_ns + each.delay_ns
        found = Spent(wall_ns, cpu_ns, wait_ns, delay_ns, found.has_delay or each.has_delay)
    return found


def spent_by_thread(accounts: Iterable[ProcessAccount]) -> dict[tuple[str, int], Spent]:
    """How each thread spent its time, by the position of its process and its number.

    The run-queue delay is the thread's last known figure, limited to what CPU time leaves.
    """
    found: dict[tuple[str, int], Spent] = {}
    for account in accounts:
        delays = delays_of(account)
        for number, share in account.threads.items():
            cpu_ns = min(share.cpu_ns, share.wall_ns)
            delay_ns = min(delays.get(number, 0), share.wall_ns - cpu_ns)
            wait_ns = share.wall_ns - cpu_ns - delay_ns
            spent = Spent(share.wall_ns, cpu_ns, wait_ns, delay_ns, bool(delays.get(number)))
            found[account.process.place, number] = spent
    return found
