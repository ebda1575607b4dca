"""`interpose rm`: remove experiments; of a group its experiments and itself."""

from __future__ import annotations

import argparse
import os
from functools import partial

from interpose.cli.destinations import do, refuse_losing
from interpose.errors import ExperimentError
from interpose.experiments.maintenance.copying import refuse_what_is_none, remove
from interpose.experiments.maintenance.packed import is_archive
from interpose.experiments.metadata import group

NAME = "rm"
HELP = "remove experiments, or groups with all their experiments"
EXAMPLE = "interpose rm test.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory, or NAME.erg")
    parser.add_argument(
        "-f",
        dest="force",
        action="store_true",
        help="also remove running ones and files of others in them; ignore missing ones",
    )


def run(arguments: argparse.Namespace) -> int:
    found, groups = _named(arguments.experiments, arguments.force)
    for path in found:
        if is_archive(path):
            raise ExperimentError(f"{path}: is an archive: rm of the system removes it")
        refuse_what_is_none(path)
        if not arguments.force:
            refuse_losing(path, "; -f removes it all the same")
    for path in found:
        do(partial(remove, path), path)
    for path in groups:
        do(partial(os.unlink, path), path)
    return 0


def _named(paths: list[str], force: bool) -> tuple[list[str], list[str]]:
    """The experiments and the groups; without those that are not there, where that is no matter."""
    found: list[str] = []
    groups = [path for path in paths if group.is_group(path) and (os.path.lexists(path) or not force)]
    for path in paths:
        named = group.members(path) if path in groups else [] if group.is_group(path) else [path]
        found += [each for each in named if os.path.lexists(each) or not force]
    return list(dict.fromkeys(found)), groups
