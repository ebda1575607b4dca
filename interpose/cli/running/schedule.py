"""Recording by the clock: `interpose run --at 02:00 --for 10m --every 1h` records only then."""

from __future__ import annotations

import argparse
import re
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from interpose.cli.running.pausing import SOON_S, Pauser
from interpose.cli.times import duration_ns
from interpose.errors import ExperimentError, UsageError
from interpose.quantities import A_DURATION

LONGEST_S = 30.0  # somebody may change the calendar's clock
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")


class Schedule(NamedTuple):
    """When to record, by the calendar's clock: from `begin_s` on, for `for_s` (None: to the end), every `every_s`."""

    begin_s: float
    for_s: float | None = None
    every_s: float | None = None

    def is_open(self, now_s: float) -> bool:
        """Whether recording is due now."""
        since_s = now_s - self.begin_s
        if since_s < 0 or self.for_s is None:
            return since_s >= 0
        return (since_s % self.every_s if self.every_s else since_s) < self.for_s

    def left_s(self, now_s: float) -> float | None:
        """The seconds until that changes; None if it never will."""
        since_s = now_s - self.begin_s
        if since_s < 0:
            return -since_s
        if self.for_s is None or (self.every_s is None and since_s >= self.for_s):
            return None
        within_s = since_s % self.every_s if self.every_s else since_s
        return self.for_s - within_s if within_s < self.for_s else (self.every_s or 0) - within_s


def add_schedule_arguments(parser: argparse.ArgumentParser) -> None:
    """The options --at, --for, --every and -t."""
    parser.add_argument(
        "--at", metavar="WHEN", help="start recording at a time of day (02:00), or this long after the start (30s, 5m)"
    )
    parser.add_argument("--for", dest="for_", metavar="DURATION", help="record this long (30s, 10m, 1h), then pause")
    parser.add_argument("--every", metavar="DURATION", help="with --for: record again every period (1h)")
    parser.add_argument(
        "-t",
        dest="window",
        metavar="DURATION|FROM-TO",
        help="record this long (30 for seconds, 10m), or from one time after the start to another (1m-5m; 1m-0 for"
        " the rest)",
    )


def schedule_of(arguments: argparse.Namespace, now: datetime) -> Schedule | None:
    """When to record, as the options say; None if they say nothing. Raises UsageError."""
    by_the_clock = (arguments.at, arguments.for_, arguments.every)
    if arguments.window is not None:
        if any(each is not None for each in by_the_clock):
            raise UsageError("-t excludes --at, --for and --every")
        return _window(arguments.window, now.timestamp())
    if all(each is None for each in by_the_clock):
        return None
    begin_s = now.timestamp() if arguments.at is None else _begin_s(arguments.at, now)
    for_s, every_s = _seconds("--for", arguments.for_), _seconds("--every", arguments.every)
    if every_s is not None and (for_s is None or for_s >= every_s):
        raise UsageError("--every needs --for with a shorter duration")
    return Schedule(begin_s, for_s, every_s)


def _window(text: str, now_s: float) -> Schedule:
    """From so long after the start to so long after it, as gprofng has it: 0 begins at once, or never ends."""
    first, dash, last = text.partition("-")
    from_s, to_s = (_after_s(first, text), _after_s(last, text)) if dash else (0.0, _after_s(first, text))
    if not dash and not to_s:
        raise UsageError(f"-t {text}: the duration must be greater than zero")
    if to_s and to_s <= from_s:
        raise UsageError(f"-t {text}: the end is before the beginning")
    return Schedule(now_s + from_s, to_s - from_s if to_s else None)


def _after_s(text: str, whole: str) -> float:
    found_ns = duration_ns(text, bare="s")
    if found_ns is None:
        raise UsageError(f"-t {whole}: not {A_DURATION} or a range such as 1m-5m")
    return found_ns / 1e9


def _begin_s(when: str, now: datetime) -> float:
    if (after_ns := duration_ns(when)) is not None:
        return now.timestamp() + after_ns / 1e9
    found = _TIME.fullmatch(when)
    if found is None:
        raise UsageError(f"--at {when}: not a time such as 02:00 or {A_DURATION}")
    hour, minute, second = (int(part or 0) for part in found.groups())
    begin = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return (begin if begin >= now else begin + timedelta(days=1)).timestamp()


def _seconds(option: str, text: str | None) -> float | None:
    found_ns = None if text is None else duration_ns(text)
    if text is not None and not found_ns:
        raise UsageError(f"{option} {text}: not {A_DURATION}")
    return None if found_ns is None else found_ns / 1e9


class Clockwork:
    """Pauses the recording of `experiment` and lets it go on, as `schedule` says, while the program runs."""

    signals: frozenset[signal.Signals] = frozenset()

    def __init__(
        self, experiment: str, schedule: Schedule, paused: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._pauser = Pauser(experiment, paused)

    def signalled(self, number: signal.Signals) -> None:
        """No signal is for the clock."""

    def attend(self) -> float | None:
        """Pause or go on if it is time; returns the seconds until it may be."""
        now_s = self._clock()
        try:
            if not self._pauser.turn(not self._schedule.is_open(now_s)):
                return SOON_S
        except (ExperimentError, OSError):
            return None  # it has ended
        left_s = self._schedule.left_s(now_s)
        return None if left_s is None else min(left_s, LONGEST_S)
