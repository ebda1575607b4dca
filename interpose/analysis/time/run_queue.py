"""Wall time divided as it was spent: on a processor, waiting, or runnable while others had the processors (stretch)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from interpose.analysis.calls.account import ProcessAccount


class Spent(NamedTuple):
    """Wall time, which is CPU time, wait and stretch; `has_stretch` is false where the kernel told nothing of it."""

    wall_ns: int = 0
    cpu_ns: int = 0
    wait_ns: int = 0
    stretch_ns: int = 0
    has_stretch: bool = False


def whole_of(parts: Iterable[Spent]) -> Spent:
    """All of `parts` in one."""
    found = Spent()
    for each in parts:
        wall_ns, cpu_ns = found.wall_ns + each.wall_ns, found.cpu_ns + each.cpu_ns
        wait_ns, stretch_ns = found.wait_ns + each.wait_ns, found.stretch_ns + each.stretch_ns
        found = Spent(wall_ns, cpu_ns, wait_ns, stretch_ns, found.has_stretch or each.has_stretch)
    return found


def spent_by_thread(accounts: Iterable[ProcessAccount]) -> dict[tuple[str, int], Spent]:
    """How each thread spent its time, by the process's place and the thread's number.

    The run delay is what was last looked at of a thread; where it is more than what CPU time leaves, it is that much.
    """
    found: dict[tuple[str, int], Spent] = {}
    for account in accounts:
        delays = {thread.number: thread.record.run_delay_ns for thread in account.process.threads}
        for number, share in account.threads.items():
            cpu_ns = min(share.cpu_ns, share.wall_ns)
            stretch_ns = min(delays.get(number, 0), share.wall_ns - cpu_ns)
            wait_ns = share.wall_ns - cpu_ns - stretch_ns
            spent = Spent(share.wall_ns, cpu_ns, wait_ns, stretch_ns, bool(delays.get(number)))
            found[account.process.place, number] = spent
    return found
