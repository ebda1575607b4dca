"""`interpose run` as the monitor of its program: it compresses what is recorded while it waits, and the rest at the
end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interpose.cli.messages import say
from interpose.errors import InterposeError

if TYPE_CHECKING:
    from interpose.monitor import Monitor

AT_ONCE_S = 0.1  # a look takes little longer: the program's signals wait
AT_THE_END_S = 0.25  # so long may the exit code of a program have to wait that recorded much in its last moments


class Watching:
    """The monitor of an experiment while `run` waits; does nothing if no experiment was made or monitoring is not
    possible."""

    def __init__(
        self, experiment: str | None, profile_hz: float | None = None, counters: Sequence[str] = ()
    ) -> None:
        self._experiment = experiment
        self._profile_hz = profile_hz
        self._counters = counters
        self._monitor: Monitor | None = None

    signals: frozenset[signal.Signals] = frozenset()

    def signalled(self, number: signal.Signals) -> None:
        """No signal is for the monitor."""

    def attend(self) -> float | None:
        """Compress what there is; gives for how many seconds there will be nothing, None for ever."""
        if self._experiment is None:
            return None
        try:
            self._monitor = self._monitor or _begun(self._experiment, self._profile_hz, self._counters)
            return self._monitor.look(time.monotonic() + AT_ONCE_S)
        except ImportError as error:  # of a package that the monitor needs
            say(f"nothing is compressed{' or sampled' if self._profile_hz else ''}: {error} (see: interpose doctor)")
        except (OSError, InterposeError):
            pass
        self._experiment = None
        return None

    def end(self) -> None:
        """The program has ended: compress the rest, or leave it to a process of its own where that takes long, or
        where descendants of the program still run."""
        until_s = time.monotonic() + AT_THE_END_S
        if self._experiment is None or self._monitor is None:
            return
        try:
            self._monitor.look(until_s)
            self._monitor.look(until_s)
            done = self._monitor.is_done
            self._monitor.close()
            if not done:
                _go_on_alone(self._experiment)
        except (OSError, InterposeError):
            return


def _begun(experiment: str, profile_hz: float | None, counters: Sequence[str]) -> Monitor:
    from interpose.monitor import Monitor

    monitor = Monitor(experiment)
    if profile_hz:
        monitor.profile(profile_hz, counters)
    return monitor


def _go_on_alone(experiment: str) -> None:
    """Start a monitor that continues without this process. Raises OSError."""
    subprocess.Popen(
        [sys.executable, "-m", "interpose.monitor", experiment],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
