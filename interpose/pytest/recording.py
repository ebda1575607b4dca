"""Begins a recording in a test session that is already running."""

from __future__ import annotations

import os
import sys

from interpose.errors import InterposeError

WHAT = {(True, False): "calls", (True, True): "calls,coverage", (False, True): "calls,coverage"}
KINDS, BESIDE_COVERAGE = "INTERPOSE_KINDS", "logic"  # coverage alone records the tests besides, as transactions


def begin(calls: bool, coverage: bool) -> str:
    """Record this process and its children from now on; return why nothing is recorded, or an empty text.

    Of a process that is recorded already this changes nothing.
    """
    if failed := _not_compiled():
        return failed
    from interpose.timing import shims

    if shims.is_recording():
        return _what_is_missing(coverage)
    _choose(calls, coverage)
    hooks = list(sys.meta_path)
    # pytest must not rewrite these imports.
    sys.meta_path[:] = [hook for hook in hooks if not type(hook).__module__.startswith("_pytest.")]
    try:
        from interpose import boot

        boot.boot()
    finally:
        sys.meta_path[:] = hooks
    return "" if shims.is_recording() else _why_not()


def _not_compiled() -> str:
    try:
        from interpose.timing import shims
    except ImportError as error:
        return str(error)
    return "" if hasattr(shims, "is_recording") else "nothing is compiled for this Python"


def _what_is_missing(coverage: bool) -> str:
    """What was requested but is not recorded, because the recording had already begun."""
    from interpose.config import values

    recorded = os.environ.get("INTERPOSE", "")
    missing = coverage and "coverage" not in values.parse_record(recorded)
    return f"coverage is not recorded, because the recording began with INTERPOSE={recorded}" if missing else ""


def _choose(calls: bool, coverage: bool) -> None:
    """Set in the environment, which children of tests inherit, what to record; the user's settings win."""
    from interpose.config import precedence

    os.environ["INTERPOSE"] = WHAT[calls, coverage]
    wanted = {"INTERPOSE_ROWS": "cursor"}  # otherwise the number of calls would depend on the machine's speed
    if coverage:
        wanted["INTERPOSE_CONTEXTS"] = "1"
    if not calls:
        wanted[KINDS] = BESIDE_COVERAGE
    try:
        origins = precedence.in_force(os.environ).origins
    except InterposeError:
        return  # the recording, which cannot begin, reports it
    os.environ.update({name: text for name, text in wanted.items() if origins[name] == "default"})


def _why_not() -> str:
    from interpose.config import state

    noted = [note.reason for note in state.not_recorded() if note.pid == os.getpid()]
    return noted[-1] if noted else "interpose doctor says why"
