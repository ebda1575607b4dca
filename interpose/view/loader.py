"""A thread that reads while the terminal stays quick; only the latest question counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from interpose.errors import Caught, InterposeError

Job = Callable[[], Any]


class GaveWay(Caught):
    """A job stopped because another one waits; its result is not wanted."""


class Loader:
    """Does jobs one at a time, in a thread that ends with the process; `tell` gets each job's result or error, and how
    long it took in seconds. A job that waits gives way to a newer one, and a job in progress may."""

    def __init__(self, tell: Callable[[Any, float], object]) -> None:
        self._tell = tell
        self._changed = threading.Condition()
        self._waiting: Job | None = None
        self._is_busy = False
        self._thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being done or waits."""
        return self._waiting is None and not self._is_busy

    @property
    def has_newer(self) -> bool:
        """Whether a job waits for the present one."""
        return self._waiting is not None

    def ask(self, job: Job) -> None:
        """Do this next."""
        with self._changed:
            self._waiting = job
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="interpose view", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None)
                job, self._waiting, self._is_busy = self._waiting, None, True
            assert job is not None
            started_s = time.monotonic()
            try:
                self._tell(_done(job), time.monotonic() - started_s)
            except GaveWay:
                pass
            finally:
                self._is_busy = False


def _done(job: Job) -> Any:
    try:
        return job()
    except (InterposeError, OSError) as error:
        return error
