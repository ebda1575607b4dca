"""Numbers as people read them: counts, times, ages."""

from __future__ import annotations

from dataclasses import dataclass

SECOND_NS = 1_000_000_000
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_AHEAD_S = 60  # clocks of two hosts rarely differ by more
_AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True)
class Scale:
    """A unit for a column of times, so that its figures compare at a glance."""

    unit: str
    unit_ns: int
    decimals: int

    def show(self, ns: int) -> str:
        """`ns` in this unit: `1,234.50 s`."""
        return f"{ns / self.unit_ns:,.{self.decimals}f} {self.unit}"


def scale_for(largest_ns: int) -> Scale:
    """The scale for a column whose largest figure is `largest_ns`."""
    if largest_ns >= 10 * SECOND_NS:
        return Scale("s", SECOND_NS, 2)
    if largest_ns >= SECOND_NS:
        return Scale("s", SECOND_NS, 3)
    if largest_ns >= 1_000_000:
        return Scale("ms", 1_000_000, 2)
    return Scale("us", 1_000, 2)


def duration(ns: int) -> str:
    """`ns` to three figures or so: `412 ns`, `3.10 us`, `12.3 s`."""
    if ns < 1_000:
        return f"{ns} ns"
    for unit, unit_ns in (("us", 1_000), ("ms", 1_000_000)):
        if ns < 999.5 * unit_ns:
            return f"{_three_figures(ns / unit_ns)} {unit}"
    return f"{_three_figures(ns / SECOND_NS)} s"


def size(size_bytes: int) -> str:
    """`size_bytes` in binary units, to three figures or so: `512 B`, `64.0 KiB`, `2.00 GiB`."""
    number, unit = float(size_bytes), 0
    while number >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1024, unit + 1
    return f"{_three_figures(number) if unit else size_bytes} {_SIZES[unit]}"


def count(number: int, noun: str, several: str = "") -> str:
    """`1 call`, `41,207 calls`; `several` is the plural where it is not made by an s."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def age(seconds: float) -> str:
    """How long ago: `2 minutes ago`; by a clock that is a minute ahead or more, `in the future`."""
    if seconds <= -_AHEAD_S:
        return "in the future"
    for length, noun in _AGES:
        if seconds >= length:
            return f"{count(int(seconds // length), noun)} ago"
    return "just now"


def percent(part: int, whole: int) -> str:
    """`part` of `whole`: `25 %`."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def margin_percent(margin: float, whole: float) -> str:
    """How far `whole` may be off, in hundredths of it: `±4 %`, `±0.4 %`; nothing if it is exact."""
    if not whole or not margin:
        return ""
    part = 100 * margin / whole
    return f"\u00b1{part:.0f} %" if part >= 9.5 else f"\u00b1{part:.1f} %"


def margin_of_samples(margin_ns: float, cpu_ns: float) -> str:
    """The same of sampled CPU time."""
    return "few samples" if are_few_samples(margin_ns, cpu_ns) else margin_percent(margin_ns, cpu_ns)


def are_few_samples(margin_ns: float, cpu_ns: float) -> bool:
    """Whether sampled CPU time may be off by all of itself: then no figure says more."""
    return 0 < margin_ns > cpu_ns - 1


def _three_figures(number: float) -> str:
    if number < 9.995:
        return f"{number:.2f}"
    return f"{number:.1f}" if number < 99.95 else f"{number:,.0f}"
