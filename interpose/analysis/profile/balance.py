"""Divides the time of a pool (a thread's time in `code`, or in calls that contain Python code) among its code.

For each pool, without remainder:

    wall = CPU + wait for the interpreter lock + wait for CPU + unexplained

Wall and CPU time are exact; the account has them (`interpose.analysis.calls.account`). Waits for the interpreter lock
are events, so they are exact, too, and each has its line. The wait for CPU is the kernel's figure for the
thread, divided in proportion to the samples that found the thread ready to run or, without any, to the CPU time. A
thread that waits for the lock may also wait for CPU; that counts as a wait for the lock. The rest is
unexplained. Samples divide CPU time, the wait for CPU (samples that were ready to run) and the unexplained rest
(samples that waited) among functions and lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from math import sqrt
from typing import Protocol, TypeVar

from interpose.analysis.profile.margin import margin
from interpose.analysis.profile.weights import Place, Weights
from interpose.experiments.model.sampled import NOT_READ

Group = TypeVar("Group", bound=Hashable)
GroupOfPlace = TypeVar("GroupOfPlace", bound=Hashable, covariant=True)
SAMPLES_AT_LEAST = 2.5  # of the same weight, to say anything


class GroupOf(Protocol[GroupOfPlace]):
    """The group of each place, and which groups a place with an estimated stack may belong to."""

    def __call__(self, place: Place) -> GroupOfPlace: ...

    def may_be(self, place: Place, places: Iterable[Place]) -> Set[GroupOfPlace]: ...


@dataclass
class Code:
    """What some code took: its samples, and its time, which `wall_ns` is the sum of. `chance_ns` is how far its CPU
    time may be off by the number of samples, 19 times of 20; `unread_ns` how much more it may be, because stacks could
    not be read."""

    samples: int = 0
    cpu_ns: int = 0
    lock_ns: int = 0
    processor_ns: int = 0
    unexplained_ns: int = 0
    chance_ns: float = 0.0
    unread_ns: float = 0.0

    @property
    def margin_ns(self) -> float:
        """How far its CPU time may be off, 19 times of 20."""
        return self.chance_ns + self.unread_ns

    @property
    def is_supported(self) -> bool:
        """Whether its samples say that it computed: one or two do not, even if they are all that there are."""
        return self.samples >= SAMPLES_AT_LEAST and self.margin_ns < self.cpu_ns

    @property
    def wall_ns(self) -> int:
        """Wall time."""
        return self.cpu_ns + self.lock_ns + self.processor_ns + self.unexplained_ns

    def add(self, other: Code) -> None:
        """Add what the same code took in another pool: chance errors of the two have nothing to do with each other."""
        self.samples += other.samples
        self.cpu_ns += other.cpu_ns
        self.lock_ns += other.lock_ns
        self.processor_ns += other.processor_ns
        self.unexplained_ns += other.unexplained_ns
        self.chance_ns = sqrt(self.chance_ns**2 + other.chance_ns**2)
        self.unread_ns += other.unread_ns


@dataclass
class Spent:
    """The total of a pool, without its waits for the interpreter lock."""

    wall_ns: int = 0
    cpu_ns: int = 0
    processor_ns: int = 0

    @property
    def unexplained_ns(self) -> int:
        """The wait without a known cause."""
        return self.waited_ns - self.processor_ns

    @property
    def waited_ns(self) -> int:
        """The wait outside of calls."""
        return self.wall_ns - self.cpu_ns

    def take(self, part: Spent) -> None:
        """Subtract a part of it."""
        self.wall_ns -= part.wall_ns
        self.cpu_ns -= part.cpu_ns
        self.processor_ns = max(min(self.processor_ns - part.processor_ns, self.waited_ns), 0)

    def settle(self, weights: Weights, delay_ns: int, ready: int) -> None:
        """Believe the samples of a thread that the kernel says waited for CPU for `delay_ns`, and that was
        found `ready` so often: it waited where it was found so. Where it hardly ever waited for anything else when it
        was sampled, little is unexplained."""
        waited_ns = self.waited_ns
        if ready:
            self.processor_ns = min(delay_ns * (sum(weights.ready.values()) + weights.recording) // ready, waited_ns)
        if samples := weights.samples:
            share = sum(weights.waited.values()) / samples
            off = margin(share, samples)
            unexplained_ns = min(max(self.unexplained_ns, (share - off) * self.wall_ns), (share + off) * self.wall_ns)
            self.processor_ns = max(min(round(waited_ns - unexplained_ns), delay_ns, waited_ns), 0)


def divided(spent: Spent, weights: Weights, group_of: GroupOf[Group], unsampled: Group) -> dict[Group, Code]:
    """What each group of stacks took of what was `spent`; the part without samples belongs to the group `unsampled`."""
    found: dict[Group, Code] = defaultdict(Code)
    ran, squares = _grouped(weights.cpu_ns, group_of), _grouped(weights.squares, group_of)
    whole, effective = sum(ran.values()), weights.effective
    if not whole:  # the kernel had counted nothing yet, or no sample found the thread on a processor: all are alike
        ran = squares = _grouped(weights.ran or weights.ready, group_of)
        whole = effective = float(sum(ran.values()))
    for place, samples in weights.ran.items():
        found[group_of(place)].samples += samples
    for group, cpu_ns in apportioned(spent.cpu_ns, ran, unsampled):
        found[group].cpu_ns += cpu_ns
    ready = _grouped(weights.ready, group_of)
    for group, processor_ns in apportioned(spent.processor_ns, ready or ran, unsampled):
        found[group].processor_ns += processor_ns
    for group, unexplained_ns in apportioned(spent.unexplained_ns, _grouped(weights.waited, group_of), unsampled):
        found[group].unexplained_ns += unexplained_ns
    for counted in (weights.waited, weights.ready):
        for place, samples in counted.items():
            found[group_of(place)].samples += samples
    unread, of_groups = _unread_shares(weights, group_of)
    for group in {**ran, **ready}:
        found[group].chance_ns = _chance(ran.get(group, 0.0), squares[group], whole, effective) * spent.cpu_ns
        found[group].unread_ns = (unread + of_groups[group]) * spent.cpu_ns
    return dict(found)


def _chance(weight: float, squares: float, whole: float, effective: float) -> float:
    """How far the share of a group may be off, 19 times of 20. If its samples weigh more than others, it is as
    uncertain as if all samples weighed that much. One or two samples say nothing: they hit one of many functions."""
    if not weight:
        return margin(0.0, effective)
    share = weight / whole
    chance = margin(share, min(effective, weight * whole / squares))
    return chance if weight * weight >= SAMPLES_AT_LEAST * squares else max(chance, share)


def _unread_shares(weights: Weights, group_of: GroupOf[Group]) -> tuple[float, Mapping[Group, float]]:
    """The share of the CPU time of samples with unreadable stacks, all of which may belong to one short function; and,
    for each group, of those with estimated stacks that may belong to it or to another one."""
    ran: Mapping[Place, float] = weights.cpu_ns or weights.ran or weights.ready
    whole = sum(ran.values()) or 1.0
    unread = sum(weight for place, weight in ran.items() if place.stack == NOT_READ)
    found: dict[Group, float] = defaultdict(float)
    for place, weight in ran.items():
        groups = group_of.may_be(place, ran)
        for group in groups if len(groups) > 1 else ():
            found[group] += weight / whole
    return unread / whole, found


def _grouped(weights: Mapping[Place, float], group_of: Callable[[Place], Group]) -> dict[Group, float]:
    found: dict[Group, float] = defaultdict(float)
    for place, weight in weights.items():
        found[group_of(place)] += weight
    return found


def apportioned(total_ns: int, weights: Mapping[Group, float], otherwise: Group) -> Iterable[tuple[Group, int]]:
    """`total_ns` in whole nanoseconds by weight; all of it to `otherwise` where nothing has any."""
    whole = sum(weights.values())
    if total_ns and not whole:
        yield otherwise, total_ns
    if not total_ns or not whole:
        return
    so_far, given_ns = 0.0, 0
    for group, weight in weights.items():
        so_far += weight
        until_ns = min(round(total_ns * (so_far / whole)), total_ns)
        yield group, until_ns - given_ns
        given_ns = until_ns
    if given_ns < total_ns:
        yield group, total_ns - given_ns
