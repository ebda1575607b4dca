"""`interpose archive`: copy what an experiment refers to into it, or make one file of the whole."""

from __future__ import annotations

import argparse
import os
import tempfile

from interpose.analysis.recording.ending import any_running
from interpose.cli.archiving import archive_as_asked, is_on_another_host
from interpose.cli.copies import copy
from interpose.cli.experiment_choice import note_damages, open_experiment
from interpose.cli.messages import say
from interpose.config.schema import ARCHIVES
from interpose.errors import InterposeError, UsageError
from interpose.experiments.maintenance.packed import SUFFIX, pack
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sources import Done
from interpose.reports.formats.units import count

NAME = "archive"
HELP = "copy sources into an experiment, or pack it into one file"
EXAMPLE = "interpose archive test.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory")
    parser.add_argument(
        "-a",
        dest="mode",
        choices=ARCHIVES,
        default="usedsrc",
        metavar="WHAT",
        help="usedsrc (also on, src): sources; usedldobjects (also ldobjects): programs and libraries; all; off",
    )
    parser.add_argument("-d", dest="common", metavar="DIRECTORY", help="share the copies of several experiments there")
    parser.add_argument("-m", dest="matching", metavar="REGEX", help="only files whose path matches")
    parser.add_argument("-n", dest="alone", action="store_true", help="leave out child processes")
    parser.add_argument("-o", dest="output", metavar="NAME.er.tar.zst", help="pack it into one file")
    parser.add_argument("-q", dest="quiet", action="store_true", help="print nothing; archive.log has the messages")
    parser.add_argument("-F", dest="again", action="store_true", help="copy again what is already archived")


def run(arguments: argparse.Namespace) -> int:
    if arguments.output and (len(arguments.experiments) > 1 or not arguments.output.endswith(SUFFIX)):
        raise UsageError(f"-o packs a single experiment into a file NAME{SUFFIX}")
    if arguments.again and (arguments.alone or arguments.matching):
        raise UsageError("-F copies everything again: leave out -m and -n")
    return max([_archive(path, arguments) for path in arguments.experiments], default=0)


def _archive(path: str, arguments: argparse.Namespace) -> int:
    experiment = open_experiment(path, archive=False)
    if arguments.again and _is_descendant(experiment):
        raise UsageError(f"{experiment.name}: is a child process; give -F the experiment that contains it")
    if arguments.output and is_on_another_host(experiment):
        arguments.mode = "off"  # its sources are elsewhere, but it can be packed
    if arguments.output and arguments.mode != "off" and not os.access(experiment.founder_directory, os.W_OK):
        arguments.mode = "off"
        say(f"{experiment.name}: may not be changed: packed with the sources that it has")
    if arguments.mode != "off":
        done = archive_as_asked(
            experiment,
            arguments.mode,
            matching=arguments.matching,
            descendants=not arguments.alone,
            again=arguments.again,
            common=_directory(arguments.common),
        )
        if not arguments.quiet:
            say(f"{experiment.name}: {in_words(done)}")
    if arguments.output:
        _pack(experiment, arguments.output)
    return note_damages(experiment)


def _pack(experiment: Experiment, path: str) -> None:
    """Raises InterposeError."""
    experiment.refuse_if_unpacked("another file")
    if _is_descendant(experiment):
        raise UsageError(f"{experiment.name}: is a child process; pack the experiment that contains it")
    try:
        with tempfile.TemporaryDirectory(prefix="interpose-") as directory:
            pack(_at_rest(experiment, directory), path)
    except OSError as error:
        raise InterposeError(f"{path}: {error.strerror}") from error


def _at_rest(experiment: Experiment, directory: str) -> str:
    """The experiment's directory; if it is still being written, a copy below `directory`, because an archive begins
    with sizes."""
    if not any_running(experiment):
        return experiment.directory
    copied = os.path.join(directory, experiment.name)
    copy(experiment.directory, copied)
    return copied


def in_words(done: Done) -> str:
    """What came of archiving, in a line."""
    told = f"{count(done.copied, 'file')} archived"
    if done.had:
        told += f", {done.had:,} archived already"
    if done.refused:
        path, why = next(iter(done.refused.items()))
        more = f" and {len(done.refused) - 1:,} more" if len(done.refused) > 1 else ""
        told += f"; not archived: {path} ({why}){more}, see archive.log"
    return told


def _is_descendant(experiment: Experiment) -> bool:
    return experiment.directory != experiment.founder_directory


def _directory(path: str | None) -> str | None:
    """The common directory. Raises UsageError if it is not there."""
    if path is not None and not os.path.isdir(path):
        raise UsageError(f"-d {path}: not a directory")
    return path and os.path.realpath(path)
