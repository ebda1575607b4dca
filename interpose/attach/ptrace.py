"""ptrace(2): stopping another process's threads, and reading and changing their registers.

The kernel accepts requests for a process only from the thread that seized it.
"""

from __future__ import annotations

import ctypes
import os

CONT, STEP, DETACH, POKE = 7, 9, 17, 5
SEIZE, INTERRUPT, LISTEN = 0x4206, 0x4207, 0x4208
_GET_MESSAGE, _GET_SIGNAL, _GET_SET, _SET_SET, _GET_MASK, _SET_MASK = 0x4201, 0x4202, 0x4204, 0x4205, 0x420A, 0x420B
# What a seized thread stops for: a fork or a thread of it, another program, its end.
REPORT_FORK, REPORT_VFORK, REPORT_CLONE, REPORT_EXEC, REPORT_EXIT = 2, 4, 8, 0x10, 0x40
FORK, VFORK, CLONE, EXEC, EXIT, STOP = 1, 2, 3, 4, 6, 128  # in the upper half of a wait status

_FIRST_TRY_BYTES = 4096
_MASK_BYTES = 8


class _Vector(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def request(what: int, thread: int, address: int = 0, data: int = 0) -> None:
    """Raises ProcessLookupError where the thread has ended, PermissionError, OSError."""
    if _ptrace(what, thread, address, data) == -1:
        raise _error()


def read_registers(thread: int, which: int) -> bytes:
    """The register set `which` (NT_... of <elf.h>) of a stopped thread.

    Only the kernel knows its size, which depends on the processor and the program: the state of AMX alone takes 8 KB.
    The kernel fills the buffer that it gets, so the set is complete only if some of the buffer is left over.
    """
    size_bytes = _FIRST_TRY_BYTES
    while True:
        buffer = ctypes.create_string_buffer(size_bytes)
        vector = _Vector(ctypes.addressof(buffer), size_bytes)
        request(_GET_SET, thread, which, ctypes.addressof(vector))
        if vector.size_bytes < size_bytes:
            return buffer.raw[: vector.size_bytes]
        size_bytes *= 2


def write_registers(thread: int, which: int, registers: bytes) -> None:
    """Put back what read_registers gave: all of it, for the kernel accepts no other size."""
    buffer = ctypes.create_string_buffer(registers, len(registers))
    vector = _Vector(ctypes.addressof(buffer), len(registers))
    request(_SET_SET, thread, which, ctypes.addressof(vector))


def signal_code(thread: int) -> int:
    """The si_code of the signal that a thread is stopped for."""
    information = (ctypes.c_int * 32)()
    request(_GET_SIGNAL, thread, 0, ctypes.addressof(information))
    return information[2]


def child(thread: int) -> int:
    """The process or thread that a thread has started, where it is stopped for that."""
    number = ctypes.c_ulong()
    request(_GET_MESSAGE, thread, 0, ctypes.addressof(number))
    return number.value


def signal_mask(thread: int) -> int:
    """The signals that a stopped thread blocks: bit N - 1 is signal N."""
    mask = ctypes.c_uint64()
    request(_GET_MASK, thread, _MASK_BYTES, ctypes.addressof(mask))
    return mask.value


def set_signal_mask(thread: int, mask: int) -> None:
    """Have a stopped thread block these signals."""
    given = ctypes.c_uint64(mask)
    request(_SET_MASK, thread, _MASK_BYTES, ctypes.addressof(given))


def send_signal(process: int, thread: int, number: int) -> None:
    """Send a signal to one thread; to the process where the C library (before glibc 2.30) has no function for that.
    Raises ProcessLookupError where the thread has ended, OSError."""
    if not hasattr(_libc, "tgkill"):
        os.kill(process, number)
    elif _libc.tgkill(process, thread, number) == -1:
        raise _error()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
