"""Having a running program do something: by sys.remote_exec where both Pythons have it (3.14), else by ptrace."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from interpose.attach import remote
from interpose.attach.apart import apart
from interpose.attach.code import Code, code, package, refuse_what_others_could_change
from interpose.attach.machine import this_machine
from interpose.attach.tracee import CannotAttach, Tracee


class Reached(NamedTuple):
    """The result: the program's answer, how long everything took, and for how long the program stood still, if known.
    """

    answer: dict[str, object]
    took_ns: int
    still_ns: int | None


def reach(pid: int, do: str, *given: Mapping[str, str], timeout_s: float) -> Reached:
    """Have the program `pid` do what `interpose.capture.attached` calls so. Raises CannotAttach."""
    begun_ns = time.monotonic_ns()
    tracee = Tracee(pid)
    if do == "begin":
        tracee.refuse_what_has_no(os.path.join(package(), "__init__.py"))
    else:
        tracee.refuse_what_was_never_recorded()
    refuse_what_others_could_change(pid, tracee.user, tracee.group)
    run = remote.run if hasattr(sys, "remote_exec") else by_ptrace
    answer, still_ns = run(tracee, code(do, given), timeout_s)
    if why := answer.get("why"):
        raise CannotAttach(f"{pid}: {why}")
    return Reached(answer, time.monotonic_ns() - begun_ns, still_ns)


def by_ptrace(tracee: Tracee, what: Code, timeout_s: float) -> tuple[dict[str, object], int]:
    """What the code answers in one of the program's threads, and for how long the program stood still."""
    machine = this_machine()
    if machine is None:
        raise CannotAttach(f"{tracee.pid}: attaching before Python 3.14 needs x86-64 or arm64")
    tracee.refuse_shadow_stack()
    try:
        from interpose.attach.injection import Injection
    except ImportError as error:  # of ctypes, which some builds of Python lack
        raise CannotAttach(f"{tracee.pid}: attaching before Python 3.14 needs the module ctypes: {error}") from None
    answer, still_ns = apart(lambda is_given_up: tuple(Injection(tracee, machine, is_given_up).run(what, timeout_s)))
    return answer, still_ns
