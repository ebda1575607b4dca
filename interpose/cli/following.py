"""A report that is made again and again while its program runs: on a terminal in the same place, else one after the
other."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from interpose.analysis.recording.ending import any_running
from interpose.experiments.model.experiment import Experiment

HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Draw = Callable[[Experiment], str]


def follow(experiment: Experiment, draw: Draw, seconds: float, out: TextIO) -> Experiment:
    """Write the result of `draw` at intervals, and again when all processes of the experiment have ended; return the
    last."""
    on_terminal = out.isatty()
    while any_running(experiment):
        text = draw(experiment)
        out.write(_in_place(text, shutil.get_terminal_size().lines) if on_terminal else f"{text}\n")
        out.flush()
        time.sleep(seconds)
        experiment = Experiment(experiment.directory)
    text = draw(experiment)
    out.write(f"{HOME}{CLEAR_BELOW}{text}" if on_terminal else text)
    return experiment


def _in_place(text: str, lines: int) -> str:
    """The text from the terminal's first line on: as much of it as there is room for without scrolling."""
    shown = text.splitlines()[: max(lines - 1, 1)]
    return HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in shown) + CLEAR_BELOW
