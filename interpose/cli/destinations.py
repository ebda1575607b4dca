"""Where experiments are copied and moved to: a new name, or into a directory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TypeVar

from interpose.analysis.recording.ending import ending
from interpose.errors import ExperimentError, InterposeError, UsageError
from interpose.experiments.maintenance.copying import refuse_what_is_none
from interpose.experiments.maintenance.packed import SUFFIX, is_archive
from interpose.experiments.maintenance.parts import strangers
from interpose.experiments.metadata import group, names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process_numbers import number_to_show

Result = TypeVar("Result")


def add_places_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments EXPERIMENT … TARGET."""
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory")
    parser.add_argument("target", metavar="TARGET", help="a new NAME.er, or an existing directory")


def targets(experiments: list[str], target: str, with_archives: bool = False) -> list[tuple[str, str]]:
    """Each experiment, or archive of one, with the path that it shall have. Raises InterposeError before anything is
    done."""
    for path in experiments:
        if group.is_group(path):
            raise UsageError(f"{path}: is a group; name its experiments instead")
        if is_archive(path) and not with_archives:
            raise UsageError(f"{path}: is an archive, a single file; interpose cp unpacks it")
        if not is_archive(path):
            refuse_what_is_none(path)
    is_new = target.rstrip("/").endswith(names.SUFFIX)
    if is_new and len(experiments) > 1:
        raise UsageError(f"{target}: must be a directory, because there are several experiments")
    if not is_new and not os.path.isdir(target):
        raise UsageError(f"{target}: not a directory, and does not end with {names.SUFFIX}")
    last_parts = [_name_of_copy(path) for path in experiments]
    found = [target.rstrip("/")] if is_new else [os.path.join(target, name) for name in last_parts]
    if why := names.why_not(os.path.basename(found[0])):
        raise UsageError(f"{target}: {why}")
    for number, path in enumerate(found):
        if os.path.lexists(path) or path in found[:number]:
            raise ExperimentError(f"{path}: already exists")
    return list(zip(experiments, found, strict=True))


def _name_of_copy(path: str) -> str:
    name = os.path.basename(os.path.abspath(path))
    return f"{name.removesuffix(SUFFIX)}{names.SUFFIX}" if is_archive(path) else name


def refuse_running(path: str, advice: str = "; -f does it all the same") -> None:
    """Raises ExperimentError if a process of the experiment is alive; what cannot be read is not."""
    try:
        experiment = Experiment(path)
    except ExperimentError:
        return
    for process in experiment.processes:
        if ending(process).state == "running":
            raise ExperimentError(f"{experiment.name}: process {number_to_show(process.log)} still runs{advice}")


def refuse_losing(path: str, advice: str = "") -> None:
    """Raises ExperimentError if removing the experiment would lose foreign files, or if it is still being written."""
    try:
        found = strangers(path)
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from error
    if found:
        raise ExperimentError(f"{path}/{found[0]}: not a file of the experiment{advice}")
    refuse_running(path, advice)


def do(act: Callable[[], Result], place: str) -> Result:
    """Act, with errors in one line that names the place. Raises InterposeError."""
    try:
        return act()
    except OSError as error:
        raise InterposeError(f"{error.filename or place}: {error.strerror}") from error
