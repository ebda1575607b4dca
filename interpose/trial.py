"""A recording of a program that does nothing: does an interpreter record, by which clock, at what cost?"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from interpose import state
from interpose.errors import InterposeError
from interpose.experiments import names
from interpose.experiments.files import Damages
from interpose.experiments.log import read_log
from interpose.interpreters import ASK_SECONDS, Interpreter


@dataclass(frozen=True)
class Trial:
    """What came of it: why nothing was recorded, or the clock (kind, why, read_ns) and what a call costs."""

    why_not: str | None
    clock: dict[str, str] = field(default_factory=dict)
    call_ns: int = 0
    inside_ns: int = 0


def record_nothing(interpreter: Interpreter, variables: Mapping[str, str]) -> Trial:
    """Start the interpreter with the settings `variables`, recording where nothing is left afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            **os.environ,
            **variables,
            "INTERPOSE": "1",
            "INTERPOSE_DIR": directory,
            "INTERPOSE_NAME": "trial.er",
            "XDG_STATE_HOME": directory,
        }
        environment.pop("INTERPOSE_LINEAGE", None)
        try:
            subprocess.run(
                [interpreter.path, *interpreter.options, "-c", "pass"],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ASK_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return Trial(str(error))
        return _read(directory)


def _read(directory: str) -> Trial:
    noted = state.not_recorded({"XDG_STATE_HOME": directory})
    if noted:
        return Trial(noted[-1].reason)
    try:
        log = read_log(os.path.join(directory, "trial.er", names.LOG), names.LOG, Damages())
    except InterposeError:
        return Trial("its start-up file was not run, or recorded nothing")
    return Trial(None, log.clock, log.call_ns, log.inside_ns)
