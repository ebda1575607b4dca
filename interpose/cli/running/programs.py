"""A program that is not Python, as the program of `interpose run`: whether it is recorded itself, and how."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Sequence

from interpose.cli.messages import say
from interpose.cli.running.child import Ended
from interpose.config.schema import Settings
from interpose.experiments.metadata import names
from interpose.instrumentation import interpreters
from interpose.reports.formats import units


def records_itself(words: Sequence[str], in_force: Settings) -> bool:
    """Whether it is not Python, and its own calls are to be recorded and can be: because native calls are, or because
    nobody said what to record."""
    is_said = in_force.origins["INTERPOSE"] != "default" or in_force.follow != "on"
    if "native" not in in_force.record and is_said:
        return False
    try:
        interpreters.interpreter_of(words)
    except FileNotFoundError:
        return False
    except interpreters.NotPython:
        return not why_not(words)
    return False


def why_not_itself(in_force: Settings) -> str:
    """Which of the settings may have had it not be recorded; empty if none."""
    if "native" not in in_force.record:
        return "it is not Python (--native records its own calls)"
    return "" if in_force.follow == "on" else f"{in_force.said['INTERPOSE_FOLLOW']} did not choose it"


def why_not(words: Sequence[str]) -> str:
    """Why the program cannot be recorded; empty if it can."""
    path = shutil.which(words[0]) or words[0]
    try:
        from interpose.timing import shims
    except ImportError:  # nothing is compiled for this Python
        return f"{path} is not Python"
    shims.follow_programs(True)
    why = shims.why_not_followed(os.fsencode(path))
    return f"{path}: {why}" if why else ""


def plan(experiment: str, in_force: Settings, words: Sequence[str]) -> None:
    """Write into the experiment how its founder is recorded, or say why it cannot be."""
    from interpose.capture import programs

    with tempfile.TemporaryDirectory(prefix="interpose-") as directory:
        text, why = programs.plan_of(in_force, list(words), directory)
    if text:
        names.write_programs(experiment, text)
    else:
        say(f"{words[0]} is not recorded: {why}")


def used(ended: Ended) -> str:
    """What the kernel counted of the program and its children. The memory is ours if we had more when it was forked."""
    cpu_ns = round((ended.used.ru_utime + ended.used.ru_stime) * 1e9)
    most_kib, ours_kib = ended.used.ru_maxrss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = f" and {units.size(most_kib * 1024)} of memory" if most_kib > ours_kib else ""
    return f"it used {units.duration(cpu_ns)} of CPU time{memory}"
