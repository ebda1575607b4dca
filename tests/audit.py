"""What a program can see of its own process: for a comparison of one process with another, or with itself later.

Imported by programs under test, so it has nothing but the standard library.
"""

import atexit
import builtins
import ctypes
import gc
import locale
import os
import re
import resource
import signal
import sys
import threading
import warnings
from types import BuiltinFunctionType

C = ctypes.CDLL(None, use_errno=True)
SIGNALS = range(1, signal.NSIG)
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]
STATUS = (
    *("Uid", "Gid", "Groups", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff"),
    *("NoNewPrivs", "Seccomp", "Cpus_allowed", "CoreDumping", "TracerPid"),
)


class SignalAction(ctypes.Structure):
    """`struct sigaction` of glibc on 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class AlternateStack(ctypes.Structure):
    """`stack_t`."""

    _fields_ = (("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def facts() -> dict[str, object]:
    """All that is seen, by a name for it; what is an address is told without it."""
    return {
        "descriptors": descriptors(),
        "threads": len(os.listdir("/proc/self/task")),
        "children": read("/proc/thread-self/children"),
        "status": status(),
        "modules": sorted(sys.modules),
        "os.environ": dict(os.environ),
        "C environment": c_environment(),
        "mapped files": sorted(set(mapped_files())),
        "handlers": [plain(signal.getsignal(number)) for number in SIGNALS],
        "actions": [action(number) for number in SIGNALS],
        "alternate stack": alternate_stack(),
        "blocked signals": plain(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "wakeup descriptor": wakeup_descriptor(),
        "timers": [signal.getitimer(which) for which in TIMERS],
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
        "umask": umask(),
        "working directory": os.getcwd(),
        "scheduling": [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))],
        "session": [os.getsid(0) == os.getsid(os.getppid()), os.getpgrp() == os.getpgid(os.getppid())],
        "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()],
        "import": plain([sys.path, sys.meta_path, sys.path_hooks, sys.flags]),
        "directories looked into": sorted(sys.path_importer_cache),
        "arguments": [sys.argv, sys.orig_argv, sys.executable, sys.prefix],
        "warnings": plain(warnings.filters),
        "collector": plain([gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, gc.get_freeze_count()]),
        "atexit": atexit._ncallbacks(),
        "hooks": plain([sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook, builtins.__import__]),
        "threading": plain([threading.gettrace(), threading.getprofile(), threading.excepthook]),
        "known threads": threading.active_count(),
        "tracing": plain([sys.gettrace(), sys.getprofile(), sys.get_asyncgen_hooks(), *monitoring()]),
        "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_coroutine_origin_tracking_depth()],
        "streams": plain([sys.stdin, sys.stdout, sys.stderr]),
        "not found": not_found(),
        "names": {"builtins": sorted(vars(builtins)), "sys": sorted(vars(sys)), "os": sorted(vars(os))},
    }


def plain(value: object) -> str:
    """How a value shows itself, without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


def not_found() -> list[str]:
    """C functions that are in a set or are keys of a dictionary, and yet are not found in it: their hash is another."""
    containers = [each for each in gc.get_objects() if type(each) in (set, frozenset, dict)]
    return sorted(
        repr(member)
        for container in containers
        for member in tuple(container)
        if type(member) is BuiltinFunctionType and member not in container
    )


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def descriptors() -> dict[str, str]:
    """What each open descriptor is; but for the one that this is read through."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = re.sub(r"\[\d+\]", "[]", os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            pass
    return found


def status() -> dict[str, str]:
    fields = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    return {name: fields[name] for name in STATUS if name in fields}


def c_environment() -> list[str]:
    """The environment that C code and children have; os.environ is a copy of it."""
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(C, "environ")
    found = []
    while variables[len(found)] is not None:
        found.append(os.fsdecode(variables[len(found)]))
    return sorted(found)


def maps() -> list[tuple[int, int, str]]:
    """From, to, and the file of each mapping that has one."""
    found = []
    for line in read("/proc/self/maps").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6:
            begin, end = fields[0].split("-")
            found.append((int(begin, 16), int(end, 16), fields[5]))
    return found


def mapped_files() -> list[str]:
    return [path for _, _, path in maps()]


def place(address: int | None) -> str:
    """The mapped file in which an address lies, and where in it."""
    if address in (None, 0, 1):
        return str(address or 0)
    first: dict[str, int] = {}
    for begin, end, path in maps():
        first.setdefault(path, begin)
        if begin <= address < end:
            return f"{path}+{address - first[path]:#x}"
    return "elsewhere"


def action(number: int) -> list[object]:
    """What the C library has been told to do at a signal; the error's number where it does not say."""
    found = SignalAction()
    if C.sigaction(number, None, ctypes.byref(found)):
        return [ctypes.get_errno()]
    return [place(found.handler), found.mask[0], found.flags, place(found.restorer)]  # the rest of the mask is not set


def alternate_stack() -> list[int]:
    found = AlternateStack()
    assert C.sigaltstack(None, ctypes.byref(found)) == 0
    return [bool(found.address), found.flags, found.size]


def wakeup_descriptor() -> int:
    found = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(found)
    return found


def umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def monitoring() -> list[object]:
    if not hasattr(sys, "monitoring"):
        return []
    tools = [sys.monitoring.get_tool(number) for number in range(6)]
    return [tools, [sys.monitoring.get_events(number) for number, tool in enumerate(tools) if tool]]


def differences(before: dict[str, object], after: dict[str, object]) -> dict[str, tuple[object, object]]:
    """The facts that are not the same."""
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
