"""The names of C++ and Rust functions as people write them.

A name comes from somebody else's file, and a short one can stand for gigabytes of text. So the C++ library translates
it in a process that has little memory and time.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import subprocess
import sys
import threading
import time
from functools import lru_cache

LONGEST = 2000  # bytes of a name, before and after
_MEMORY = 1 << 29
_PATIENCE_S = 2
_FAILURES_AT_MOST = 3
_KEPT = 16 * 1024

# Each name is a line, as is each answer: an empty one for what is no name of C++, or too long.
_TRANSLATE = f"""
import ctypes, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
libstdcxx, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
translate = libstdcxx.__cxa_demangle
translate.restype = ctypes.c_void_p
for line in sys.stdin.buffer:
    text = ctypes.c_void_p(translate(line.rstrip(b"\\n"), None, None, None))
    is_short = text and libc.strnlen(text, {LONGEST} + 1) <= {LONGEST}
    sys.stdout.buffer.write((ctypes.string_at(text) if is_short else b"") + b"\\n")
    sys.stdout.buffer.flush()
    libc.free(text)
"""

_MANGLED = re.compile(r"_Z[\w$.]+", re.ASCII)
_HASH_OF_RUST = re.compile(r"::h[0-9a-f]{16}$")
_SIGN_OF_RUST = re.compile(r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,4}))\$|\.\.")
_SIGNS = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}


class _Translator:
    """The process that translates, from the first name on. If it fails too often, there are no more answers."""

    def __init__(self) -> None:
        self._failures = 0
        self._begin_anew()
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self._begin_anew)  # the pipes are the parent's

    def _begin_anew(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def translated(self, name: str) -> str:
        """The name of a C++ function with its parameters; empty if there is none."""
        with self._lock:
            if self._failures == _FAILURES_AT_MOST:
                return ""
            try:
                return self._asked(name)
            except (OSError, EOFError):
                self._failures += 1
                self.end()
                return ""

    def end(self) -> None:
        """End the process, if there is one; the next name begins another."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _asked(self, name: str) -> str:
        self._process = self._process or _begin()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(name.encode() + b"\n")
        answer, until_s = b"", time.monotonic() + _PATIENCE_S
        while not answer.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], max(0, until_s - time.monotonic()))[0]:
                raise TimeoutError
            piece = self._process.stdout.read(LONGEST + 1)
            if not piece:
                raise EOFError
            answer += piece
        return answer[:-1].decode(errors="replace")


def _begin() -> subprocess.Popen[bytes]:
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable or "python3", "-I", "-S", "-c", _TRANSLATE]
    return subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=nothing, env={})


def _sign_of_rust(found: re.Match[str]) -> str:
    named, number = found.groups()
    if not number:
        return _SIGNS[named] if named else "::"
    sign = chr(int(number, 16))
    return sign if sign.isprintable() else found[0]


def _of_rust(name: str) -> str:
    """From `<$LT$T$u20$as$u20$core..fmt..Debug$GT$` and the like to what stands in the source."""
    return _SIGN_OF_RUST.sub(_sign_of_rust, re.sub(r"(^|::)_\$", r"\1$", name))


_translator = _Translator()


@lru_cache(maxsize=_KEPT)
def demangled(name: str) -> str:
    """The function that a symbol of C++ or of Rust (in its older scheme) stands for, as in its source; else `name`."""
    if len(name) > LONGEST or not _MANGLED.fullmatch(name):
        return name
    translated = _translator.translated(name)
    without_hash = _HASH_OF_RUST.sub("", translated)
    return _of_rust(without_hash) if without_hash != translated else translated or name
