"""What the machine that runs the tests can do: tried out, as emulators and confined systems lack some of it."""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

LIMIT_BYTES = 1 << 29
# What a program needs to put itself under a filter of seccomp(2).
SECCOMP_TYPES = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction))]"""


@cache
def limits_memory() -> bool:
    """Whether RLIMIT_AS is heeded; qemu ignores it."""
    program = f"bytearray({2 * LIMIT_BYTES})"

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))

    return bool(subprocess.run([sys.executable, "-c", program], preexec_fn=limit, stderr=subprocess.DEVNULL).returncode)


@cache
def reads_memory() -> bool:
    """Whether a process may ask the kernel for a copy of its own memory; qemu knows no such system call."""
    here, there = ctypes.create_string_buffer(b"here"), ctypes.create_string_buffer(4)
    pieces = [(ctypes.c_size_t * 2)(ctypes.addressof(each), 4) for each in (there, here)]
    read = ctypes.CDLL(None).process_vm_readv
    return read(os.getpid(), pieces[0], ctypes.c_ulong(1), pieces[1], ctypes.c_ulong(1), ctypes.c_ulong(0)) == 4


@cache
def why_not_sanitized(compiler: str, *flags: str) -> str | None:
    """Why no program that is compiled with these flags runs here; None if one does."""
    with TemporaryDirectory() as directory:
        program = Path(directory) / "program"
        program.with_suffix(".c").write_text("int main(void) { return 0; }\n")
        words = [[compiler, *flags, f"{program}.c", "-o", str(program)], [str(program)]]
        for each in words:
            done = subprocess.run(each, capture_output=True, text=True)
            if done.returncode:
                return f"{' '.join(flags)}: {(done.stderr.splitlines() or [f'exit code {done.returncode}'])[-1]}"
    return None


def has_user(number: int) -> bool:
    """Whether this user exists in our namespace."""
    ranges = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(first <= number < first + count for first, _outside, count in ranges)


@cache
def spawns_in_shared_memory() -> bool:
    """Whether a new child shares our memory until it is another program, as vfork(2) says; qemu forks it instead."""
    try:
        os.waitpid(os.posix_spawn("/nonexistent", ["nothing"], {}), 0)
    except FileNotFoundError:
        return True
    return False


@contextlib.contextmanager
def small_disk(directory: Path, size: str) -> Iterator[Path]:
    """A file system of that size, in a new directory; skips the test where we may not mount one."""
    directory.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)
