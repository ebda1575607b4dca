"""When an experiment's sources are archived: as asked, after a run, or by the first who reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.recording.ending import any_running, ending
from interpose.config.in_force import ARCHIVES_OF_OBJECTS
from interpose.config.schema import ARCHIVES, ARCHIVES_OF_SOURCES
from interpose.errors import InterposeError, UsageError
from interpose.experiments.maintenance.archives import Archive, has_archive
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import Done, Limits, Roots, Wanted, archive, objects_of, sources_of

AT_ONCE = Limits(files=2_000, bytes=64 << 20, seconds=1.0)


def archive_as_asked(
    experiment: Experiment,
    mode: str,
    *,
    matching: str | None = None,
    descendants: bool = True,
    again: bool = False,
    common: str | None = None,
) -> Done:
    """Archive what `mode` says. Raises InterposeError if that cannot be: on another host, no rights."""
    experiment.refuse_if_unpacked("an archive")
    if is_on_another_host(experiment):
        host = experiment.founder.log.system.get("host", "?")
        raise InterposeError(f"{experiment.name}: was recorded on {host}; archive it there, where its sources are")
    processes = experiment.processes if descendants else experiment.processes[:1]
    wanted = _matching(_wanted(processes, mode), matching)
    try:
        with Archive(experiment.founder_directory, common=common) as opened:
            return archive(opened, wanted, _roots(experiment), Limits(), again)
    except OSError as error:
        raise InterposeError(f"{error.filename or experiment.name}: {error.strerror}") from error


def archive_at_once(experiment: Experiment) -> None:
    """Archive as the program's settings say, if nobody has and its processes have ended; never an error, never long. If
    texts were redacted, they may be in the sources as well, and the expression is unknown here."""
    settings = experiment.founder.log.settings
    mode = settings.get("INTERPOSE_ARCHIVE", "off") if settings.get("INTERPOSE_REDACT", "off") == "off" else "off"
    if mode not in ARCHIVES or mode == "off" or not _is_ours_to_archive(experiment):
        return
    try:
        with Archive(experiment.founder_directory, wait=False) as opened:
            archive(opened, _wanted(experiment.processes, mode), _roots(experiment), AT_ONCE)
    except (OSError, InterposeError):
        pass  # the experiment is read all the same


def is_on_another_host(experiment: Experiment) -> bool:
    """Whether what the experiment refers to is on another host."""
    return experiment.founder.log.system.get("host") != os.uname().nodename


def _is_ours_to_archive(experiment: Experiment) -> bool:
    """On this host, the reader's own, whole, all of its processes ended, and nothing archived."""
    founder = experiment.founder_directory
    try:
        found = os.lstat(founder)
    except OSError:
        return False
    return (
        experiment.packed is None
        and experiment.directory == founder
        and not is_on_another_host(experiment)
        and found.st_uid == os.geteuid()
        and os.access(founder, os.W_OK)
        and not has_archive(founder)
        and not any_running(experiment)
    )


def _wanted(processes: Iterable[Process], mode: str) -> Iterator[Wanted]:
    """The files of all processes, each path once."""
    seen: set[str] = set()
    for process in processes:
        ended_ns = _calendar_end_ns(process)
        found = list(sources_of(process, ended_ns)) if mode in ARCHIVES_OF_SOURCES else []
        if mode in ARCHIVES_OF_OBJECTS:
            found += objects_of(process, ended_ns)
        for each in found:
            if each.path not in seen:
                seen.add(each.path)
                yield each


def _matching(wanted: Iterable[Wanted], expression: str | None) -> Iterator[Wanted]:
    try:
        compiled = re.compile(expression or "")
    except re.error as error:
        raise UsageError(f"-m {expression}: {error}") from error
    return (each for each in wanted if compiled.search(each.path))


def _roots(experiment: Experiment) -> Roots:
    """The directories from which any of the processes imported; a forked one continues with its parent's."""
    return Roots(path for process in experiment.processes for path in process.roots())


def _calendar_end_ns(process: Process) -> int | None:
    """When the process ended on the calendar; None while it runs."""
    end = ending(process)
    if end.state == "running":
        return None
    last_ns = end.end_ns or latest_instant_ns(process, [])
    return process.log.time_ns + last_ns - process.log.start_ns
