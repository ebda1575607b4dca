"""Asks many experiments one question: what is kept, what has to be read and by whom, and what all of them say."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from interpose.analysis.partial.coding import NotThis
from interpose.analysis.partial.partial import Partial, Question, Reduction, merged
from interpose.cli.many import cluster, processes, work
from interpose.cli.many.batches import batches, name_of
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
        self._batches = [batch for batch in batches(self._paths) for _ in batch]

    @property
    def failed(self) -> Damages:
        """What could not be read, in the order of the paths."""
        made = Damages()
        for _, (where, what) in sorted(self._failures.items()):
            made.add(where, what)
        return made

    def partials(self) -> Iterator[Partial[Any]]:
        """The answers, each of one experiment or of a batch, in the order of the paths, so that nothing depends on who
        reads what."""
        answers = self._answers()
        for batch, group in groupby(answers, lambda each: self._batches[each[0]]):
            found = [partial for _, partial in group]
            whole = merged(found, self.reduction) if len(found) > 1 else found[0]
            assert whole
            self._keep_whole(batch, whole, len(found))
            yield whole

    def _answers(self) -> Iterator[tuple[int, Partial[Any]]]:
        """The position of each experiment that has an answer, in order, and that; of a batch whose merged answer is
        kept, only the first."""
        missing: dict[int, None] = {}
        found: dict[int, Partial[Any]] = {}
        for batch in dict.fromkeys(self._batches):
            if whole := self._known_whole(batch):
                found[batch.start] = whole
                continue
            for place in batch:
                if known := self._known(place):
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
                    yield told, found.pop(told)
                told += 1
        yield from ((place, found.pop(place)) for place in sorted(found))

    def _known_whole(self, batch: range) -> Partial[Any] | None:
        """The merged answer of a batch that is kept."""
        if self._kept is None:
            return None
        for place in batch:
            path = self._paths[place]
            if not is_only_here(path) and (stamp := self._kept.stamp(path, self._question)):
                self._stamps[place] = stamp
        return self._found(self._name_of(batch))

    def _known(self, place: int) -> Partial[Any] | None:
        """The answer that is kept."""
        return self._found(self._stamps.get(place))

    def _name_of(self, batch: range) -> str | None:
        """The name of the merged answer of a batch; None if something of it cannot be kept."""
        stamps = [self._stamps[place] for place in batch if place in self._stamps]
        return name_of(stamps) if 1 < len(stamps) == len(batch) else None

    def _found(self, name: str | None) -> Partial[Any] | None:
        text = self._kept.find(name) if self._kept and name else None
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
        task = work.task(path, self._question, kept, self._stamps.get(place))
        return shown(path) if is_remote(path) else os.path.basename(path), task

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
        self._stamps.pop(place, None)
        return None

    def _keep(self, place: int, found: Partial[Any], answer: bytes) -> None:
        """Note how its reader has kept an answer; keep what a cluster has answered, which may have no cache."""
        stamp = self._stamps.pop(place, "")
        if not self._dask:
            stamp = work.stamp_of(answer)
        elif stamp and self._kept:
            kept = None if found.head.is_running else self._kept
            stamp = work.kept_as(kept, self._paths[place], self._question, stamp, work.text_of(answer))
        if stamp:
            self._stamps[place] = stamp

    def _keep_whole(self, batch: range, whole: Partial[Any], answers: int) -> None:
        """Keep the merged answer of a batch that was put together here."""
        name = self._name_of(batch)
        if self._kept and name and answers == len(batch) and not whole.head.is_running:
            self._kept.keep_whole(name, work.packed_partial(whole, self.reduction))
