"""Run by the start-up file at every start of Python: one look-up in the environment where nothing is to be recorded."""

import os
import sys

_done = False
lines: "Callable[[bool, str], AbstractContextManager[object]] | None" = None  # the switch of line trace, where recorded
control: "ModuleType | None" = None  # interpose.timing.shims, to control the recording by, where there is one
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import ModuleType


def boot():
    """Begin recording if the environment says so. Never raises; the start-up file may run twice."""
    global _done
    if _done or os.environ.get("INTERPOSE", "0") in ("", "0"):
        return
    _done = True
    before = set(sys.modules)
    import gc

    collects = gc.isenabled()
    gc.disable()  # nothing that is made here can be let go of before the end
    try:
        import interpose.capture.session

        interpose.capture.session.begin(before)
    except Exception:
        pass
    finally:
        if collects:
            gc.enable()
        if "gc" not in before:
            sys.modules.pop("gc", None)
