"""`interpose coverage annotate` and `html`: the sources, with what ran."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from interpose import __version__
from interpose.cli.commands.coverage.arguments import (
    add_asked_arguments,
    add_branch_argument,
    add_threshold_argument,
    ended,
    opened,
)
from interpose.cli.commands.coverage.subcommand import Subcommand
from interpose.cli.output import add_output_argument, opened_output, refuse_within_experiments
from interpose.errors import InterposeError
from interpose.reports.coverage import annotated
from interpose.reports.coverage.pages import pages

DIRECTORY = "htmlcov"
_UNSEEN = ".gitignore", "*\n"


def add_annotate_arguments(parser: argparse.ArgumentParser) -> None:
    add_asked_arguments(parser)
    add_output_argument(parser)


def annotate(arguments: argparse.Namespace) -> int:
    experiment, found = opened(arguments)
    with opened_output(arguments.output) as out:
        annotated.write(found, os.getcwd(), out)
    return ended(experiment, found, arguments)


def add_html_arguments(parser: argparse.ArgumentParser) -> None:
    add_asked_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", default=DIRECTORY, help=f"the directory to write to (default: {DIRECTORY})"
    )
    add_branch_argument(parser)
    add_threshold_argument(parser)


def html(arguments: argparse.Namespace) -> int:
    experiment, found = opened(arguments)
    directory = arguments.output
    refuse_within_experiments(os.path.join(directory, "x"))
    with _new_files(directory) as there:
        unseen = [] if there else [_UNSEEN]
        for name, text in [*unseen, *pages(found, experiment.name, os.getcwd(), __version__, arguments.branch)]:
            with opened_output(os.path.join(directory, name)) as file:
                file.write(text)
    return ended(experiment, found, arguments)


@contextmanager
def _new_files(directory: str) -> Iterator[list[str]]:
    """What is in the directory, which is made if it is missing. If writing to it fails, whatever is new is removed: a
    part of the pages would look like all. Raises InterposeError."""
    is_new = not os.path.lexists(directory)
    there = None
    try:
        os.makedirs(directory, exist_ok=True)
        there = os.listdir(directory)
        yield there
    except BaseException as error:
        if there is not None:
            _remove_new(directory, there, is_new)
        if isinstance(error, OSError):
            raise InterposeError(f"{error.filename or directory}: {error.strerror}") from error
        raise


def _remove_new(directory: str, there: list[str], is_new: bool) -> None:
    with suppress(OSError):
        for name in set(os.listdir(directory)) - set(there):
            os.unlink(os.path.join(directory, name))
        if is_new:
            os.rmdir(directory)


SUBCOMMANDS = (
    Subcommand(
        "annotate",
        "print sources with a mark before each line: > covered, ~ partly, ! missed, - excluded",
        "interpose coverage annotate -o annotated.txt",
        add_annotate_arguments,
        annotate,
    ),
    Subcommand(
        "html",
        "write pages for a browser: lines are green, yellow or red",
        "interpose coverage html",
        add_html_arguments,
        html,
    ),
)
