"""Running Python code in a thread of another process that can be made to call functions: C API, then nothing is left.

The thread is at a place where CPython lets arbitrary Python code run. What a signal handler of the program raises
meanwhile is raised in the program afterwards.
"""

from __future__ import annotations

from typing import Protocol

from interpose.attach.code import Code, dictionary
from interpose.attach.tracee import CannotAttach, Tracee

_STATE = ("PyThreadState_GetUnchecked", "PyGILState_Check", "PyErr_Occurred", "Py_IsFinalizing")
_INTERPRETERS = ("PyInterpreterState_Get", "PyInterpreterState_Main")
_BEFORE_3_13 = {"PyThreadState_GetUnchecked": "_PyThreadState_UncheckedGet", "Py_IsFinalizing": "_Py_IsFinalizing"}
_CALLED = (
    *("PyThreadState_EnterTracing", "PyThreadState_LeaveTracing", "PyDict_New", "PyDict_SetItemString", "Py_DecRef"),
    *("PyRun_StringFlags", "PyErr_Clear", "PyDict_GetItemString", "PyUnicode_AsUTF8AndSize", "PyMemoryView_FromMemory"),
    *("PyThreadState_SetAsyncExc", "PyThread_get_thread_ident"),
    *("PyErr_Fetch", "PyErr_NormalizeException", "PyException_SetTraceback"),
)
_IN_LIBC = ("__errno_location", "mmap", "munmap")

_INT = (1 << 32) - 1  # the part of a word that is the value of a function that gives an int
_INT_BYTES, _WORD_BYTES = 4, 8
_WORDS = 3  # the exception: its type, itself, its traceback; later the size of the answer
_NAMES = b"answer\0raised\0bundle\0original\0"
# What a handler of the program's raised before our code began, or after it ended, is raised in the program; where ours
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
_FOR_READING = 0x100  # PyBUF_READ
_READ_WRITE, _PRIVATE_ANONYMOUS = 3, 0x22  # of mmap(2) on Linux
_NO_FILE = _MAP_FAILED = (1 << 64) - 1
_FILE_INPUT = 257  # Py_file_input
_ANSWER_BYTES_AT_MOST = 1 << 20


class Call(Protocol):
    """Let the borrowed thread call the function at an address, with integer arguments; return its result."""

    def __call__(self, address: int, *words: int) -> int: ...


class Functions:
    """Where in a process the functions are that are needed. Raises CannotAttach if one is missing."""

    def __init__(self, tracee: Tracee) -> None:
        found = tracee.addresses([*_STATE, *_BEFORE_3_13.values(), *_INTERPRETERS, *_CALLED])
        found |= {name: found[old] for name, old in _BEFORE_3_13.items() if old in found}
        found |= tracee.addresses_in_libc([*_IN_LIBC])
        if missing := [name for name in (*_STATE, *_INTERPRETERS, *_CALLED, *_IN_LIBC) if name not in found]:
            Tracee(tracee.pid)  # says so where it has ended meanwhile
            raise CannotAttach(f"{tracee.pid}: its Python has no symbol {missing[0]}, which is needed to reach it")
        self.at = {name: symbol.offset for name, symbol in found.items()}


class Execution:
    """Calls in one thread of a process.

    The code finds its data in its global `bundle`, a memoryview. It leaves its answer in its global `answer`: a
    dictionary as text, empty if it must run again later; and in `raised` a class of which an instance must be raised in
    the program.
    """

    def __init__(self, tracee: Tracee, functions: Functions, call: Call) -> None:
        self._tracee, self._at, self._call_at = tracee, functions.at, call

    def is_safe(self) -> bool:
        """Has the thread the lock, no exception set, and does the interpreter that is the first go on?"""
        state, lock, error, ends = _STATE
        if not self._call(state) or not self._call(lock) & _INT or self._call(error) or self._call(ends) & _INT:
            return False
        here, main = (self._call(name) for name in _INTERPRETERS)
        return here == main

    def run(self, code: Code) -> dict[str, object] | None:
        """What the code answers; None if memory is short. errno is afterwards as it was."""
        errno_at = self._call("__errno_location")
        errno = self._tracee.read(errno_at, _INT_BYTES)
        head = bytes(_WORDS * _WORD_BYTES) + _NAMES + _RAISED + code.start.encode() + b"\0"
        size_bytes = len(head) + len(code.bundle)
        memory = self._call("mmap", 0, size_bytes, _READ_WRITE, _PRIVATE_ANONYMOUS, _NO_FILE, 0)
        answer = None
        if memory != _MAP_FAILED:
            self._tracee.write(memory, head + code.bundle)
            answer = self._run_in(memory, memory + len(head), len(code.bundle))
            self._call("munmap", memory, size_bytes)
        self._tracee.write(errno_at, errno)
        return answer

    def _run_in(self, memory: int, bundle: int, bundle_bytes: int) -> dict[str, object] | None:
        state = self._call("PyThreadState_GetUnchecked")
        self._call("PyThreadState_EnterTracing", state)
        names, answer = self._call("PyDict_New"), None
        if names:
            self._run_with(names, memory, bundle, bundle_bytes)
            answer = dictionary(self._answer(names, memory))
            if raised := self._call("PyDict_GetItemString", names, self._name(memory, b"raised")):
                self._call("PyThreadState_SetAsyncExc", self._call("PyThread_get_thread_ident"), raised)
        else:
            self._call("PyErr_Clear")
        self._call("PyThreadState_LeaveTracing", state)
        self._call("Py_DecRef", names)
        return answer

    def _run_with(self, names: int, memory: int, bundle: int, bundle_bytes: int) -> None:
        view, result = self._call("PyMemoryView_FromMemory", bundle, bundle_bytes, _FOR_READING), 0
        if view:
            self._call("PyDict_SetItemString", names, self._name(memory, b"bundle"), view)
            self._call("Py_DecRef", view)
            result = self._run_text(names, self._name(memory, _NAMES) + len(_NAMES) + len(_RAISED))
        if not result:
            self._keep_what_is_raised(names, memory)
        self._call("Py_DecRef", result)

    def _answer(self, names: int, memory: int) -> str:
        answer = self._call("PyDict_GetItemString", names, self._name(memory, b"answer"))
        text = self._call("PyUnicode_AsUTF8AndSize", answer, memory) if answer else 0
        size_bytes = self._word(memory) if text else 0
        return self._tracee.read(text, size_bytes).decode() if 0 < size_bytes <= _ANSWER_BYTES_AT_MOST else ""

    def _keep_what_is_raised(self, names: int, memory: int) -> None:
        """If there is no answer: examine the exception, and raise it in the program if it is the program's."""
        places = [memory + number * _WORD_BYTES for number in range(_WORDS)]
        self._call("PyErr_Fetch", *places)
        self._call("PyErr_NormalizeException", *places)
        kind, error, traceback = (self._word(place) for place in places)
        if traceback:
            self._call("PyException_SetTraceback", error, traceback)
        result = 0
        if error:
            self._call("PyDict_SetItemString", names, self._name(memory, b"original"), error)
            result = self._run_text(names, self._name(memory, _NAMES) + len(_NAMES))
        if not result:
            self._call("PyErr_Clear")
        for each in (result, kind, error, traceback):
            self._call("Py_DecRef", each)

    def _call(self, name: str, *words: int) -> int:
        return self._call_at(self._at[name], *words)

    def _run_text(self, names: int, text: int) -> int:
        return self._call("PyRun_StringFlags", text, _FILE_INPUT, names, names, 0)

    def _name(self, memory: int, name: bytes) -> int:
        return memory + _WORDS * _WORD_BYTES + _NAMES.index(name)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._tracee.read(address, _WORD_BYTES), "little")
