"""Transactions that are calls and were in progress when the recording of their thread ended, or now, and the calls in
progress then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from interpose.analysis.calls.in_progress import InProgress, calls_in_progress, without_code
from interpose.analysis.recording.last_known import last_events
from interpose.analysis.time.lifetimes import lives_of
from interpose.analysis.transactions.tracking import (
    BY_DETAIL,
    BY_INTRINSIC,
    MARKED,
    SPAN,
    Life,
    Outermost,
    Unended,
    roles_of,
)
from interpose.experiments.format.records import OpenCall
from interpose.experiments.model.process import Process


def unended_of(process: Process) -> list[Unended]:
    """The outermost transaction in progress of each thread of `process`, if it is a call."""
    if not any(each.open_calls for each in process.threads):
        return []
    roles, lives, events = roles_of(process), lives_of(process), last_events(process)
    found = []
    for thread in process.threads:
        ended = {event.call for event in events.get(thread.number, [])}
        there = [each for each in thread.open_calls if each.call not in ended]
        while there and not roles.get(there[0].intrinsic, 0) & SPAN:
            there.pop(0)
        if there and there[0].call:
            found.append(_unended(thread.number, there, roles, lives[thread.number]))
    return found


def calls_at_the_end(process: Process) -> dict[int, list[InProgress]]:
    """The calls in progress of each thread of `process`, without those that contain code of the program."""
    found: dict[int, list[InProgress]] = defaultdict(list)
    if any(each.open_calls for each in process.threads):
        lives, events = lives_of(process), last_events(process)
        until_ns = max(life.end_ns for life in lives.values())
        cpu_ns = {number: life.end_cpu_ns for number, life in lives.items()}
        there = list(calls_in_progress(process, events, until_ns, cpu_ns, is_running=False))
        for each in without_code(process, there):
            found[each.thread].append(each)
    return found


def _unended(thread: int, calls: list[OpenCall], roles: Mapping[int, int], life: Life) -> Unended:
    call = calls[0]
    wall_ns = max(life.end_ns - call.start_ns, 0)
    cpu_ns = min(max(life.end_cpu_ns - call.start_cpu_ns, 0), wall_ns)
    bits = roles[call.intrinsic]
    outermost = Outermost(call.start_ns, wall_ns, call.start_cpu_ns, cpu_ns, bits, 0, 0, call.stack, 0)
    named = [(each.call, _name(each, roles), bool(roles.get(each.intrinsic, 0) & MARKED)) for each in reversed(calls)]
    return Unended(thread, outermost, tuple(named))


def _name(call: OpenCall, roles: Mapping[int, int]) -> int:
    """The name that a call in progress gives a transaction; 0 if it gives none."""
    if not roles.get(call.intrinsic, 0) & SPAN:
        return 0
    return BY_DETAIL | call.detail if call.detail else BY_INTRINSIC | call.intrinsic
