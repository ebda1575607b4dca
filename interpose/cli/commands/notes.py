"""`interpose notes`: shows, adds or edits the notes of an experiment."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile

from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.errors import InterposeError, UsageError
from interpose.experiments.metadata.lines_of_text import LARGEST_BYTES
from interpose.experiments.metadata.notes import write_notes
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import clean

NAME = "notes"
HELP = "show, add or edit the notes of an experiment"
EXAMPLE = "interpose notes --add 'with the new index'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--add", metavar="TEXT", action="append", help="add a note; repeatable")
    change.add_argument("--edit", action="store_true", help="edit the notes with $VISUAL or $EDITOR")


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    if arguments.add:
        if not any(map(str.strip, arguments.add)):
            raise UsageError("--add needs a text")
        replace_notes(experiment, [*experiment.notes, *lines_of(arguments.add)])
    elif arguments.edit:
        replace_notes(experiment, edited(experiment.notes))
    else:
        for line in experiment.notes:
            print(clean(line))
    return note_damages(experiment)


def lines_of(texts: list[str]) -> list[str]:
    """The lines that the texts of options make."""
    return [line for text in texts for line in text.splitlines()]


def replace_notes(experiment: Experiment, lines: list[str]) -> None:
    """Have `lines` be the notes of the founder. Raises InterposeError."""
    experiment.refuse_if_unpacked("notes")
    try:
        write_notes(experiment.founder_directory, lines)
    except OSError as error:
        raise InterposeError(f"{experiment.name}/notes: {error.strerror}") from error


def edited(lines: list[str]) -> list[str]:
    """The lines after the user's editor had them. Raises InterposeError if it did not end well."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor and not sys.stdin.isatty():
        raise UsageError("--edit needs a terminal, or EDITOR; --add TEXT needs neither")
    editor = editor or "vi"
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="interpose-notes-", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        try:
            done = subprocess.run([*shlex.split(editor), file.name], check=False)
        except OSError as error:
            raise InterposeError(f"{editor}: {error.strerror}; EDITOR names another editor") from error
        except ValueError as error:
            raise InterposeError(f"{editor}: {error}; EDITOR names another editor") from error
        if done.returncode:
            raise InterposeError(f"{editor} ended with {done.returncode}; the notes did not change")
        with open(file.name, "rb") as again:
            return again.read(LARGEST_BYTES + 1).decode("utf-8", "replace").splitlines()
