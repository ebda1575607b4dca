"""Instants as people say them: so long after the beginning, a time of day, a date."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from interpose import quantities
from interpose.errors import UsageError
from interpose.experiments.model.process import Process

_SECOND_NS = 1_000_000_000
_TIME_OF_DAY = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_FRACTION = re.compile(r"(?:(?<=:[0-9]{2}:[0-9]{2})|(?<=[^0-9-][0-9]{6}))[.,]([0-9]+)")  # of a second
_EARLIER_S = 60  # than the beginning, and yet on its day


def duration_ns(text: str, bare: str = "") -> int | None:
    """The nanoseconds that `text` means (500ms, 2.5s, 3m), or None."""
    try:
        return quantities.duration_ns(text, bare)
    except ValueError:
        return None


def monotonic_ns(when: str, process: Process, option: str = "--since") -> int:
    """The instant `when` on the clock of `process`. Raises UsageError, which names the `option`.

    A duration counts from the beginning of the recording. A time of day is on the day of the beginning, or on the next
    if it would be more than a minute before it. Fractions of a second count to the nanosecond.
    """
    after_ns = duration_ns(when)
    if after_ns is not None:
        return process.log.start_ns + after_ns
    try:
        since_epoch_ns = _calendar_ns(when, process.log.time_ns)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{option} {when}: not {quantities.A_DURATION} or a time such as 10:02") from error
    return process.log.start_ns + since_epoch_ns - process.log.time_ns


def _calendar_ns(when: str, began_ns: int) -> int:
    """The nanoseconds since 1970 of a date, or of a time of day after `began_ns`. Raises ValueError and others."""
    fraction = _FRACTION.search(when)
    whole = _FRACTION.sub("", when, count=1)
    if time_of_day := _TIME_OF_DAY.fullmatch(whole):
        hour, minute, second = (int(part or 0) for part in time_of_day.groups())
        began = datetime.fromtimestamp(began_ns // _SECOND_NS)
        then = began.replace(hour=hour, minute=minute, second=second)
        then += timedelta(days=(began - then).total_seconds() > _EARLIER_S)
    else:
        then = datetime.fromisoformat(whole)
    return int(then.timestamp()) * _SECOND_NS + (int(f"{fraction[1]:0<9.9}") if fraction else 0)
