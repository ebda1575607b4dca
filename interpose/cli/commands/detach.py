"""`interpose detach`: end the recording of a running program, which runs on as it was before."""

from __future__ import annotations

import argparse

from interpose.attach.reach import reach
from interpose.cli.commands.attach import add_process_arguments
from interpose.reports.formats.units import duration

NAME = "detach"
HELP = "stop recording a program (experimental before Python 3.14)"
EXAMPLE = "interpose detach 4711"
DESCRIPTION = """\
Stop recording the running program PID, whether it was recorded from its start or by `interpose attach`. interpose
restores the program's functions and types, and closes the experiment. docs/limits/attaching.md lists what remains in
the program. Before Python 3.14 this is experimental, as attach is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The process."""
    parser.description = DESCRIPTION
    add_process_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Detach, and say what came of it."""
    done = reach(arguments.pid, "end", timeout_s=arguments.wait)
    stood = "" if done.still_ns is None else f"; the program stood still for {duration(done.still_ns)} of it"
    print(f"process {arguments.pid} is no longer recorded")
    print(f"detaching took {duration(done.took_ns)}{stood}")
    if left := done.answer.get("left"):
        print(f"{left} of its functions could not be put back: somebody else has wrapped them since; they pass through")
    return 0
