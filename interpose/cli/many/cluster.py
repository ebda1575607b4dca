"""Reads experiments on a Dask cluster, whose workers have interpose and see the same paths or URLs.

A scheduler takes milliseconds for each task, so a task has several experiments: many at first, then fewer, so that all
workers end at the same time.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from interpose.cli.many.work import answered, failure
from interpose.errors import ExperimentError, InterposeError, UsageError

_CONNECTED_WITHIN_S = 10
_AT_MOST_TOGETHER = 32
_SHARES = 4  # a batch has this part of what is left for each worker's thread
Batch = list[int]  # the positions of its tasks


def answers(tasks: Sequence[tuple[str, bytes]], address: str) -> Iterator[tuple[int, bytes]]:
    """The position of each task and its answer, in any order; tasks have the name of what they read. Raises
    InterposeError if there is no cluster at `address`."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=_CONNECTED_WITHIN_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        told = str(error).strip().partition("\n")[0]
        raise InterposeError(f"--dask {address}: no cluster answers: {told}") from error
    with client, client.as_current():
        yield from _Asked(client, tasks).answers(distributed.as_completed)


class _Asked:
    """Tasks on a cluster, and which batch each future is."""

    def __init__(self, client: Any, tasks: Sequence[tuple[str, bytes]]) -> None:
        self._client = client
        self._tasks = tasks
        self._batches: dict[str, Batch] = {}

    def answers(self, as_completed: Any) -> Iterator[tuple[int, bytes]]:
        """The answers, as they come."""
        threads = sum(self._client.nthreads().values())
        running = as_completed(self._submitted(batches(len(self._tasks), threads)), raise_errors=False)
        doubtful: Batch = []  # killed with their worker, perhaps because of another task that it had
        for future in running:
            batch = self._batches[future.key]
            try:
                found = _checked(future.result(), len(batch))
            except Exception as error:
                if len(batch) > 1:  # one of them fails, or has the worker killed: each by itself
                    running.update(self._submitted([[place] for place in batch]))
                    continue
                if type(error).__name__ == "KilledWorker":
                    doubtful += batch
                    continue
                found = [self._failed(batch[0], error)]
            yield from zip(batch, found, strict=True)
        for place in doubtful:
            yield place, self._alone(place)

    def _alone(self, place: int) -> bytes:
        """The answer to a task while no other one runs."""
        (future,) = self._submitted([[place]])
        try:
            (found,) = _checked(future.result(), 1)
        except Exception as error:
            return self._failed(place, error)
        return found

    def _submitted(self, given: Sequence[Batch]) -> list[Any]:
        told = [[self._tasks[place][1] for place in batch] for batch in given]
        futures: list[Any] = self._client.map(_answered, told, pure=False)
        self._batches.update({future.key: batch for future, batch in zip(futures, given, strict=True)})
        return futures

    def _failed(self, place: int, error: Exception) -> bytes:
        """Why there is no answer: the worker was killed, or has another version."""
        name, told = self._tasks[place][0], str(error).strip().partition("\n")[0]
        return failure(ExperimentError(f"{name}: the worker that read it failed: {type(error).__name__}: {told}"))


def batches(count: int, threads: int) -> list[Batch]:
    """The positions of so many tasks, in batches that become smaller."""
    made: list[Batch] = []
    begin = 0
    while begin < count:
        size = min(max((count - begin) // (_SHARES * max(threads, 1)), 1), _AT_MOST_TOGETHER)
        made.append([*range(begin, begin + size)])
        begin += size
    return made


def _answered(tasks: Sequence[bytes]) -> list[bytes]:
    return [answered(task) for task in tasks]


def _checked(found: Any, count: int) -> list[bytes]:
    """What a worker answered. Raises ExperimentError if that is something else."""
    if not isinstance(found, list) or len(found) != count or not all(isinstance(each, bytes) for each in found):
        raise ExperimentError("its answer is none")
    return found


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise UsageError("--dask: the package distributed is missing: pip install 'interpose[dask]'") from None
