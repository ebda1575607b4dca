"""`interpose label`: name windows of time in an experiment, to look at them alone."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from interpose.analysis.recording.ending import ending
from interpose.cli.experiment_choice import note_damages, open_experiment
from interpose.cli.times import duration_ns, monotonic_ns
from interpose.errors import ExperimentError, InterposeError, UsageError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.labels import ACTIONS, Mark, Pair, Window, pairs, why_not, windows, write_marks
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.quantities import A_DURATION
from interpose.reports.formats.table import clean

NAME = "label"
HELP = "name periods of time in an experiment, or list them"
EXAMPLE = "interpose label -n warm -t start=10s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", dest="experiment", metavar="EXPERIMENT", help="the experiment (default: the newest)")
    parser.add_argument("-n", dest="name", metavar="NAME", help="the label: letters and digits")
    parser.add_argument(
        "-t",
        dest="marks",
        action="append",
        default=[],
        metavar="start|stop[=WHEN]",
        help="start or end a window now (also @), this long after the start (2.5s), at a time (10:02), or relative to"
        " now (+5s, -5s)",
    )
    parser.add_argument("-C", dest="comment", default="", metavar="TEXT", help="a comment on the label")


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    if arguments.marks:
        _add(experiment, arguments)
    elif arguments.name:
        raise UsageError("-t start or -t stop is missing")
    else:
        _list(experiment)
    return note_damages(experiment)


def _add(experiment: Experiment, arguments: argparse.Namespace) -> None:
    name = arguments.name or ""
    if why := why_not(name):
        raise UsageError(f"-n {name}: {why}")
    experiment.refuse_if_unpacked("a label")
    added = [_mark(text, name.lower(), arguments.comment, experiment.founder) for text in arguments.marks]
    pairs_now = pairs([*experiment.marks, *added], name)
    for text, mark in zip(arguments.marks, added, strict=True):
        if why := _why_outside(mark, experiment) or _why_meaningless(mark, pairs_now):
            raise UsageError(f"-t {text}: {why}")
    _refuse_to_part(pairs(experiment.marks, name), pairs_now, experiment.founder.log.start_ns)
    try:
        write_marks(experiment.founder_directory, [*experiment.marks, *added])
    except OSError as error:
        raise InterposeError(f"{experiment.name}/labels.xml: {error.strerror}") from error
    if ending(experiment.founder).state == "running":
        _want_sample(experiment)


def _why_outside(mark: Mark, experiment: Experiment) -> str:
    """Why `mark` is a start outside of the recording; empty if it is not."""
    if mark.action == "stop":
        return ""
    start_ns = experiment.founder.log.start_ns
    if mark.time_ns < start_ns:
        return "is before the beginning of the recording"
    ends_ns = [ending(process).end_ns for process in experiment.processes]
    if None in ends_ns or mark.time_ns <= (end_ns := max(filter(None, ends_ns))):
        return ""
    return f"is after the end of the recording ({(end_ns - start_ns) / 1e9:.6f} s)"


def _why_meaningless(mark: Mark, found: Sequence[Pair]) -> str:
    """Why `mark` is the beginning or end of no window, or of an empty one; empty if it is of another."""
    of_mark = next((pair for pair in found if mark is pair[0] or mark is pair[1]), None)
    if of_mark is None and mark.action == "stop":
        return f"no window of {mark.name} is open then; a start must come first"
    if of_mark is None:
        return f"a window of {mark.name} is open then; a stop must come first"
    start, stop = of_mark
    return "the window would be empty" if stop and stop.time_ns == start.time_ns else ""


def _refuse_to_part(before: Sequence[Pair], now: Sequence[Pair], start_ns: int) -> None:
    """Raise UsageError if a mark that began or ended a window before does so no more."""
    kept = {id(mark) for pair in now for mark in pair}
    for mark in (mark for pair in before for mark in pair):
        if mark and id(mark) not in kept:
            at = f"{(mark.time_ns - start_ns) / 1e9:.6f} s"
            raise UsageError(f"-n {mark.name}: the {mark.action} at {at} would belong to no window any more")


def _want_sample(experiment: Experiment) -> None:
    """Have the program's usage sampled now; that of another host, or of another user's program, is not."""
    try:
        Control(experiment.founder).want_sample()
    except ExperimentError:
        pass


def _mark(text: str, name: str, comment: str, process: Process) -> Mark:
    """The mark in the text. Raises UsageError for an invalid one."""
    action, said, when = text.partition("=")
    if action not in ACTIONS:
        raise UsageError(f"-t {text}: must begin with start or stop")
    time_ns = _instant_ns(when, process) if said else _now_ns(process)
    if not 0 <= time_ns < 1 << 63:
        raise UsageError(f"-t {text}: is too far away")
    return Mark(name, action, time_ns, comment)


def _instant_ns(when: str, process: Process) -> int:
    if when == "@":
        return _now_ns(process)
    if when[:1] in ("+", "-"):
        offset_ns = duration_ns(when[1:])
        if offset_ns is None:
            raise UsageError(f"-t {when}: not {A_DURATION}")
        return _now_ns(process) + (offset_ns if when[0] == "+" else -offset_ns)
    return monotonic_ns(when, process, "-t")


def _now_ns(process: Process) -> int:
    """Now, on the clock of the process, which may be of another host or of before the last start of this one."""
    return process.log.start_ns + time.time_ns() - process.log.time_ns


def _list(experiment: Experiment) -> None:
    start_ns = experiment.founder.log.start_ns
    if not experiment.marks:
        print(f"{experiment.name}: no labels")
    for name in dict.fromkeys(mark.name for mark in experiment.marks):
        comments = dict.fromkeys(mark.comment for mark in experiment.marks if mark.name == name and mark.comment)
        shown = [_shown(window, start_ns) for window in windows(experiment.marks, name)]
        for each in shown or ["no window: no start before its stop"]:
            print(clean("  ".join([name, each, *comments])))


def _shown(window: Window, start_ns: int) -> str:
    end = "" if window.stop_ns >= 1 << 63 else f"{(window.stop_ns - start_ns) / 1e9:.6f} s"
    return f"{(window.start_ns - start_ns) / 1e9:.6f} s to {end}".rstrip()
