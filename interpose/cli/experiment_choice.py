"""Which experiment a command uses, and the message if there is none."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from glob import glob, has_magic
from typing import Protocol

from interpose.analysis.recording.missing import note_missing
from interpose.analysis.transactions.estimate import is_sampled
from interpose.cli.archiving import archive_at_once
from interpose.cli.consolidating import consolidate_at_once
from interpose.cli.many.remote import fetch, is_remote, matching, shown
from interpose.cli.messages import say
from interpose.config import state
from interpose.config.precedence import in_force
from interpose.config.settings_file import absolute
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.maintenance.packed import SUFFIX, is_archive, unpack
from interpose.experiments.metadata import group, names
from interpose.experiments.metadata.labels import Window, windows
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages

_SHOWN = 1
_OLDER_TRIED = 10


def add_experiment_argument(parser: argparse.ArgumentParser) -> None:
    """The argument EXPERIMENT, which may be left out."""
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT",
        help="an experiment's directory or archive NAME.er.tar.zst (default: the newest)",
    )


def add_experiments_argument(parser: argparse.ArgumentParser) -> None:
    """The arguments EXPERIMENT …, of which there may be none."""
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help="directories, archives NAME.er.tar.zst, groups NAME.erg, patterns 'shop.*.er', or URLs of these "
        "(default: the newest)",
    )


def add_label_argument(parser: argparse.ArgumentParser) -> None:
    """The option --label."""
    parser.add_argument("--label", metavar="NAME", help="only the parts of calls within the periods of this label")


def labelled(experiment: Experiment, name: str | None) -> list[Window] | None:
    """The windows of the label `name`; None without a label. Raises UsageError if there are none."""
    if name is None:
        return None
    if isinstance(experiment, Collection):
        raise UsageError("--label needs a single experiment, because each has its own labels")
    if found := windows(experiment.marks, name):
        return found
    names = dict.fromkeys(mark.name for mark in experiment.marks)
    known = ", ".join(each for each in names if windows(experiment.marks, each)) or "none"
    raise UsageError(f"--label {name}: no such label; labels: {known}")


def note_clipped(is_so: bool) -> None:
    """Say in one line that calls reach beyond the windows of a label."""
    if is_so:
        say("--label: calls reach beyond its windows; their part inside is shown, with estimated CPU time")


def open_experiments(given: Sequence[str]) -> Experiment:
    """The experiments `given` and those of the groups among them, read as one; else the newest.

    Of several, those that cannot be read are noted. Raises ExperimentError if none can.
    """
    return open_paths(paths_of(given))


def open_paths(paths: Sequence[str]) -> Experiment:
    """The same for the paths of single experiments. Raises ExperimentError."""
    if len(paths) < 2:
        return open_experiment(paths[0] if paths else None)
    damages, opened = Damages(), []
    for path in paths:
        try:
            opened.append(open_experiment(path, damages=damages))
        except ExperimentError as error:
            place, _, what = str(error).rpartition(": ")
            damages.add(place, what)
    if not opened:
        raise ExperimentError(str(damages.found[0]))
    return Collection(opened)


def paths_of(given: Sequence[str]) -> list[str]:
    """The paths of the `given` experiments, of those in groups among them and of those that match patterns, each once.
    Raises ExperimentError."""
    return list({_identity(path): path for each in given for path in _members(each)}.values())


def _identity(path: str) -> str:
    return path if is_remote(path) else os.path.realpath(path)


def _members(path: str) -> list[str]:
    if is_remote(path):
        return _remote_members(path)
    if not has_magic(path) or os.path.lexists(path):
        return group.members(path) if group.is_group(path) else [path]
    if found := [each for each in sorted(glob(path)) if each.endswith((names.SUFFIX, SUFFIX))]:
        return found
    raise ExperimentError(f"{path}: no experiment matches")


def _remote_members(url: str) -> list[str]:
    if not has_magic(url):
        return [url]
    if found := matching(url):
        return found
    raise ExperimentError(f"{shown(url)}: no experiment matches")


def open_experiment(given: str | None, archive: bool = True, damages: Damages | None = None) -> Experiment:
    """The experiment `given`, or the newest, with a remark on newer runs that were not recorded. Raises
    ExperimentError.

    The first reader archives its sources and consolidates its calls, as the program's settings say, unless `archive` is
    false.
    """
    experiment = _open(given, Damages() if damages is None else damages)
    if archive:
        archive_at_once(experiment)
        consolidate_at_once(experiment)
    note_missing(experiment)
    return experiment


def _in_a_place_of_its_own(packed: str, made: Callable[[str], Experiment]) -> Experiment:
    """The experiment that is `made` in a directory, which goes when it does; `packed` is where it came from."""
    directory = tempfile.mkdtemp(prefix="interpose-")
    try:
        experiment = made(directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    weakref.finalize(experiment, shutil.rmtree, directory, True)
    experiment.packed = packed
    return experiment


def _unpacked(path: str, damages: Damages) -> Experiment:
    """The experiment that the file at `path` holds. Raises ExperimentError."""
    return _in_a_place_of_its_own(path, lambda place: Experiment(unpack(path, place, damages), damages))


def _fetched(url: str, damages: Damages) -> Experiment:
    """The experiment at `url`. Raises InterposeError."""
    return _in_a_place_of_its_own(shown(url), lambda place: _named(fetch(url, place), damages))


def _open(given: str | None, damages: Damages) -> Experiment:
    if given is not None:
        return _one_member(given, damages) if group.is_group(given) else _named(given, damages)
    directory = in_force(os.environ).dir
    newest = names.newest(directory)
    if newest is None:
        elsewhere = [f"the newest elsewhere is {path}" for path in state.experiments_elsewhere()[-1:]]
        noted = [str(note) for note in state.not_recorded_in(directory, absolute("."))[-1:]]
        advice = "name it, or make one with interpose run app.py" if elsewhere else "interpose run app.py makes one"
        said = f"no experiment in {directory}{names.hint_if_empty(directory)}"
        raise ExperimentError("; ".join([said, *elsewhere, *(noted or [advice])]))
    _say_what_is_newer(newest, directory)
    try:
        return Experiment(newest, damages)
    except ExperimentError as error:
        older = _readable_before(newest, directory)
        raise ExperimentError(f"{error}; the one before can be read: {older}" if older else str(error)) from error


def _readable_before(newest: str, directory: str) -> str:
    """The newest of the older experiments in `directory` that can be read, as a user here would type it; or nothing."""
    older = [path for path in names.list_experiments(directory) if path != newest]
    for path in older[: -_OLDER_TRIED - 1 : -1]:
        with contextlib.suppress(ExperimentError):
            Experiment(path)
            return os.path.relpath(path) if directory == absolute(".") else path
    return ""


def _named(path: str, damages: Damages) -> Experiment:
    if is_remote(path):
        return _fetched(path, damages)
    return _unpacked(path, damages) if is_archive(path) else Experiment(path, damages)


def _one_member(path: str, damages: Damages) -> Experiment:
    """The experiment that a group names, where only one can be read. Raises ExperimentError for several."""
    members = group.members(path)
    if len(members) > 1:
        raise ExperimentError(f"{path}: names {len(members):,} experiments; this command reads one")
    return _named(members[0], damages)


class MayBeDamaged(Protocol):
    """What was read, with what could not be."""

    @property
    def damages(self) -> Damages: ...


def note_damages(experiment: Experiment | MayBeDamaged) -> int:
    """Report damage of `experiment` in one line; return the exit code: 3 if there is any."""
    return note(experiment.damages)


def note(damages: Damages) -> int:
    """The same of what could not be read."""
    if not damages.found:
        return 0
    more = f" (and {damages.count - _SHOWN} more)" if damages.count > _SHOWN else ""
    say(f"{damages.found[0]}{more}")
    return 3


def _say_what_is_newer(experiment: str, directory: str) -> None:
    """Report recordings elsewhere, or failures to record, that are newer than the newest experiment of `directory`: the
    user expects those."""
    try:
        written_s = os.stat(os.path.join(experiment, names.LOG)).st_mtime
    except OSError:
        return
    name = os.path.basename(experiment)
    if elsewhere := _newest_elsewhere(directory, written_s):
        say(f"newer than {name}: {elsewhere}; the directory wanted for it could not be used")
    noted = state.not_recorded_in(directory, absolute("."))
    if noted and noted[-1].time_s > written_s:
        say(f"newer than {name}: {noted[-1]}")


def _newest_elsewhere(directory: str, written_s: float) -> str | None:
    """The newest experiment that was meant for `directory`, could not be made there, and is newer than `written_s`."""
    for path in reversed(state.experiments_elsewhere()):
        with contextlib.suppress(OSError, ExperimentError):
            if os.stat(os.path.join(path, names.LOG)).st_mtime <= written_s:
                return None
            log = Experiment(path).founder.log
            wanted = os.path.expanduser(log.settings.get("INTERPOSE_DIR", "."))
            if absolute(".") == log.cwd or directory == os.path.normpath(os.path.join(log.cwd, wanted)):
                return path
    return None


RECORDED = "this is of what was recorded of those kept, not estimated"


def note_sampled(experiment: Experiment, what: str = RECORDED) -> None:
    """Say in one line where transactions were sampled, and what that means for the figures."""
    if is_sampled(experiment):
        note_one_in(next(process.log.one_in for process in experiment.processes if process.log.one_in), what)


def note_one_in(one_in: int, what: str = RECORDED) -> None:
    """The same, where it is known that one in so many was kept; 0 if all were."""
    if one_in:
        say(f"transactions were sampled, one in {one_in:,}: {what}")


def refuse_sampled(experiment: Experiment) -> None:
    """Raises UsageError if calls were sampled, because their counts and wall times are unknown."""
    if interval := experiment.founder.log.interval:
        why = f"its calls were sampled (INTERPOSE_INTERVAL={interval})"
        raise UsageError(f"{experiment.name}: {why}: use interpose report or interpose events")
