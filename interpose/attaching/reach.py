"""Having a running program do something: by sys.remote_exec where both Pythons have it (3.14), else by gdb."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import NamedTuple

from interpose.attaching.code import Code, code, refuse_what_others_could_change
from interpose.attaching.gdb import Debugger, NoAnswer
from interpose.attaching.injection import Injection, dictionary
from interpose.attaching.tracee import CannotAttach, Tracee

BY_GDB, BY_PYTHON = "gdb", "sys.remote_exec"
_LOOK_S = 0.005


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
        answer, by, still_ns = _by_python(tracee, what.text, timeout_s), BY_PYTHON, None
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


_SAYING = """
with open({path}, "w") as file:
    file.write(answer + "\\n")
if "raised" in globals():
    raise original
"""


def _by_python(tracee: Tracee, text: str, timeout_s: float) -> dict[str, object]:
    """Its main thread runs the code as soon as it comes to an instruction: when what it waits for has come."""
    directory = tempfile.mkdtemp(prefix="interpose-")
    try:
        script, answer = (os.path.join(directory, name) for name in ("code.py", "answer"))
        saying = _SAYING.format(path=ascii(answer))
        with open(script, "w") as file:
            file.write(f"exec({text + saying!r}, {{}})\n")
        for path in (directory, script):
            os.chown(path, tracee.user, -1)
        while (found := _asked(tracee.pid, script, answer, time.monotonic() + timeout_s)) == {}:
            time.sleep(_LOOK_S)
        return found
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _asked(pid: int, script: str, answer: str, until_s: float) -> dict[str, object]:
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined]
    except (OSError, RuntimeError) as error:
        raise CannotAttach(f"{pid}: {error}") from None
    while time.monotonic() < until_s:
        try:
            with open(answer) as file:
                text = file.read()
        except FileNotFoundError:
            text = ""
        if text.endswith("\n"):
            os.unlink(answer)
            return dictionary(text)
        time.sleep(_LOOK_S)
    raise CannotAttach(f"{pid}: its main thread waits; what was asked is done when it goes on")
