"""Activity over time: the same slices of several experiments, added up."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.slices import slices_of


@dataclass
class SlicePart:
    """The same slice of several experiments: sums of their times, with the time of calls by kind."""

    start_ns: int = 0
    length_ns: int = 0
    cpu_ns: int = 0
    run_delay_ns: int = 0
    calls: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, other: SlicePart) -> None:
        """Add the slice of another experiment."""
        self.start_ns += other.start_ns
        self.length_ns += other.length_ns
        self.cpu_ns += other.cpu_ns
        self.run_delay_ns += other.run_delay_ns
        self.calls += other.calls
        for kind, time_ns in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + time_ns


@dataclass
class ActivityPart:
    """The slices of each experiment; `samples` and `has_events` as in `Slices`."""

    slices: list[SlicePart] = field(default_factory=list)
    samples: int = 0
    has_events: bool = True


def reduced(analysis: Analysis, number: int) -> ActivityPart:
    """The slices of one experiment, as many as `number`."""
    found = slices_of(analysis, number)
    first_ns, figures = found.slices[0].start_ns, found.figures
    made = ActivityPart([], found.samples, found.has_events)
    for each in found.slices:
        kinds = {kind: time_ns for kind in figures.kinds if (time_ns := figures.of_kind(each.calls, kind))}
        times = each.start_ns - first_ns, each.stop_ns - each.start_ns, round(each.cpu_ns), round(each.run_delay_ns)
        made.slices.append(SlicePart(*times, each.calls[3], kinds))
    return made


def merged(given: list[ActivityPart]) -> ActivityPart:
    """The sums of the first slices, of the second ones …"""
    number = max((len(each.slices) for each in given), default=0)
    slices = [SlicePart() for _ in range(number)]
    for part in given:
        for into, each in zip(slices, part.slices, strict=False):
            into.add(each)
    return ActivityPart(slices, sum(each.samples for each in given), all(each.has_events for each in given))
