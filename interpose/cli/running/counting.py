"""Which counters can be read here, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interpose.counters import COUNTERS, why_not


def why_not_read(names: Iterable[str]) -> dict[str, str]:
    """Why each of these counters cannot be read in programs that are started here; empty if it can."""
    try:
        from interpose.timing.sampler import try_counter
    except ImportError as error:  # nothing is compiled for this Python
        return dict.fromkeys(names, str(error))
    tried = {name: try_counter((COUNTERS[name].source, COUNTERS[name].config)) for name in names}
    return {name: why_not(error) if error else "" for name, (error, _) in tried.items()}


def reasons(tried: Mapping[str, str]) -> list[str]:
    """A line for each reason, with the counters that cannot be read for it."""
    by_reason: dict[str, list[str]] = {}
    for name, why in tried.items():
        by_reason.setdefault(why, []).append(name)
    return [f"{', '.join(found)}: not counted: {why}" for why, found in by_reason.items() if why]
