"""Asks many experiments one question: what is kept, what has to be read and by whom, and what all of them say."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interpose.analysis.partial.coding import NotThis
from interpose.analysis.partial.partial import Partial, Question, Reduction, merged
from interpose.cli.many import cluster, processes, work
from interpose.cli.many.kept import Kept, kept_directory
from interpose.cli.many.reductions import REDUCTIONS
from interpose.cli.many.remote import is_only_here, is_remote, shown
from interpose.errors import ExperimentError
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.files import Damages


@dataclass
class Many:
    """What experiments say together. `failed` says which could not be read, and why."""

    partial: Partial[Any]
    failed: Damages

    @property
    def damages(self) -> Damages:
        """What could not be read of them: whole experiments first."""
        made, of_some = Damages(), self.partial.head.damages
        for place, what in (*self.failed.found, *of_some.found):
            made.add(place, what)
        made.count = self.failed.count + of_some.count
        return made

    @property
    def name(self) -> str:
        """What these experiments are called in a report."""
        return f"{self.partial.head.experiments:,} experiments"

    @property
    def log(self) -> Log:
        """How the earliest of them was recorded, as far as tables need to know."""
        return self.partial.head.recorded.log


def ask(paths: Sequence[str], question: Question, arguments: argparse.Namespace) -> Many:
    """The answer of the experiments at `paths`; those that cannot be read are left out, and reported. Raises
    ExperimentError if none can be read, and UsageError where an experiment has no answer to that question."""
    directory = None if arguments.no_cache else kept_directory()
    asking = _Asking(paths, question, Kept(directory) if directory else None, arguments)
    found = merged(asking.partials(), asking.reduction)
    if found is None:
        raise ExperimentError(str(asking.failed.found[0]))
    return Many(found, asking.failed)


class _Asking:
    """Asks the experiments at some paths."""

    def __init__(
        self, paths: Sequence[str], question: Question, kept: Kept | None, arguments: argparse.Namespace
    ) -> None:
        self.reduction: Reduction[Any] = REDUCTIONS[question.reduction]
        self._stamps: dict[int, str] = {}
        self._failures: dict[int, tuple[str, str]] = {}
        self._paths = [os.path.abspath(path) if arguments.dask and not is_remote(path) else path for path in paths]
        self._question = question
        self._kept = kept
        self._jobs: int | None = arguments.jobs
        self._dask: str | None = arguments.dask

    @property
    def failed(self) -> Damages:
        """What could not be read, in the order of the paths."""
        made = Damages()
        for _, (where, what) in sorted(self._failures.items()):
            made.add(where, what)
        return made

    def partials(self) -> Iterator[Partial[Any]]:
        """The answers, in the order of the paths, so that nothing depends on who reads what."""
        missing: dict[int, None] = {}
        found: dict[int, Partial[Any]] = {}
        for place in range(len(self._paths)):
            known = self._known(place)
            if known:
                found[place] = known
            else:
                missing[place] = None
        told, reading = 0, self._read(list(missing))
        for place, answer in reading:
            missing.pop(place)
            if partial := self._understood(place, answer):
                found[place] = partial
            while told < len(self._paths) and told not in missing:
                if told in found:
                    yield found.pop(told)
                told += 1
        yield from (found.pop(place) for place in sorted(found))

    def _known(self, place: int) -> Partial[Any] | None:
        """The answer that is kept."""
        path = self._paths[place]
        if not self._kept or is_only_here(path) or not (stamp := self._kept.stamp(path, self._question)):
            return None
        self._stamps[place] = stamp
        text = self._kept.find(stamp)
        if text is None:
            return None
        try:
            return work.read_partial(text, self.reduction)
        except NotThis:
            return None

    def _read(self, places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """What is not kept, read by others, and here what nobody else can read."""
        ours = [place for place in places if is_only_here(self._paths[place])]
        others = [place for place in places if place not in set(ours)]
        yield from ((place, work.answered(self._task(place)[1])) for place in ours)
        if not others:
            return
        tasks = [self._task(place) for place in others]
        if self._dask:
            read = cluster.answers(tasks, self._dask)
        else:
            jobs = self._jobs or processes.worth_starting(self._paths[place] for place in others)
            read = processes.answers(tasks, jobs)
        yield from ((others[number], answer) for number, answer in read)
        if self._kept:
            self._kept.tidy()

    def _task(self, place: int) -> tuple[str, bytes]:
        path = self._paths[place]
        kept = self._kept.directory if self._kept and not self._dask else None
        return shown(path) if is_remote(path) else os.path.basename(path), work.task(path, self._question, kept)

    def _understood(self, place: int, answer: bytes) -> Partial[Any] | None:
        try:
            found = work.understood(answer, self.reduction)
        except ExperimentError as error:
            where, _, what = str(error).rpartition(": ")
            self._failures[place] = where, what
        except NotThis:
            self._failures[place] = self._task(place)[0], "its reader is of another version of interpose"
        else:
            self._keep(place, found, answer)
            return found
        return None

    def _keep(self, place: int, found: Partial[Any], answer: bytes) -> None:
        """Keep what a cluster has answered: its workers may have another user's cache, or none."""
        stamp = self._stamps.get(place)
        if self._dask and self._kept and stamp and not found.head.is_running:
            self._kept.keep(self._paths[place], self._question, stamp, work.text_of(answer))
