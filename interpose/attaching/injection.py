"""Running Python code in a process that knows nothing of it: where it may be interrupted, and what is put back.

A thread is stopped where it has the interpreter's lock and where CPython itself lets arbitrary Python code run: about
to give the lock away (PyEval_SaveThread), to heed what was asked of it between two instructions (_Py_HandlePending), or
to call something (PyObject_Vectorcall). A program that computes in a loop and calls nothing comes by none of them: it
is stopped where threads take turns (_PyThreadState_Swap, up to 3.12), or where the interpreter adds, compares or looks
up for an instruction. By whom these are called matters, so they are watched only then. Where an exception is set, the
interpreter ends, or another interpreter of the process runs, the thread goes on and the next is waited for.

While what may wait is called in the one thread, all others run: they may have what it needs (the interpreter's lock,
that of memory).
"""

from __future__ import annotations

import ast
import platform
import time
from collections.abc import Iterator
from typing import NamedTuple

from interpose.attaching.code import Code
from interpose.attaching.gdb import Debugger, Ended, NoAnswer, calling
from interpose.attaching.tracee import CannotAttach, Tracee

# The second argument, and where a function returns to, as gdb names them; of other machines breakpoints that need them
# are left out.
_REGISTERS = {"x86_64": ("$rsi", "*(unsigned long*)$rsp"), "aarch64": ("$x1", "$x30")}
_EVALUATION = "_PyEval_EvalFrameDefault"
_SAFE = ("PyEval_SaveThread", "_Py_HandlePending", "PyObject_Vectorcall")
_SAFE_IF_SECOND_IS_NULL = ("_PyThreadState_Swap",)
_SAFE_FROM_EVALUATION = (
    *("_PyLong_Add", "_PyLong_Subtract", "PyLong_FromLong", "PyFloat_FromDouble"),
    *("PyNumber_Add", "PyNumber_InPlaceAdd"),
    *("PyObject_RichCompare", "PyObject_GetItem", "PyObject_GetAttr", "PyObject_IsTrue", "PyDict_SetItem"),
)
_STATE = ("PyThreadState_GetUnchecked", "PyGILState_Check", "PyErr_Occurred", "Py_IsFinalizing")
_INTERPRETERS = ("PyInterpreterState_Get", "PyInterpreterState_Main")
_BEFORE_3_13 = {"PyThreadState_GetUnchecked": "_PyThreadState_UncheckedGet", "Py_IsFinalizing": "_Py_IsFinalizing"}
_CALLED = (
    *("PyThreadState_EnterTracing", "PyThreadState_LeaveTracing", "PyDict_New", "PyDict_SetItemString", "Py_DecRef"),
    *("PyRun_StringFlags", "PyErr_Clear", "PyDict_GetItemString", "PyUnicode_AsUTF8AndSize", "PyMemoryView_FromMemory"),
    *("PyThreadState_SetAsyncExc", "PyThread_get_thread_ident"),
    *("PyErr_Fetch", "PyErr_NormalizeException", "PyException_SetTraceback"),
)
_ERRNO = "__errno_location"
_IN_LIBC = (_ERRNO, "mmap", "munmap")
_PUT_ERRNO = "*(unsigned int*)$errno=$before"
_INT = "0xfffffffful"  # what of a word a function returns that gives an int
_WORD_BYTES = 8
_NAMES = b"answer\0raised\0bundle\0original\0"
# What a handler of the program's raised before ours ran, or when it was through, is raised in the program; where ours
# did not run, it is to be run again.
_RAISED = b"""
here = original.__traceback__
while here and here.tb_next:
    here = here.tb_next
if not isinstance(original, Exception) or (here and here.tb_frame.f_globals is not globals()):
    class raised(type(original)):
        def __new__(cls, *nothing):
            return original
    answer = globals().get("answer", "{}")
\0"""
_WORDS = 3  # what is raised: its type, itself, where; afterwards the size of the answer
_FOR_READING = 0x100  # PyBUF_READ
_READ, _WRITE, _PRIVATE, _ANONYMOUS = 1, 2, 2, 0x20  # of mmap(2) on Linux
_NO_FILE = _MAP_FAILED = (1 << 64) - 1
_FILE_INPUT = 257
_ANSWER_BYTES_AT_MOST = 1 << 20
_LEAST_STACK_BYTES = 192 * 1024  # what runs has some room on the thread's stack
_OFTEN_S = 0.25  # so long for places that nearly every program comes by often
_AGAIN_S = 0.02  # somebody imports something: so long until it is looked again
_TRIES = 200


class Injected(NamedTuple):
    """What the code said, and for how long the program stood still: all of it, or one thread that has the lock."""

    answer: dict[str, object]
    still_ns: int


class Injection:
    """The way into the process of `tracee`, by a gdb. Raises CannotAttach where a symbol is missing.

    The code finds what goes with it in its global `bundle`, a memoryview. It leaves its answer in its global
    `answer`: the text of a dictionary, an empty one where it is to be run again a little later; and in `raised` a class
    whose instance is to be raised in the program.
    """

    def __init__(self, tracee: Tracee, debugger: Debugger) -> None:
        self._tracee, self._gdb = tracee, debugger
        places = (*_SAFE, *_SAFE_IF_SECOND_IS_NULL, *_SAFE_FROM_EVALUATION, _EVALUATION)
        self._at = tracee.addresses([*places, *_STATE, *_BEFORE_3_13.values(), *_INTERPRETERS, *_CALLED])
        self._at |= {name: self._at[old] for name, old in _BEFORE_3_13.items() if old in self._at}
        self._at |= tracee.addresses_in_libc([*_IN_LIBC])
        needed = (_SAFE[0], *_STATE, *_INTERPRETERS, *_CALLED, *_IN_LIBC)
        if missing := [name for name in needed if name not in self._at]:
            Tracee(tracee.pid)  # says so where it has ended meanwhile
            raise CannotAttach(f"{tracee.pid}: its Python has no symbol {missing[0]}, which is needed to reach it")
        self._breakpoints: list[str] = []
        self._since_ns = self._still_ns = 0
        self._attached = self._runs = False

    def run(self, code: Code, timeout_s: float) -> Injected:
        """Run it at the first place that is safe. Raises CannotAttach where there is none in time; then, and where this
        is interrupted, the program runs on as if nothing had been."""
        try:
            self._stands_still()
            self._gdb.attach(self._tracee.pid)
            self._attached = True
            return self._run(code, time.monotonic() + timeout_s)
        except NoAnswer as error:
            if not self._attached:
                Tracee(self._tracee.pid)  # says so where somebody else was there first
            raise CannotAttach(f"{self._tracee.pid}: gdb: {error}") from None
        except Ended:
            raise CannotAttach(f"{self._tracee.pid}: has ended") from None
        finally:
            self._leave()

    def _run(self, code: Code, until_s: float) -> Injected:
        everywhere = False
        for _ in range(_TRIES):
            self._arm(everywhere)
            self._go_on()
            left_s = until_s - time.monotonic()
            thread = self._gdb.wait_for_stop(left_s if everywhere else min(left_s, _OFTEN_S))
            self._stands_still()
            if thread is None:
                self._gdb.stop()
            self._runs = False
            self._disarm()
            if thread is None and (everywhere or until_s <= time.monotonic()):
                break
            if thread is None:
                everywhere = True
                continue
            self._gdb.choose(thread)
            self._gdb.let_others_run(False)
            safe = self._is_safe()
            self._gdb.let_others_run(True)
            if safe and (answer := self._execute(code)) is not None:
                if answer:
                    self._let_go()
                    return Injected(answer, self._still_ns)
                self._pause()
        raise CannotAttach(
            f"{self._tracee.pid}: no thread of it came to a place where it can be interrupted;"
            " it runs on as it was"
        )

    # --- stopping and going on

    def _stands_still(self) -> None:
        self._since_ns = time.monotonic_ns()

    def _goes_on(self) -> None:
        self._still_ns += time.monotonic_ns() - self._since_ns

    def _go_on(self) -> None:
        self._gdb.go_on()
        self._runs = True
        self._goes_on()

    def _let_go(self) -> None:
        self._gdb.let_go()
        self._attached = False
        self._goes_on()

    def _pause(self) -> None:
        """Have the program go on for a moment, and stop it again."""
        self._go_on()
        time.sleep(_AGAIN_S)
        self._stands_still()
        self._gdb.stop()
        self._runs = False

    def _leave(self) -> None:
        """Whatever has happened, the program runs on without breakpoints."""
        if not self._attached:
            return
        for do in (self._gdb.stop if self._runs else None, self._disarm, self._let_go):
            try:
                if do:
                    do()
            except (NoAnswer, Ended):
                pass

    def _arm(self, everywhere: bool) -> None:
        for name, condition in self._places(everywhere):
            if name in self._at:
                self._breakpoints.append(self._gdb.break_at(self._at[name].offset, condition))

    def _disarm(self) -> None:
        self._gdb.clear(self._breakpoints)
        self._breakpoints.clear()

    def _places(self, everywhere: bool) -> Iterator[tuple[str, str]]:
        second, caller = _REGISTERS.get(platform.machine(), ("", ""))
        yield from ((name, "") for name in _SAFE)
        if everywhere and second:
            yield from ((name, f"{second}==0") for name in _SAFE_IF_SECOND_IS_NULL)
        if everywhere and caller and _EVALUATION in self._at:
            begin, size = self._at[_EVALUATION]
            within = f"{caller}>={begin:#x}ul&&{caller}<{begin + size:#x}ul"
            yield from ((name, within) for name in _SAFE_FROM_EVALUATION)

    # --- in the thread that is stopped, and has the lock

    def _calling(self, name: str, *arguments: int | str) -> str:
        return calling(self._at[name].offset, *arguments)

    def _is_safe(self) -> bool:
        """Has it the lock, no exception set, room on its stack, and does the interpreter that is the first go on?"""
        if self._tracee.stack_bytes_left(self._gdb.number("(unsigned long)$sp")) < _LEAST_STACK_BYTES:
            return False
        state, lock, error, ends = (self._calling(name) for name in _STATE)
        here, main = (self._calling(name) for name in _INTERPRETERS)
        goes_on = f"({error})?0ul:({ends}&{_INT})?0ul:({here}=={main})"  # of `&&` gdb looks at both sides
        return bool(self._gdb.number(f"{state}?(({lock}&{_INT})?({goes_on}):0ul):0ul"))

    def _execute(self, code: Code) -> dict[str, object] | None:
        """What the code answers; None where memory is short. errno is afterwards as it was."""
        text = code.start.encode() + b"\0"
        data = bytes(_WORDS * _WORD_BYTES) + _NAMES + _RAISED + text + code.bundle
        map_it = self._calling("mmap", 0, len(data), _READ | _WRITE, _PRIVATE | _ANONYMOUS, _NO_FILE, 0)
        memory = self._gdb.number(f"{self._errno},$memory={map_it},{_PUT_ERRNO},$memory")
        if memory == _MAP_FAILED:
            return None
        self._tracee.write(memory, data)
        said = self._gdb.number(self._running(memory, len(data) - len(code.bundle), len(code.bundle)))
        size = int.from_bytes(self._tracee.read(memory, _WORD_BYTES), "little") if said else 0
        answer = self._tracee.read(said, size).decode() if 0 < size <= _ANSWER_BYTES_AT_MOST else ""
        forget = f"$names?{self._calling('Py_DecRef', '$names')}:0ul,{self._calling('munmap', memory, len(data))}"
        ran = self._gdb.number(f"{self._errno},{forget},{_PUT_ERRNO},$names")
        return dictionary(answer) if ran else None

    @property
    def _errno(self) -> str:
        return f"$errno={self._calling(_ERRNO)},$before=*(unsigned int*)$errno"

    def _running(self, memory: int, modules: int, modules_bytes: int) -> str:
        """One expression that runs the code there and gives where its answer is, 0 where there is none. One: gdb comes
        to its end whatever becomes of us, so that nothing is left half done."""
        texts = memory + _WORDS * _WORD_BYTES
        answer, raised, bundle = (texts + _NAMES.index(name) for name in (b"answer", b"raised", b"bundle"))
        view = self._calling("PyMemoryView_FromMemory", memory + modules, modules_bytes, _FOR_READING)
        run = self._running_text(texts + len(_NAMES) + len(_RAISED))
        raise_it = self._calling("PyThreadState_SetAsyncExc", self._calling("PyThread_get_thread_ident"), "$raised")
        return ",".join(
            [
                f"{self._errno},$state={self._calling('PyThreadState_GetUnchecked')}",
                self._calling("PyThreadState_EnterTracing", "$state"),
                f"$names={self._calling('PyDict_New')},$view=$names?{view}:0ul",
                f"$view?{self._calling('PyDict_SetItemString', '$names', bundle, '$view')}:0ul",
                f"$view?{self._calling('Py_DecRef', '$view')}:0ul",
                f"$result=$view?{run}:0ul",
                f"$result?{self._calling('Py_DecRef', '$result')}:({self._keeping_what_is_raised(memory)})",
                f"$answer=$names?{self._calling('PyDict_GetItemString', '$names', answer)}:0ul",
                f"$said=$answer?{self._calling('PyUnicode_AsUTF8AndSize', '$answer', memory)}:0ul",
                f"$raised=$names?{self._calling('PyDict_GetItemString', '$names', raised)}:0ul",
                f"$raised?{raise_it}:0ul",
                self._calling("PyThreadState_LeaveTracing", "$state"),
                f"{_PUT_ERRNO},$said",
            ]
        )

    def _running_text(self, address: int) -> str:
        """The expression that runs the text there."""
        return self._calling("PyRun_StringFlags", address, _FILE_INPUT, "$names", "$names", 0)

    def _keeping_what_is_raised(self, memory: int) -> str:
        """The expression for where nothing came of it: what was raised is looked at, and is raised in the program where
        it is the program's."""
        texts = memory + _WORDS * _WORD_BYTES
        kind, value, where = (memory + number * _WORD_BYTES for number in range(_WORDS))
        error, place = f"*(unsigned long*){value:#x}", f"*(unsigned long*){where:#x}"
        keep_it = self._calling("PyDict_SetItemString", "$names", texts + _NAMES.index(b"original"), "$error")
        look_at_it = f"({keep_it},$result={self._running_text(texts + len(_NAMES))})"
        return ",".join(
            [
                self._calling("PyErr_Fetch", kind, value, where),
                self._calling("PyErr_NormalizeException", kind, value, where),
                f"$error={error},$where={place}",
                f"$where?{self._calling('PyException_SetTraceback', '$error', '$where')}:0ul",
                f"$result=0ul,($names&&$error)?{look_at_it}:0ul",
                f"$result?{self._calling('Py_DecRef', '$result')}:{self._calling('PyErr_Clear')}",
                *(self._calling("Py_DecRef", f"*(unsigned long*){each:#x}") for each in (kind, value, where)),
            ]
        )


def dictionary(text: str) -> dict[str, object]:
    """What the code said; what is none is told as such. It comes from somebody else's process."""
    try:
        answer = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) else {"why": "it gave no answer"}
