"""Reads experiments by several processes on this machine. Which one reads what does not matter for the answers.

The processes are new interpreters that import nothing of the caller's; they exchange bytes with us, and nothing that is
executed. If one is killed, the experiment that it read is reported as not read, and another process goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence

from interpose.analysis.recording.ending import signal_name
from interpose.cli.many.frames import receive, send
from interpose.cli.many.remote import is_remote
from interpose.cli.many.work import answered, failure
from interpose.errors import ExperimentError
from interpose.experiments.maintenance.parts import parts

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from interpose.cli.many.reader import main; main()"
)
_TASKS_FOR_A_PROCESS = 2  # fewer are read here before a process has started
_READ_MEANWHILE_BYTES = 8 << 20  # as much is read here while two processes start and read half of it each
_COMPRESSED = ".zst"
_LARGER_UNCOMPRESSED = 8  # times, about


def worth_starting(paths: Iterable[str]) -> int:
    """By how many processes the experiments at `paths` are read soonest: one per processor that we may use, or 1 where
    all are read before others have started."""
    read_bytes = 0
    for path in paths:
        if is_remote(path):
            return len(os.sched_getaffinity(0))
        for file in _files_of(path):
            read_bytes += _size_bytes(file)
            if read_bytes > _READ_MEANWHILE_BYTES:
                return len(os.sched_getaffinity(0))
    return 1


def _files_of(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    with contextlib.suppress(OSError):
        yield from (part.path for part in parts(path))


def _size_bytes(file: str) -> int:
    try:
        size = os.stat(file).st_size
    except OSError:
        return 0
    return size * _LARGER_UNCOMPRESSED if file.endswith(_COMPRESSED) else size


def answers(tasks: Sequence[tuple[str, bytes]], jobs: int) -> Iterator[tuple[int, bytes]]:
    """The position of each task and its answer, in any order; tasks have the name of what they read."""
    count = min(jobs, len(tasks) // _TASKS_FOR_A_PROCESS)
    if count < 2:
        yield from ((place, answered(task)) for place, (_, task) in enumerate(tasks))
        return
    readers = _Readers(tasks)
    try:
        yield from readers.answers(count)
    finally:
        readers.end()


class _Reader:
    """One process, and the position of the task that it has."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "INTERPOSE"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self.process.stdin and self.process.stdout
        self.tasks, self.answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.place = -1

    def end(self) -> int:
        """Let it end, and wait for that; gives its exit status."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class _Readers:
    """The processes that answer some tasks."""

    def __init__(self, tasks: Sequence[tuple[str, bytes]]) -> None:
        self._tasks = tasks
        self._next = 0
        self._selector = selectors.DefaultSelector()

    def answers(self, count: int) -> Iterator[tuple[int, bytes]]:
        """The answers, by `count` processes."""
        for _ in range(count):
            self._start()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                reader: _Reader = key.data
                answer, place = receive(reader.answers), reader.place
                if answer is not None:
                    self._give(reader)  # which it reads while the answer is merged here
                    yield place, answer
                    continue
                yield place, self._lost(reader)
                if self._next < len(self._tasks):
                    self._start()

    def end(self) -> None:
        """Let every process end; one that still reads need not go on."""
        for key in list(self._selector.get_map().values()):
            key.data.process.kill()
            self._forget(key.data)
        self._selector.close()

    def _start(self) -> None:
        reader = _Reader()
        self._selector.register(reader.answers, selectors.EVENT_READ, reader)
        self._give(reader)

    def _give(self, reader: _Reader) -> None:
        """Give a process the next task; without one it ends."""
        if self._next >= len(self._tasks):
            self._forget(reader)
            return
        reader.place = self._next
        self._next += 1
        try:
            send(reader.tasks, self._tasks[reader.place][1])
        except OSError:
            pass  # it was killed: there is no answer, which is seen at once

    def _lost(self, reader: _Reader) -> bytes:
        """The answer instead of that of a process that ended."""
        status = self._forget(reader)
        name = self._tasks[reader.place][0]
        why = f"killed by {signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
        return failure(ExperimentError(f"{name}: the process that read it was {why}".replace("was ended", "ended")))

    def _forget(self, reader: _Reader) -> int:
        self._selector.unregister(reader.answers)
        return reader.end()
