"""A recording of a program that only imports: does an interpreter record, what of it, by which clock, at what cost?"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from interpose.config import state
from interpose.errors import InterposeError
from interpose.experiments.metadata import names
from interpose.experiments.metadata.log import read_log
from interpose.experiments.metadata.map import read_map
from interpose.experiments.model.files import Damages
from interpose.instrumentation.interpreters import ASK_SECONDS, Interpreter, preload
from interpose.instrumentation.system_library import every


@dataclass(frozen=True)
class Trial:
    """What came of it: why nothing was recorded; or what the recording says of itself.

    That is the clock (kind, why, read_ns), what a call costs, in what way calls are interposed (by, why), how many
    intrinsics were, and why others were not, by name.
    """

    why_not: str | None
    clock: dict[str, str] = field(default_factory=dict)
    call_ns: int = 0
    inside_ns: int = 0
    interposed: dict[str, str] = field(default_factory=dict)
    intrinsics: int = 0
    not_interposed: dict[str, str] = field(default_factory=dict)


# Whatever a library declares something of, if this Python has it.
PROGRAM = """
import importlib
for name in {modules!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
"""


def record_imports(interpreter: Interpreter, variables: Mapping[str, str]) -> Trial:
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
        program = PROGRAM.format(modules=sorted({intrinsic.module for intrinsic in every()}))
        words = [interpreter.path, *interpreter.options, "-c", program]
        try:
            subprocess.run(
                words,
                env=preload(environment, words),
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
    found = read_map(os.path.join(directory, "trial.er", names.MAP), names.MAP, Damages()).values()
    return Trial(
        why_not=None,
        clock=log.clock,
        call_ns=log.call_ns,
        inside_ns=log.inside_ns,
        interposed=log.interposed,
        intrinsics=len({intrinsic.name for intrinsic in found if not intrinsic.why_not}),
        not_interposed={intrinsic.name: intrinsic.why_not for intrinsic in found if intrinsic.why_not},
    )
