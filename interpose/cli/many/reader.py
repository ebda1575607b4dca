"""A process that reads experiments for a report: tasks come on standard input, answers go to standard output."""

from __future__ import annotations

import gc
import os
import signal
import sys

from interpose.cli.many.frames import receive, send
from interpose.cli.many.work import answered

_COLLECTED_EACH = 100_000  # objects more: experiments are many small ones, and most go by themselves


def main() -> None:
    """Answer tasks until there are no more. What anything prints goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECTED_EACH)
    gc.freeze()  # what was imported stays, and need not be looked through
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while (task := receive(sys.stdin.fileno())) is not None:
        try:
            send(answers, answered(task))
        except BrokenPipeError:
            return
