"""What all subcommands of `interpose coverage` are asked with, and what they begin and end with."""

from __future__ import annotations

import argparse
import os
import re

from interpose.analysis.coverage.coverage import Asked, Coverage, coverage, finished
from interpose.analysis.partial.partial import Question
from interpose.analysis.partial.reductions import COVERAGE
from interpose.cli.experiment_choice import add_experiments_argument, note_damages, open_paths, paths_of
from interpose.cli.installed_script import hint
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.many.reading import Many, ask
from interpose.cli.messages import say
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.coverage.tables import shown_percent

BELOW = 2  # the exit code where less is covered than asked for, as coverage.py has it
_NOTES_AT_MOST = 10


def add_asked_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the experiments, and the options that choose files, contexts and exclusions."""
    add_experiments_argument(parser)
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DIR",
        help="only modules in this directory, including those that never ran; repeatable",
    )
    parser.add_argument("--include", metavar="PATTERNS", help="only files that match a pattern: 'shop/*,*/orders.py'")
    parser.add_argument("--omit", metavar="PATTERNS", help="leave out files that match a pattern")
    parser.add_argument("--context", metavar="REGEX", help="only what ran in contexts that match")
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="REGEX",
        help="also leave out lines that match, with the block below each, besides the usual ones"
        " (# pragma: no cover; bodies of three dots; if TYPE_CHECKING:); repeatable",
    )
    add_many_arguments(parser)


def add_threshold_argument(parser: argparse.ArgumentParser) -> None:
    """The option --fail-under."""
    parser.add_argument(
        "--fail-under",
        type=_percent,
        metavar="PERCENT",
        help=f"exit code {BELOW} if a smaller share of statements (with --branch: and branches) is covered",
    )


def add_branch_argument(parser: argparse.ArgumentParser) -> None:
    """The option --branch."""
    parser.add_argument(
        "--branch", action="store_true", help="include branches, if recorded (INTERPOSE_BRANCHES=1)"
    )


def opened(arguments: argparse.Namespace) -> tuple[Experiment | Many, Coverage]:
    """The experiments and their coverage; remarks are printed. Raises InterposeError."""
    asked = _asked(arguments)
    experiment, found = _read(arguments, asked)
    if not found.codes:
        raise ExperimentError(f"{experiment.name}: {_why_nothing(experiment, found)}")
    if not found.in_context:
        raise ExperimentError(f"{experiment.name}: nothing ran in a context that matches --context {arguments.context}")
    if not found.modules:
        raise ExperimentError(f"{experiment.name}: the options leave out everything that was recorded")
    for note in found.notes[:_NOTES_AT_MOST]:
        say(note)
    if len(found.notes) > _NOTES_AT_MOST:
        say(f"and {len(found.notes) - _NOTES_AT_MOST:,} more notes")
    if getattr(arguments, "branch", False) and not found.with_branches:
        say(f"{experiment.name}: no branches were recorded: use INTERPOSE_BRANCHES=1")
        arguments.branch = False
    return experiment, found


def _read(arguments: argparse.Namespace, asked: Asked) -> tuple[Experiment | Many, Coverage]:
    paths = paths_of(arguments.experiments)
    if len(paths) > 1:
        many = ask(paths, Question(COVERAGE, options=asked.packed()), arguments)
        return many, finished(many.partial.value, asked)
    experiment = open_paths(paths)
    return experiment, coverage(experiment, asked)


def ended(experiment: Experiment | Many, found: Coverage, arguments: argparse.Namespace) -> int:
    """The exit code: that of damages, else whether less is covered than asked for, which is said."""
    damaged = note_damages(experiment)
    least = getattr(arguments, "fail_under", None)
    if least is None:
        return damaged
    with_branches = getattr(arguments, "branch", False)
    share = found.own + found.branches if with_branches else found.own
    if share.whole == 0 and all(module.table for module in found.modules):
        return damaged  # nothing is missing of nothing
    if share.percent is not None and share.percent >= least:
        return damaged
    of = "statements and branches" if with_branches else "statements"
    say(f"{experiment.name}: {_below(share.percent, least)} of {of} covered, less than {least:g} %")
    return BELOW


def _below(percent: float | None, least: float) -> str:
    """The share as reports show it; all of its digits if it would round up to `least`."""
    if percent is None or round(percent, 1) < least:
        return shown_percent(percent)
    return f"{percent} %"


def _why_nothing(experiment: Experiment | Many, found: Coverage) -> str:
    if found.notes:
        return f"no coverage was recorded: {found.notes[0]}"
    if found.was_asked:
        why = hint(experiment.founder, "INTERPOSE_COVERAGE", found.wanted) if isinstance(experiment, Experiment) else ""
        return f"no code that ran matches INTERPOSE_COVERAGE={found.wanted}{why}"
    return "no coverage was recorded: use interpose run --coverage own, or INTERPOSE=coverage"


def _asked(arguments: argparse.Namespace) -> Asked:
    for directory in arguments.source:
        if not os.path.exists(directory):
            raise UsageError(f"--source {directory}: no such directory")
    context = _expression("--context", arguments.context) if arguments.context is not None else None
    for each in arguments.exclude:
        _expression("--exclude", each)
    return Asked(
        arguments.source, _patterns(arguments.include), _patterns(arguments.omit), context, arguments.exclude
    )


def _patterns(given: str | None) -> list[str]:
    return [each.strip() for each in (given or "").split(",") if each.strip()]


def _expression(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{option} {text}: invalid regular expression: {error}") from None


def _percent(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return found
