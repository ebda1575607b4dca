"""Having a running program do something: by sys.remote_exec where both Pythons have it (3.14), else by gdb."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from interpose.attaching import remote
from interpose.attaching.code import Code, code, refuse_what_others_could_change
from interpose.attaching.gdb import Debugger, NoAnswer
from interpose.attaching.injection import Injection
from interpose.attaching.tracee import CannotAttach, Tracee

BY_GDB, BY_PYTHON = "gdb", "sys.remote_exec"


class Reached(NamedTuple):
    """What came of it: what the program said, by what way it was reached, how long all of it took, and for how long the
    program stood still, where that can be told."""

    answer: dict[str, object]
    by: str
    took_ns: int
    still_ns: int | None


def reach(pid: int, do: str, *given: Mapping[str, str], timeout_s: float) -> Reached:
    """Have the program `pid` do what `interpose.attached` calls so. Raises CannotAttach."""
    begun_ns = time.monotonic_ns()
    tracee = Tracee(pid)
    refuse_what_others_could_change(pid, tracee.user, tracee.group)
    what = code(do, given)
    if hasattr(sys, "remote_exec"):
        (answer, still_ns), by = remote.run(tracee, what, timeout_s), BY_PYTHON
    else:
        (answer, still_ns), by = _by_gdb(tracee, what, timeout_s), BY_GDB
    if why := answer.get("why"):
        raise CannotAttach(f"{pid}: {why}")
    return Reached(answer, by, time.monotonic_ns() - begun_ns, still_ns)


def _by_gdb(tracee: Tracee, what: Code, timeout_s: float) -> tuple[dict[str, object], int]:
    try:
        debugger = Debugger(tracee.program)
    except NoAnswer as error:
        Tracee(tracee.pid)  # says so where it has ended meanwhile
        raise CannotAttach(f"{tracee.pid}: gdb: {error}") from None
    try:
        return Injection(tracee, debugger).run(what, timeout_s)
    finally:
        debugger.close()
