"""gdb, spoken to by its machine interface: stopping a process at a place, calling functions in it, letting it go.

Nothing of a program's symbols is read by it, which would take long while the program stands still: places are
addresses. Signals go where they would have gone, but for one of ours that stops it.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence

from interpose.attaching.tracee import CannotAttach

_ANSWER_S = 20.0  # gdb answers at once, or is gone
_SIGNAL = signal.SIGURG  # what programs ignore that do not ask for it
_SETTINGS = (
    "-gdb-set confirm off",
    "-gdb-set auto-load off",
    "-gdb-set auto-solib-add off",
    "-gdb-set debug-file-directory /nowhere",
    "-gdb-set libthread-db-search-path /nowhere",
    "-gdb-set debuginfod enabled off",
    "-gdb-set exec-file-mismatch off",
    "-gdb-set print thread-events off",
    "-gdb-set mi-async on",
    "-gdb-set language c",
    '-interpreter-exec console "handle all nostop noprint pass"',
    '-interpreter-exec console "handle SIGINT nostop noprint pass"',
)
_MAY_FAIL = ("debuginfod", "exec-file-mismatch")  # not every gdb knows them
_ESCAPED = re.compile(r"\\([\\\"nt]|[0-7]{3})")


class NoAnswer(Exception):
    """gdb says that something could not be done."""


class Ended(Exception):
    """The process ended meanwhile."""


class Debugger:
    """A gdb that attaches to one process. Raises CannotAttach where there is none."""

    def __init__(self, program: str) -> None:
        path = shutil.which("gdb")
        if path is None:
            raise CannotAttach("gdb is needed to reach a running program on this Python; the package gdb has it")
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._gdb = subprocess.Popen(
            [path, "-q", "-nx", "-nh", "--interpreter=mi"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "LC_ALL": "C"},
            start_new_session=True,  # what is typed at the terminal is for us
        )
        self._waiting = selectors.DefaultSelector()
        assert self._gdb.stdout is not None
        os.set_blocking(self._gdb.stdout.fileno(), False)
        self._waiting.register(self._gdb.stdout, selectors.EVENT_READ)
        self._rest = b""
        self._number = self._pid = 0
        self._stops: list[str] = []
        self._ended = False
        for setting in _SETTINGS:
            try:
                self.ask(setting)
            except NoAnswer:
                if setting.split()[1] not in _MAY_FAIL:
                    raise
        self.ask(f'-interpreter-exec console "exec-file {program}"')

    def attach(self, pid: int) -> None:
        """Stop all threads of the process. Raises NoAnswer."""
        self._pid = pid
        self.ask(f"-target-attach {pid}")

    def break_at(self, address: int, condition: str = "") -> str:
        """A breakpoint's number."""
        given = f'-c "{condition}" ' if condition else ""
        return _found(r'number="(\d+)"', self.ask(f"-break-insert {given}*{address:#x}"))

    def clear(self, numbers: Sequence[str]) -> None:
        """Take these breakpoints out."""
        if numbers:
            self.ask(f"-break-delete {' '.join(numbers)}")

    def go_on(self) -> None:
        """Let all threads run."""
        self._stops.clear()
        self.ask("-exec-continue")

    def wait_for_stop(self, timeout_s: float) -> str | None:
        """The thread that came to a breakpoint; None when none did in time. Raises Ended."""
        until_s = time.monotonic() + timeout_s
        while stop := self._next_stop(until_s):
            if "breakpoint-hit" in stop:
                return _found(r'thread-id="(\d+)"', stop)
            if self._ended:
                raise Ended
            self.ask("-exec-continue")
        if self._ended:
            raise Ended
        return None

    def choose(self, thread: str) -> None:
        """Functions are called in this thread from now on."""
        self.ask(f"-thread-select {thread}")

    def let_others_run(self, others: bool) -> None:
        """Whether all threads run while a function is called, or the chosen one alone."""
        self.ask(f"-gdb-set scheduler-locking {'off' if others else 'on'}")

    def number(self, expression: str) -> int:
        """The value of an expression, evaluated in the chosen thread; functions are called. Raises NoAnswer, Ended."""
        answer = self.ask(f'-data-evaluate-expression "{expression}"')
        return int(_found(r'value="(-?\d+)', answer))

    def let_go(self) -> None:
        """Detach; the process runs on."""
        self.ask("-target-detach")

    def stop(self) -> None:
        """Stop all threads, wherever they are, by a signal that the program does not get. Raises NoAnswer, Ended."""
        self._stops.clear()
        self.ask(f'-interpreter-exec console "handle {_SIGNAL.name} stop print nopass"')
        os.kill(self._pid, _SIGNAL)
        until_s = time.monotonic() + _ANSWER_S
        while not (stop := self._next_stop(until_s)) or f'"{_SIGNAL.name}"' not in stop:
            if self._ended:
                raise Ended
            if not stop:
                raise NoAnswer("it could not be stopped")
            self.ask("-exec-continue")  # it was at a breakpoint, and the signal is still to come
        self.ask(f'-interpreter-exec console "handle {_SIGNAL.name} nostop noprint pass"')

    def _next_stop(self, until_s: float) -> str | None:
        while not self._stops and not self._ended and (left_s := until_s - time.monotonic()) > 0:
            self._read(left_s)
        return self._stops.pop(0) if self._stops else None

    def close(self) -> None:
        """End gdb, if it has not ended."""
        for pipe in (self._gdb.stdin, self._gdb.stdout):
            assert pipe is not None
        try:
            assert self._gdb.stdin is not None
            self._gdb.stdin.write(b"-gdb-exit\n")
            self._gdb.stdin.close()
            self._gdb.wait(_ANSWER_S)
        except (OSError, subprocess.TimeoutExpired):
            self._gdb.kill()
            self._gdb.wait()
        self._waiting.close()
        assert self._gdb.stdout is not None
        self._gdb.stdout.close()

    def ask(self, command: str, timeout_s: float | None = None) -> str:
        """The answer to a command of the machine interface. Raises NoAnswer with what gdb says, Ended."""
        self._number += 1
        assert self._gdb.stdin is not None
        try:
            self._gdb.stdin.write(f"{self._number}{command}\n".encode())
            self._gdb.stdin.flush()
        except OSError:
            raise NoAnswer("gdb has ended") from None
        begin = f"{self._number}^"
        while True:
            for line in self._read(timeout_s):
                if line.startswith(begin):
                    return _judged(line[len(begin) :], self._ended)

    def _read(self, timeout_s: float | None) -> list[str]:
        """The lines that have come; waits for some."""
        assert self._gdb.stdout is not None
        if not self._waiting.select(timeout_s):
            return []
        data = self._gdb.stdout.read()
        if not data:
            raise NoAnswer("gdb has ended")
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [line.decode("utf-8", "replace") for line in lines]
        self._stops += [line for line in found if line.startswith("*stopped")]
        self._ended |= any(line.startswith("=thread-group-exited") for line in found)
        return found


def calling(address: int, *arguments: int | str) -> str:
    """The expression that calls the function there with these words, or expressions for them."""
    words = ",".join(each if isinstance(each, str) else f"{each:#x}ul" for each in arguments)
    kinds = ",".join("unsigned long" for _ in arguments) or "void"
    return f"(((unsigned long(*)({kinds})){address:#x})({words}))"


def _judged(answer: str, ended: bool) -> str:
    if not answer.startswith("error"):
        return answer
    if ended:
        raise Ended
    message = re.search(r'msg="((?:[^"\\]|\\.)*)"', answer)
    raise NoAnswer(_ESCAPED.sub(_plain, message[1]) if message else answer)


def _plain(match: re.Match[str]) -> str:
    return {"n": " ", "t": " "}.get(match[1], match[1] if len(match[1]) == 1 else "?")


def _found(pattern: str, answer: str) -> str:
    match = re.search(pattern, answer)
    if match is None:
        raise NoAnswer(answer)
    return match[1]
