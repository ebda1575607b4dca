"""`interpose consolidate`: put like calls together into records that are kept in the experiment."""

from __future__ import annotations

import argparse
import os
import shutil

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.structure import is_consolidated_alone
from interpose.analysis.consolidation.kept_records import SLOWEST, keep
from interpose.analysis.consolidation.merging import Merged
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.analysis.recording.ending import is_running
from interpose.analysis.transactions.estimate import is_sampled
from interpose.cli.consolidating import take_events_away
from interpose.cli.experiment_choice import note_damages, open_experiment
from interpose.cli.messages import say
from interpose.errors import InterposeError, UsageError
from interpose.experiments.maintenance.writing import write_process
from interpose.experiments.metadata import names
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.metadata.group import is_group, members
from interpose.experiments.metadata.known_damage import keep_known
from interpose.experiments.metadata.notes import write_notes
from interpose.experiments.metadata.pauses import pauses_of
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import Sampled
from interpose.reports.formats.units import count

NAME = "consolidate"
HELP = "combine like calls into one record each, with count and times"
EXAMPLE = "interpose consolidate test.1.er"
_NAMED = 10  # the names of the merged experiments, in its notes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory")
    parser.add_argument("--replace", action="store_true", help="remove the events afterwards; the records stay")
    parser.add_argument(
        "-o",
        "--output",
        metavar="NEW.er",
        help="merge all given experiments and groups into a new one; they do not change",
    )
    parser.add_argument(
        "--slowest",
        type=_slowest,
        default=SLOWEST,
        metavar="N",
        help=f"how many of the slowest calls to keep whole (default: {SLOWEST})",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.output:
        return _merge(arguments)
    return max([_consolidate(path, arguments) for path in arguments.experiments], default=0)


def _consolidate(path: str, arguments: argparse.Namespace) -> int:
    experiment = open_experiment(path)
    experiment.refuse_if_unpacked("records")
    if any(is_running(process) for process in experiment.processes):
        raise UsageError(f"{experiment.name}: still running; try again when it has ended")
    if arguments.replace and any(process.is_ring for process in experiment.processes):
        raise UsageError(f"{experiment.name}: --replace is not possible for a ring, which needs its events")
    if is_consolidated_alone(experiment):
        say(f"{experiment.name}: has only records already")
        return note_damages(experiment)
    pauses = pauses_of(experiment)
    try:
        calls = sum(keep(process, pauses, arguments.slowest) for process in experiment.processes)
        code = note_damages(experiment)
        if arguments.replace and code == 0:
            take_events_away(experiment)
    except OSError as error:
        raise InterposeError(f"{experiment.name}: {error.strerror}") from error
    say(f"{experiment.name}: {count(calls, 'call')} consolidated{_what_became(arguments.replace, code)}")
    return code


def _merge(arguments: argparse.Namespace) -> int:
    """Put what all experiments have into a new one, a process for each program that they ran."""
    if arguments.replace:
        raise UsageError("--replace excludes -o, which does not change the merged experiments")
    if not arguments.output.endswith(names.SUFFIX):
        raise UsageError(f"-o {arguments.output}: its name must end with {names.SUFFIX}")
    paths = [path for given in arguments.experiments for path in (members(given) if is_group(given) else [given])]
    merged: dict[tuple[str, ...], Merged] = {}
    damages = Damages()
    calls = processes = sampled = code = whole_ns = 0
    for path in paths:
        experiment = open_experiment(path)
        if is_sampled(experiment):
            raise UsageError(f"{experiment.name}: its transactions were sampled, so it cannot be merged with others")
        analysis = Analysis(experiment)
        whole_ns += elapsed_ns(analysis)
        for process in experiment.processes:
            into = merged.setdefault(_program(process), Merged(process, arguments.slowest))
            calls += into.take_in(analysis, process)
            processes += 1
            sampled += Sampled(process).is_there
        code = max(code, note_damages(experiment))
        for damage in experiment.damages.found:
            damages.add(os.path.join(os.path.dirname(path), damage.place), damage.what)
    try:
        name = _write(arguments.output, list(merged.values()), paths, whole_ns)
        keep_known(arguments.output, damages)
    except FileExistsError:
        raise InterposeError(f"{arguments.output}: already exists") from None
    except OSError as error:
        raise InterposeError(f"{arguments.output}: {error.strerror}") from error
    became = count(processes, "process", "processes")
    if len(merged) < processes:
        became += f" combined into {len(merged):,}, one for each program"
    say(f"{name}: {count(calls, 'call')} of {count(len(paths), 'experiment')} consolidated; {became}")
    if sampled:
        of = count(sampled, "process", "processes")
        say(f"{name}: has no samples of code, which {of} had; interpose report with several experiments keeps them")
    return code


def _program(process: Process) -> tuple[str, ...]:
    """What shows which processes ran the same program: the module, the text of -c, or the script's path."""
    arguments = process.log.arguments
    if arguments[:1] and arguments[0].startswith("-"):
        return (process.log.executable, *arguments[:2])
    return (process.log.executable, os.path.join(process.log.cwd, *arguments[:1]))


def _write(path: str, merged: list[Merged], paths: list[str], whole_ns: int) -> str:
    """Make the experiment; returns its name. Raises OSError, InterposeError."""
    directory, name = os.path.split(without_links(path))
    made = names.create(directory, name)
    try:
        for number, each in enumerate(merged):
            lineage = f"_c{number}" if number else ""
            if lineage:
                os.mkdir(names.lineage_path(made, lineage), 0o700)
            write_process(names.lineage_path(made, lineage), each.written(number + 1, 0 if number else whole_ns))
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    shown = ", ".join(paths[:_NAMED]) + (f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else "")
    write_notes(made, [f"merged from {count(len(paths), 'experiment')}: {shown}"])
    return os.path.basename(made)


def _what_became(replace: bool, code: int) -> str:
    if not replace:
        return ""
    return "; the events are gone" if code == 0 else "; the events are kept, for something is damaged"


def _slowest(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 9999")
    return int(text)
