"""The experiment that `interpose run` makes before its program starts."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
from functools import partial

from interpose.cli.messages import say
from interpose.config import state
from interpose.config.schema import Settings
from interpose.errors import InterposeError, UsageError
from interpose.experiments.metadata import names


def add_place_argument(parser: argparse._ActionsContainer) -> None:
    """The option -o."""
    parser.add_argument(
        "-o",
        dest="experiment",
        metavar="PATH.er",
        help="path of the experiment; if NAME.N.er exists, the next number is used",
    )


def place_of(path: str, letter: str) -> dict[str, str]:
    """The settings that make an experiment at `path`. Raises UsageError for what cannot be one."""
    directory, name = os.path.split(path)
    why = names.why_not(name) or (None if name.endswith(names.SUFFIX) else f"its name must end with {names.SUFFIX}")
    if why:
        raise UsageError(f"{letter} {path}: {why}")
    return {"dir": directory or ".", "name": name}


def make_experiment(in_force: Settings) -> str:
    """The path of a new experiment. Raises InterposeError if it cannot be made."""
    try:
        return _make(in_force, in_force.dir, in_force.group_reads)
    except OSError as error:
        raise InterposeError(f"{_failed(in_force, error)}; INTERPOSE_DIR or --dir names another directory") from None


def make_experiment_or_go_without(in_force: Settings) -> str | None:
    """The path of a new experiment for a program that runs in any case: in the user's state directory if none can be
    made where the settings say, None if there is no place at all; a line says which. Raises InterposeError if an option
    names the directory, or the experiment exists already."""
    if in_force.origins["INTERPOSE_DIR"] == "option":
        return make_experiment(in_force)
    try:
        return _make(in_force, in_force.dir, in_force.group_reads)
    except OSError as error:
        why = _failed(in_force, error)
    elsewhere, path = state.experiments_directory(), None
    if elsewhere:
        with contextlib.suppress(OSError):
            path = _make(in_force, elsewhere, group_reads=False)
    say(f"{why}; the experiment is {path}" if path else f"{why}; nothing is recorded")
    return path


def _make(in_force: Settings, directory: str, group_reads: bool) -> str:
    try:
        return create_experiment(directory, in_force.name, group_reads)
    except FileExistsError as error:
        raise InterposeError(f"{error.filename}: already exists") from None


def _failed(in_force: Settings, error: OSError) -> str:
    why = "is not writable" if error.errno in (errno.EACCES, errno.EROFS) else error.strerror
    return f"{in_force.dir}: {why}"


def overwrite(path: str) -> None:
    """Remove the experiment at `path`, if there is one. Raises ExperimentError if it is something else, or still runs.
    """
    from interpose.cli.destinations import do, refuse_losing
    from interpose.experiments.maintenance.copying import refuse_what_is_none, remove

    if os.path.lexists(path):
        refuse_what_is_none(path)
        refuse_losing(path)
        do(partial(remove, path), path)


def create_experiment(directory: str, name: str, group_reads: bool) -> str:
    """The path of a new experiment: where NAME.N.er is there already, the next number. Raises OSError."""
    try:
        return names.create(directory, name, group_reads)
    except FileExistsError:
        stem, number = names.split_numbered(name)
        if not number:
            raise
    path = names.create(directory, stem, group_reads)
    say(f"{name} already exists: this experiment is {os.path.basename(path)}")
    return path


def add_notes(experiment: str, texts: list[str]) -> None:
    """Keep the notes of the command line; where they cannot be kept, say so."""
    from interpose.experiments.metadata.creating import without_links
    from interpose.experiments.metadata.notes import write_notes

    try:
        write_notes(without_links(experiment), [line for text in texts for line in text.splitlines()])
    except (OSError, InterposeError) as error:
        say(f"-C: {error}")


def program_environment(in_force: Settings, experiment: str | None) -> dict[str, str]:
    """The environment of the program: ours, the settings, and the experiment of which it is the founder."""
    environment = {**os.environ, **in_force.environment()}
    environment.pop("INTERPOSE_LINEAGE", None)
    if experiment is not None:
        environment["INTERPOSE_LINEAGE"] = f"{os.getpid()} {experiment} "
    return environment
