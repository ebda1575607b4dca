"""How much of the calibrated cost of events is subtracted from lines.

Events cost more where the processor is slower than during calibration: another program shares its core, or its
frequency is lower. Line trace repeats a fixed computation now and then; costs are scaled by its time.

Calibration measures short times. Other programs may slow it, and then it takes off too much. No line takes less than
nothing: what each line took with its events is known, and is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from interpose.experiments.format.traces import Stretch

# A line keeps this share of what passed between its events. A line that takes 1 ns has an event of 12 to 20 ns.
LEAST_SHARE = 0.05
# Of all time, how much lines may be below that: an event takes a few nanoseconds more or less than is calibrated.
BELOW_SHARE = 0.1
_STEPS = 20
_LOOKS_AT_LEAST = 5
_ALIKE = 0.05  # on an idle machine, the computation takes so much more or less


def slowness(stretches: Sequence[Stretch]) -> float:
    """How many times as long as during calibration the processor took for the same, on average; 1 if it is unknown."""
    calibrated = sum(each.record.speeds * each.record.speed_ticks for each in stretches)
    if not calibrated or sum(each.record.speeds for each in stretches) < _LOOKS_AT_LEAST:
        return 1.0
    found = sum(each.record.speeds_ticks for each in stretches) / calibrated
    return found if abs(found - 1) > _ALIKE else 1.0


def held_share(stretches: Sequence[Stretch], wanted: float = 1.0) -> float:
    """The share of the subtracted event cost that is plausible: what is wanted, or the largest with which hardly any
    time is too low."""
    lines = [
        (line.ticks - line.off_ticks + line.event_ticks, line.event_ticks)
        for stretch in stretches
        for function in stretch.functions
        for line in function.lines
        if line.event_ticks > 0 and not function.is_outside
    ]
    if _is_possible(lines, wanted):
        return wanted
    low, high = 0.0, wanted
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_possible(lines, middle) else (low, middle)
    return low


def _is_possible(lines: Sequence[tuple[int, int]], share: float) -> bool:
    """Whether lines, with their whole times and event costs, keep enough if this share of the costs is subtracted."""
    below = kept = 0.0
    for whole, events in lines:
        least = LEAST_SHARE * max(whole, 0)
        time = whole - share * events
        below += max(least - time, 0)
        kept += max(time, least)
    return below <= BELOW_SHARE * kept
