"""Run by the start-up file at every start of Python: one look-up in the environment where nothing is to be recorded."""

import os
import sys

_done = False


def boot():
    """Begin recording if the environment says so. Never raises; the start-up file may run twice."""
    global _done
    if _done or os.environ.get("INTERPOSE", "0") in ("", "0"):
        return
    _done = True
    before = set(sys.modules)
    try:
        import interpose.session

        interpose.session.begin(before)
    except Exception:
        pass
