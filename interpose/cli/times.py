"""Instants as people say them: so long after the beginning, a time of day, a date."""

from __future__ import annotations

import re
from datetime import datetime

from interpose import quantities
from interpose.errors import UsageError
from interpose.experiments.model.process import Process


def duration_ns(text: str, bare: str = "") -> int | None:
    """The nanoseconds that `text` means (500ms, 2.5s, 3m), or None."""
    try:
        return quantities.duration_ns(text, bare)
    except ValueError:
        return None


def monotonic_ns(when: str, process: Process, option: str = "--since") -> int:
    """The instant `when` on the clock of `process`. Raises UsageError, which names the `option`.

    A duration counts from the beginning of the recording. A time of day is on the day of the beginning, or on the next
    if it would be before it.
    """
    after_ns = duration_ns(when)
    if after_ns is not None:
        return process.log.start_ns + after_ns
    began = datetime.fromtimestamp(process.log.time_ns / 1e9)
    try:
        if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", when):
            then = datetime.combine(began.date(), datetime.strptime(_to_seconds(when), "%H:%M:%S").time())
            after_s = (then - began).total_seconds()
            after_s += 86_400 if after_s < -60 else 0
        else:
            after_s = datetime.fromisoformat(when).timestamp() - process.log.time_ns / 1e9
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option} {when}: not {quantities.A_DURATION} or a time such as 10:02") from error
    return process.log.start_ns + round(after_s * 1e9)


def _to_seconds(clock: str) -> str:
    parts = clock.partition(".")[0].split(":")
    return ":".join([*parts, "00"][:3])
