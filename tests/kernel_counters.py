"""What the kernel itself says of counters: tests ask it by perf_event_open(2), without anything of ours."""

import ctypes
import errno
import os
import platform
import struct

NUMBERS = {"x86_64": 298, "aarch64": 241}  # of the system call
HARDWARE, SOFTWARE = 0, 1  # types
# The events that interpose can read as perf events, with their type and config in linux/perf_event.h.
EVENTS = {
    "migrations": (SOFTWARE, 4),
    "cycles": (HARDWARE, 0),
    "instructions": (HARDWARE, 1),
    "cache_references": (HARDWARE, 2),
    "cache_misses": (HARDWARE, 3),
    "branches": (HARDWARE, 4),
    "branch_misses": (HARDWARE, 5),
}
EXCLUDE_KERNEL, EXCLUDE_HV = 1 << 5, 1 << 6  # of the flags; pinned is 1 << 2
PINNED = 1 << 2


def open_event(name, flags=PINNED | EXCLUDE_HV):
    """A descriptor that counts an event of the calling thread from now on. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    kind, config = EVENTS[name]
    attributes = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", kind, 128, config, 0, 0, 0, flags), 128)
    opened = libc.syscall(NUMBERS[platform.machine()], attributes, 0, -1, -1, ctypes.c_ulong(8))
    if opened < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return opened


def can_count():
    """Whether the kernel permits this process a software event."""
    try:
        os.close(open_event("migrations", EXCLUDE_KERNEL | EXCLUDE_HV))
    except OSError:
        return False
    return True


def read_event(opened):
    """How much the event has counted; None if the processor has no counter free for it."""
    data = os.read(opened, 8)
    return struct.unpack("<Q", data)[0] if len(data) == 8 else None


def is_counted(name):
    """Whether the kernel counts the event for us: of hardware, in user mode alone counts, too."""
    for flags in (PINNED | EXCLUDE_HV, PINNED | EXCLUDE_HV | EXCLUDE_KERNEL):
        try:
            opened = open_event(name, flags)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM) and EVENTS[name][0] == HARDWARE:
                continue
            return False
        try:
            return read_event(opened) is not None
        finally:
            os.close(opened)
    return False


# Executes a command for which the kernel has no perf events.
WITHOUT_PERF_EVENTS = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]  # of perf_event_open
LOAD, EQUAL, RETURN, EACCES, ALLOWED = 0x20, 0x15, 0x06, 0x0005000D, 0x7FFF0000
rules = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, EACCES), (RETURN, 0, 0, ALLOWED)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *rule) for rule in rules))
libc = ctypes.CDLL(None)
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(filters))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "interpose", *sys.argv[1:]])
"""
