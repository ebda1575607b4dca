"""`interpose control`: pause, resume, filter, sample or save the recording of a running program."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection, Sequence

from interpose import quantities
from interpose.analysis.recording.ending import is_running
from interpose.cli.copies import save
from interpose.cli.messages import say
from interpose.cli.output import positive
from interpose.cli.target import experiment_of, running_experiment_of
from interpose.config import filters, keywords
from interpose.errors import InterposeError, UsageError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.filtering import change_filter, note
from interpose.experiments.metadata.log import WARNING
from interpose.experiments.metadata.pauses import Switch
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process_numbers import number_to_show
from interpose.kinds import IN_PROGRAMS, ON_REQUEST
from interpose.legacy.codes import STATEMENT
from interpose.reports.formats.table import clean

NAME = "control"
HELP = "pause, resume or filter the recording of a running program"
EXAMPLE = "interpose control test.1.er pause"
USAGE = "interpose control [--file FILE] [PID|EXPERIMENT] [ACT [TEXT]]"
DESCRIPTION = """\
ACT is start (or resume), pause, sample [LABEL], save [PATH.er], filter TEXT (off: record everything), or nothing, to
show what is in force. --file applies a control file. `interpose control suggest --cpu 2400s --events 500000` proposes
an interval for INTERPOSE_INTERVAL. The program gets no signal: it reads its control page at each call."""
SUGGEST = "suggest"
_US_NS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = USAGE
    parser.description = DESCRIPTION
    parser.add_argument("words", nargs="*", metavar="PID|EXPERIMENT ACT TEXT", help="which program, and what to do")
    parser.add_argument("--file", metavar="FILE", help="apply a control file (docs/control.md)")
    parser.add_argument("--cpu", metavar="DURATION", help="with suggest: the CPU time that the program takes")
    parser.add_argument("--events", type=positive, metavar="N", help="with suggest: the maximum number of events")


def run(arguments: argparse.Namespace) -> int:
    words = list(arguments.words)
    if words[:1] == [SUGGEST]:
        if words[1:]:
            raise UsageError(f"{SUGGEST} takes no argument; remove {words[1]!r}")
        return _suggest(arguments)
    if arguments.cpu or arguments.events:
        raise UsageError("--cpu and --events need the action suggest")
    target = None if words[:1] and words[0] in ACTS else words.pop(0) if words else None
    if arguments.file:
        if words:
            raise UsageError(f"--file excludes {words[0]}")
        return _follow(arguments.file, target)
    act = words.pop(0) if words else "status"
    if act not in ACTS:
        raise UsageError(f"{act} is not an action: use {', '.join(ACTS)}", act, ACTS)
    if len(words) > TEXTS.get(act, 0):
        raise UsageError(f"{act} takes {'one argument' if TEXTS.get(act) else 'no argument'}; remove {words[-1]!r}")
    ACTS[act](experiment_of(target) if act in ALWAYS else running_experiment_of(target), words[0] if words else "")
    return 0


def _turn(paused: bool) -> Callable[[Experiment, str], None]:
    def turn(experiment: Experiment, text: str) -> None:
        Switch(experiment.founder).turn(paused)

    return turn


def _sample(experiment: Experiment, label: str) -> None:
    note(experiment.founder, "sample", label)
    Control(experiment.founder).want_sample()


def _save(experiment: Experiment, to: str) -> None:
    print(save(experiment, to or None))


def _filter(experiment: Experiment, text: str) -> None:
    if not text:
        raise UsageError("filter needs clauses, such as 'kind=db', or off")
    made = _parsed(text)
    if made:
        _tell_of_absent(experiment, made)
        _parsed(text, _kinds_recorded(experiment))
    try:
        change_filter(experiment.founder, text, made.compiled(experiment.founder.log.start_ns) if made else b"")
    except OSError as error:
        raise InterposeError(f"{experiment.name}/filter: {error.strerror}") from error


def _parsed(text: str, recorded: Collection[str] = IN_PROGRAMS) -> filters.Filter | None:
    """The filter; of the kinds `recorded` it has to leave something. Raises UsageError."""
    try:
        return filters.parse(text, recorded)
    except ValueError as error:
        raise UsageError(f"filter {text}: {error}") from None


def _kinds_recorded(experiment: Experiment) -> set[str]:
    """The kinds of which calls are recorded, or may be once a package is imported."""
    usual = {kind for kind in IN_PROGRAMS if kind not in ON_REQUEST}
    return usual | {each.kind for process in experiment.processes for each in process.intrinsics if not each.why_not}


def _tell_of_absent(experiment: Experiment, made: filters.Filter) -> None:
    """Tell of what the filter asks for and this experiment does not have. Raises UsageError if it asks for nothing
    else."""
    whys = []
    processes = experiment.processes  # a descendant may have settings of its own
    there = {each.kind for process in processes for each in process.intrinsics if not each.why_not}
    has_statements = any(process.log.settings.get("INTERPOSE_STATEMENTS") == "1" for process in processes)
    absent = {kind for kind in filters.requested(made.text) if kind not in there}
    if absent:
        kinds = ",".join(sorted(absent))
        why = f"calls of the kind {kinds} are not recorded in {experiment.name};"
        whys.append(f"{why} begin the program with INTERPOSE_KINDS=all,{kinds}")
    if filters.asks_for_statements(made.rules) and not has_statements:
        absent.add(STATEMENT)
        why = f"statements are not recorded in {experiment.name};"
        whys.append(f"{why} begin the program with INTERPOSE=calls,lines INTERPOSE_STATEMENTS=1")
    for word in ("kind", "event"):
        wanted = {values[-1] for each, without, values in made.rules if each == word and not without}
        if wanted and wanted <= absent:
            raise UsageError(f"filter {made.text}: {'; '.join(whys)}")
    if whys:
        say(f"filter {made.text}: {'; '.join(whys)}")


def _status(experiment: Experiment, text: str) -> None:
    page, log = Control(experiment.founder).read(), experiment.founder.log
    found = [event for event in log.events if event.kind == "filter"]
    said = found[-1].text if found else log.settings.get("INTERPOSE_FILTER", "off")
    state = "paused" if page.paused else "recording"
    if not any(is_running(process) for process in experiment.processes):
        state = "ended"
    print(clean(f"{experiment.name}  process {number_to_show(log)}  {state}  filter {said}"))
    for event in log.events:
        if event.kind == WARNING:
            print(clean(f" warning  {event.text}"))


ACTS: dict[str, Callable[[Experiment, str], None]] = {
    "start": _turn(paused=False),
    "resume": _turn(paused=False),
    "pause": _turn(paused=True),
    "sample": _sample,
    "save": _save,
    "filter": _filter,
    "status": _status,
}
TEXTS = {"sample": 1, "save": 1, "filter": 1}
ALWAYS = ("save", "status")


def _suggest(arguments: argparse.Namespace) -> int:
    if not arguments.cpu or not arguments.events:
        raise UsageError(f"{SUGGEST}: needs --cpu 2400s and --events 500000")
    try:
        cpu_ns = quantities.duration_ns(arguments.cpu)
    except ValueError as error:
        raise UsageError(f"--cpu {arguments.cpu}: {error}") from None
    print(f"{max(math.ceil(cpu_ns / arguments.events / _US_NS), 1)}us")
    return 0


def _follow(path: str, target: str | None) -> int:
    """Apply the control file, step by step; mistakes are reported, and everything else is applied."""
    try:
        steps, wrong = keywords.read(path)
    except OSError as error:
        raise InterposeError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise InterposeError(str(error)) from error
    for line in wrong:
        say(line)
    code = 2 if wrong else 0
    for place, step in enumerate(steps):
        if step.name in keywords.PROCESSING:
            code = _process(step, target) or code
        else:
            code = _control(steps[: place + 1], target) or code
    return code


def _control(steps: Sequence[keywords.Step], target: str | None) -> int:
    """Do the last of the steps with the running program."""
    step, experiment = steps[-1], running_experiment_of(target)
    if step.name != "FILTER":
        _turn(paused=step.name != "START")(experiment, "")
        if given := [key for key in step.keys if key != "RESOURCE"]:
            say(f"{step.place}: {', '.join(given)}: possible only when a program starts (INTERPOSE_CONTROL)")
        return 2 if given else 0
    text, wrong = keywords.filter_of(steps)
    for line in wrong:
        say(line)
    try:
        _filter(experiment, text or filters.OFF)
    except UsageError as error:
        say(f"{step.place}: {error}")
        return 2
    return 2 if wrong else 0


def _process(step: keywords.Step, target: str | None) -> int:
    """Have another command do what its function of the Natural Profiler did."""
    from interpose.cli.main import load, make_parser

    resource = step.value("RESOURCE") or target
    words = {
        "CONSOLIDATE": ["consolidate", *filter(None, [resource])],
        "READ": ["events", "--codes", "natural", *filter(None, [resource])],
        "MASHZONE": ["report", "--format", "mashzone", *filter(None, [resource])],
        "LIST": ["list"],
        "DELETE": ["rm", *filter(None, [resource])],
    }[step.name]
    if step.name in ("CONSOLIDATE", "DELETE") and not resource:
        raise UsageError(f"{step.place}: {step.name} needs RESOURCE=, or an experiment after the file")
    command = load(words[0])
    return command.run(make_parser({words[0]: command}).parse_args(words))
