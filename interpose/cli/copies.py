"""Copies of experiments, also of those whose programs run; what fails is said as the user needs it."""

from __future__ import annotations

import os
import tempfile

from interpose.analysis.recording.ending import is_running
from interpose.errors import ExperimentError, InterposeError
from interpose.experiments.maintenance import copying, packed, saving
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.metadata.known_damage import keep_known
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages


def save(experiment: Experiment, to: str | None = None) -> str:
    """The path of a copy of `experiment` as it is now. Raises InterposeError if none can be made."""
    try:
        return saving.save(experiment, is_running, to)
    except FileExistsError as error:
        raise InterposeError(f"{error.filename}: already exists") from None
    except OSError as error:
        place = error.filename or to or experiment.directory
        raise InterposeError(f"{place}: {error.strerror}; -o names another place") from None


def copy(source: str, target: str) -> Damages:
    """Copy the experiment at `source` to `target`; where its program runs, as it is at one instant. An archive is
    unpacked; returns what could not be read of it.

    Raises OSError, and InterposeError.
    """
    damages = Damages()
    if packed.is_archive(source):
        _unpack(source, target, damages)
    else:
        _copy(source, target)
    return damages


def _unpack(source: str, target: str, damages: Damages) -> None:
    """Nothing is at `target` before all is there."""
    above = os.path.dirname(without_links(target))
    with tempfile.TemporaryDirectory(prefix=".interpose-", dir=above) as directory:
        unpacked = packed.unpack(source, directory, damages)
        keep_known(unpacked, damages)
        copying.move(unpacked, target)


def _copy(source: str, target: str) -> None:
    try:
        experiment = Experiment(source)
    except ExperimentError:
        return copying.copy(source, target)  # what cannot be read can be copied
    if any(is_running(process) for process in experiment.processes):
        os.stat(os.path.dirname(without_links(target)))  # its directory is not made
        saving.save(experiment, is_running, target)
    else:
        copying.copy(source, target)
