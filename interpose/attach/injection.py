"""Runs Python code in a process that knows nothing of it: where its threads can be interrupted for that.

A thread is stopped where it has the interpreter lock and where CPython itself allows arbitrary Python code to run:
about to release the lock (PyEval_SaveThread), to handle pending requests between two instructions (_Py_HandlePending),
or to call something (PyObject_Vectorcall). A program that computes in a loop without calls reaches none of these. It is
stopped where threads take turns (_PyThreadState_Swap, up to 3.12), or where the interpreter adds, compares or looks up
for an instruction. The callers of these matter, so they are watched only then. If an exception is set, the interpreter
is ending, or another interpreter of the process runs, the thread continues and the next one is awaited.

While the code runs in one thread, all others run, because they may have what it needs (the interpreter lock, the
allocator's lock).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from interpose.attach.code import Code
from interpose.attach.debugger import Condition, Debugger, Thread
from interpose.attach.execution import Execution, Functions
from interpose.attach.machine import Machine
from interpose.attach.tracee import CannotAttach, Tracee

_EVALUATION = "_PyEval_EvalFrameDefault"
_SAFE = ("PyEval_SaveThread", "_Py_HandlePending", "PyObject_Vectorcall")
_SAFE_IF_SECOND_IS_NULL = ("_PyThreadState_Swap",)
_SAFE_FROM_EVALUATION = (
    *("_PyLong_Add", "_PyLong_Subtract", "PyLong_FromLong", "PyFloat_FromDouble"),
    *("PyNumber_Add", "PyNumber_InPlaceAdd"),
    *("PyObject_RichCompare", "PyObject_GetItem", "PyObject_GetAttr", "PyObject_IsTrue", "PyDict_SetItem"),
)
_LEAST_STACK_BYTES = 192 * 1024  # what runs has some room on the thread's stack
_OFTEN_S = 0.25  # so long for places that nearly every program comes by often
_LOOK_S = 0.05  # so long until it is looked whether all this is given up
_AGAIN_S = 0.02  # somebody is importing, or the place was not safe: how long to wait before the next attempt


class Injected(NamedTuple):
    """What the code said, and for how long the program stood still: all of it, or one thread that has the lock."""

    answer: dict[str, object]
    still_ns: int


class Injection:
    """The way into the process of `tracee`. Raises CannotAttach if a symbol is missing."""

    def __init__(self, tracee: Tracee, machine: Machine, is_given_up: Callable[[], bool]) -> None:
        self._tracee, self._machine, self._is_given_up = tracee, machine, is_given_up
        self._functions = Functions(tracee)
        self._at = tracee.addresses([*_SAFE, *_SAFE_IF_SECOND_IS_NULL, *_SAFE_FROM_EVALUATION, _EVALUATION])
        self._debugger = Debugger(tracee, machine)
        self._since_ns = self._still_ns = 0

    def run(self, code: Code, timeout_s: float) -> Injected:
        """Run it at the first safe place. Raises CannotAttach if there is none in time; the program then runs on
        unchanged, as it does if this is interrupted."""
        self._stands_still()
        try:
            self._debugger.attach()
            answer = self._run(code, time.monotonic() + timeout_s)
        except PermissionError:
            Tracee(self._tracee.pid)  # reports if another debugger was first
            raise self._tracee.no_right() from None
        except ProcessLookupError:
            raise CannotAttach(f"{self._tracee.pid}: has ended") from None
        finally:
            self._leave()
        return Injected(answer, self._still_ns)

    def _run(self, code: Code, until_s: float) -> dict[str, object]:
        traps = self._traps(_SAFE, None)
        until_often_s = min(time.monotonic() + _OFTEN_S, until_s)
        self._debugger.arm(traps)
        while True:
            self._go_on()
            thread = self._wait_for_trap(until_often_s)
            self._stop()
            if thread is not None and (answer := self._try(thread, code, traps)):
                return answer
            if thread is None and until_often_s == until_s:
                raise CannotAttach(
                    f"{self._tracee.pid}: none of its threads reached a point where it can be interrupted;"
                    " it continues unchanged; to wait longer, use --wait SECONDS"
                )
            if thread is None:
                until_often_s = until_s
                traps |= self._traps(_SAFE_IF_SECOND_IS_NULL, self._is_second_null)
                traps |= self._traps(_SAFE_FROM_EVALUATION, self._is_called_by_evaluation)
                self._debugger.arm(traps)

    def _wait_for_trap(self, until_s: float) -> Thread | None:
        thread = None
        while thread is None and not self._is_given_up() and (left_s := until_s - time.monotonic()) > 0:
            thread = self._debugger.wait_for_trap(min(left_s, _LOOK_S))
        return thread

    def _try(self, thread: Thread, code: Code, traps: dict[int, Condition | None]) -> dict[str, object] | None:
        """The answer of the code in the thread; empty if it must be tried again."""
        pointer = self._debugger.registers(thread)[self._machine.pointer]
        has_room = self._tracee.stack_bytes_left(pointer) >= _LEAST_STACK_BYTES
        with self._debugger.borrowed(thread) as call:
            execution, answer = Execution(self._tracee, self._functions, call), None
            self._debugger.disarm()
            if has_room and execution.is_safe():
                self._debugger.go_on()
                answer = execution.run(code)
                self._debugger.stop()
        if not answer:
            self._pause()
            self._debugger.arm(traps)
        return answer

    def _traps(self, names: Iterable[str], condition: Condition | None) -> dict[int, Condition | None]:
        return {self._at[name].offset: condition for name in names if name in self._at}

    def _is_second_null(self, registers: Sequence[int]) -> bool:
        return not registers[self._machine.arguments[1]]

    def _is_called_by_evaluation(self, registers: Sequence[int]) -> bool:
        if _EVALUATION not in self._at:
            return False
        begin, size = self._at[_EVALUATION]
        return begin <= self._machine.caller(registers, self._tracee.read) < begin + size

    # --- stopping and going on

    def _stands_still(self) -> None:
        self._since_ns = time.monotonic_ns()

    def _goes_on(self) -> None:
        self._still_ns += time.monotonic_ns() - self._since_ns

    def _go_on(self) -> None:
        self._debugger.go_on()
        self._goes_on()

    def _stop(self) -> None:
        self._stands_still()
        self._debugger.stop()

    def _pause(self) -> None:
        """Have the program go on for a moment, and stop it again."""
        self._go_on()
        self._debugger.wait_for_trap(_AGAIN_S)
        self._stop()

    def _leave(self) -> None:
        """Whatever happened, let the program run on without breakpoints."""
        for do in (self._debugger.stop, self._debugger.disarm, self._debugger.let_go):
            with suppress(CannotAttach, ProcessLookupError):
                do()
        self._goes_on()
