"""`interpose display`: views of an experiment, asked for in the manner of er_print.

Views are asked for by commands on the command line, in order (`interpose display -functions -limit 5 -calltree EXP`,
the dash may be left out), by a script, or at a prompt. A subject with options of its own is a module like a command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from interpose.cli.er_print import statistics, zwr
from interpose.cli.er_print.commands import VERBS, Ended, Verb, find, nearest
from interpose.cli.er_print.prompt import Step, converse, read_defaults, read_script, run_script
from interpose.cli.er_print.views import Session, standard_output
from interpose.cli.experiment_choice import note_damages, note_sampled, open_experiments, refuse_sampled
from interpose.cli.main import Command
from interpose.cli.parser import Parser, list_below, sentence
from interpose.errors import UsageError
from interpose.experiments.maintenance.packed import SUFFIX
from interpose.experiments.metadata import names

NAME = "display"
HELP = "show functions, callers, sources, I/O with er_print's commands"
EXAMPLE = "interpose display -functions"
SUBJECTS: dict[str, Command] = {statistics.NAME: statistics, zwr.NAME: zwr}
VIEWS = "views"
SCRIPT, FROM_INPUT = "-script", "-"
_EXPERIMENTS = (names.SUFFIX, ".erg", SUFFIX)


@dataclass
class Asked:
    """What the words of the command line ask for: experiments, and commands or scripts in their order."""

    experiments: list[str] = field(default_factory=list)
    steps: list[Step | str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "interpose display [EXPERIMENT …] [-COMMAND [WORD …]] … [-script FILE] [-]"
    list_below(parser, "commands", ((verb.usage, verb.help) for verb in VERBS))
    parsers = parser.add_subparsers(
        title="with options of their own",
        prog="interpose display",
        dest="subject",
        metavar="SUBJECT",
        parser_class=Parser,
    )
    for name, subject in SUBJECTS.items():
        told = sentence(subject.HELP)
        below = parsers.add_parser(name, help=subject.HELP, description=told, example=subject.EXAMPLE)
        subject.add_arguments(below)
    views = parsers.add_parser(VIEWS)
    views.add_argument("words", nargs="*")


def rearranged(words: Sequence[str]) -> list[str]:
    """The words for the parser: everything but a subject, which stands alone, is for the views."""
    others = {f"-{verb.name}" for verb in VERBS}
    if words and words[0] in ("-h", "--help", *SUBJECTS) and others.isdisjoint(words):
        return list(words)
    return [VIEWS, "--", *words]


def run(arguments: argparse.Namespace) -> int:
    if arguments.subject != VIEWS:
        return SUBJECTS[arguments.subject].run(arguments)
    asked = parse(arguments.words)
    scripts = {path: read_script(path) for path in asked.steps if isinstance(path, str) and path != FROM_INPUT}
    experiment = open_experiments(asked.experiments)
    refuse_sampled(experiment)
    note_sampled(experiment)
    session = Session(experiment, standard_output())
    read_defaults(session)
    try:
        for step in asked.steps:
            _run_step(session, step, scripts)
        if not asked.steps:
            _listen(session)
    except Ended:
        pass
    finally:
        session.close()
    return note_damages(experiment)


def _run_step(session: Session, step: Step | str, scripts: dict[str, list[str]]) -> None:
    if isinstance(step, Step):
        step.run(session)
    elif step == FROM_INPUT:
        run_script(session, sys.stdin, "standard input")
    else:
        run_script(session, scripts[step], step)


def _listen(session: Session) -> None:
    """Run commands from the prompt, or from a pipe."""
    if sys.stdin.isatty():
        converse(session)
    else:
        run_script(session, sys.stdin, "standard input")


def parse(words: Sequence[str]) -> Asked:
    """What the words ask for. Raises UsageError."""
    asked, left = Asked(), list(words)
    while left:
        word = left.pop(0)
        if word == FROM_INPUT:
            asked.steps.append(word)
        elif word in (SCRIPT, f"-{SCRIPT}"):
            asked.steps.append(_needed(left, SCRIPT, "FILE"))
        elif _is_experiment(word):
            asked.experiments.append(word)
        elif verb := find(_bare(word)):
            asked.steps.append(Step(verb, _words_of(verb, left)))
        else:
            is_command = word.startswith("-") or not os.path.lexists(word)
            if is_command:
                what = "is not a command" if word.startswith("-") else "is not a command or an experiment"
                raise UsageError(f"{word} {what}{nearest(_bare(word), [each.name for each in VERBS])}")
            asked.experiments.append(word)
    return asked


def _words_of(verb: Verb, left: list[str]) -> list[str]:
    """Take the command's arguments from `left`: the required ones, and optional ones if they are nothing else."""
    taken = [_needed(left, verb.name, word) for word in verb.words[: verb.needed]]
    while left and len(taken) < len(verb.words) and not (_is_command(left[0]) or _is_experiment(left[0])):
        taken.append(left.pop(0))
    return taken


def _needed(left: list[str], name: str, word: str) -> str:
    if not left:
        raise UsageError(f"{name}: {word} is missing")
    return left.pop(0)


def _bare(word: str) -> str:
    return word.removeprefix("-").removeprefix("-")


def _is_command(word: str) -> bool:
    return word in (SCRIPT, FROM_INPUT) or find(_bare(word)) is not None


def _is_experiment(word: str) -> bool:
    return word.rstrip("/").endswith(_EXPERIMENTS)
