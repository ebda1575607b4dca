"""`interpose profile`: a performance profile, section by section."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable

from interpose.analysis.analysis import Analysis
from interpose.analysis.partial.sections import SLICES, ProfilePart, question, reduced
from interpose.cli.experiment_choice import (
    add_experiments_argument,
    note_damages,
    note_one_in,
    note_sampled,
    open_paths,
    paths_of,
    refuse_sampled,
)
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.many.reading import Many, ask
from interpose.cli.output import add_output_arguments, opened_output, positive, table_width
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.markdown import sentence
from interpose.reports.screen.section import Section
from interpose.reports.screen.sections import SECTIONS, UNASKED, Profiled, told_unasked

NAME = "profile"
HELP = "show CPU time, waits and activity over time in STROBE's sections"
EXAMPLE = "interpose profile"
ALONE = ("json", "csv")  # formats of which a file holds one table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    parser.add_argument(
        "--section",
        action="append",
        choices=tuple(SECTIONS),
        metavar="SECTION",
        help=f"only this section; repeatable: {', '.join(SECTIONS)}",
    )
    slices = "divide the time into N parts in the section activity (default: %(default)s)"
    parser.add_argument("--slices", type=positive, default=SLICES, metavar="N", help=slices)
    limit = "at most N rows; .OTHER (for transactions: .OTHERS) sums the rest"
    parser.add_argument("--limit", type=positive, metavar="N", help=limit)
    add_many_arguments(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.format in ALONE and len(arguments.section or SECTIONS) > 1:
        raise UsageError(f"--format {arguments.format} takes a single --section")
    if arguments.slices > 1000:
        raise UsageError("--slices must be at most 1000")
    if arguments.limit:
        _refuse_limit(arguments.section or ())
    part, read = _read(arguments)
    made = Profiled(part, arguments.limit)
    chosen = arguments.section or told_unasked(made)
    module = importlib.import_module(f"interpose.reports.formats.{arguments.format}")
    with opened_output(arguments.output) as out:
        for number, name in enumerate(chosen):
            section = SECTIONS[name](made)
            if arguments.format in ALONE:
                module.write(section.table, out, table_width(out))
                continue
            out.write("\n" if number else "")
            out.writelines(f"{line}\n" for line in _above(section, arguments.format))
            module.write(section.table, out, table_width(out))
            out.writelines(f"{line}\n" for line in _below(section, arguments.format))
    return note_damages(read)


def _refuse_limit(names: Iterable[str]) -> None:
    """Raises UsageError if one of the sections that are asked for by name has no limit."""
    for name in names:
        if why := SECTIONS[name].unlimited:
            raise UsageError(f"--limit does not apply to --section {name}: {why}")


def _read(arguments: argparse.Namespace) -> tuple[ProfilePart, Experiment | Many]:
    """The basis of the sections that are wanted, and what it was read from."""
    paths = paths_of(arguments.experiments)
    needs = [need for name in arguments.section or UNASKED for need in SECTIONS[name].needs]
    asked = question(needs, arguments.slices)
    if len(paths) > 1:
        many = ask(paths, asked, arguments)
        note_one_in(many.partial.head.one_in)
        return many.partial.value, many
    experiment = open_paths(paths)
    refuse_sampled(experiment)
    note_sampled(experiment)
    return reduced(Analysis(experiment), asked), experiment


def _above(section: Section, form: str) -> list[str]:
    mark = "## " if form == "markdown" else ""
    return [f"{mark}{section.title}", f"made from: {section.made_from}", ""]


def _below(section: Section, form: str) -> list[str]:
    told = [f"- {sentence(note)}" if form == "markdown" else f"  {note}" for note in section.notes]
    return ["", *told] if told else []
