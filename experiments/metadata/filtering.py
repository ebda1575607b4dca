"""Another filter for a running program: its rules in the founder's file `filter`, which the control page tells of."""

from __future__ import annotations

import os
import time

from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.creating import replacing
from interpose.experiments.metadata.describe import element
from interpose.experiments.metadata.endings import append
from interpose.experiments.model.process import Process

FILTER = "filter"
LETTERS_NOTED = 160


def change_filter(founder: Process, text: str, compiled: bytes) -> None:
    """Have calls recorded from now on as the `compiled` rules say (interpose.config.filters).

    The log tells them as `text`.

    Raises ExperimentError, OSError.
    """
    control = Control(founder)
    control.read()  # otherwise nobody would read it
    with replacing(os.path.join(founder.directory, FILTER)) as file:
        file.write(compiled)
    note(founder, "filter", text)
    control.ask_for_filter()


def note(founder: Process, kind: str, text: str) -> None:
    """Have the log say that something happened now."""
    time_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    line = element("event", kind=kind, time_ns=time_ns, text=text[:LETTERS_NOTED])
    append(founder.directory, f"{line}\n".encode("utf-8", "replace"))
