"""The signals to `interpose run` that ask it for something."""

from __future__ import annotations

import argparse
import signal
from typing import NamedTuple

from interpose.errors import UsageError

_NOT_TO_ASK_WITH = ("SIGKILL", "SIGSTOP", "SIGCHLD", "SIGINT", "SIGQUIT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")


class Asked(NamedTuple):
    """Which signal asks for what; None for what none does. `recording` is whether a toggle begins with recording."""

    save: signal.Signals | None
    toggle: signal.Signals | None
    recording: bool
    sample: signal.Signals | None


def add_signal_arguments(parser: argparse.ArgumentParser) -> None:
    """The options --save-on, -y and -l."""
    parser.add_argument(
        "--save-on",
        metavar="SIGNAL",
        help="save a copy of the experiment at each such signal to interpose run (SIGUSR1)",
    )
    parser.add_argument(
        "-y",
        dest="toggle",
        metavar="SIGNAL[,r]",
        help="start paused; each such signal to interpose run resumes or pauses (with ,r: start recording, and the"
        " first signal pauses)",
    )
    parser.add_argument(
        "-l",
        dest="sample_on",
        metavar="SIGNAL",
        help="at each such signal to interpose run, note the usage and start the labelled window sample1, sample2 and"
        " so on",
    )


def signals_of(arguments: argparse.Namespace) -> Asked:
    """The signals in the options. Raises UsageError for an invalid one, and for one that is given twice."""
    toggle, comma, how = (arguments.toggle or "").partition(",")
    if comma and how != "r":
        raise UsageError(f"-y {arguments.toggle}: only ,r can follow the signal")
    asked = Asked(
        _signal(arguments.save_on, "--save-on"),
        _signal(None if arguments.toggle is None else toggle, "-y"),
        bool(comma),
        _signal(arguments.sample_on, "-l"),
    )
    given = [each for each in (asked.save, asked.toggle, asked.sample) if each is not None]
    if twice := [each for each in given if given.count(each) > 1]:
        raise UsageError(f"{twice[0].name}: used for two options; choose another signal for one of them")
    return asked


def _signal(text: str | None, option: str) -> signal.Signals | None:
    return None if text is None else signal_named(text, option)


def signal_named(text: str, option: str) -> signal.Signals:
    """The signal called `USR1`, `SIGUSR1` or by its number. Raises UsageError for one that cannot ask for anything."""
    wanted = text.upper()
    wanted = wanted if wanted.startswith("SIG") else f"SIG{wanted}"
    for number in signal.Signals:
        if wanted == number.name or text == str(int(number)):
            if number.name not in _NOT_TO_ASK_WITH:
                return number
            raise UsageError(f"{option} {text}: this signal cannot be used; try USR1 or USR2")
    raise UsageError(f"{option} {text}: not a signal; try USR1 or USR2")
