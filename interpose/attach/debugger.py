"""A small debugger: stops the threads of a process, also at breakpoints, and calls functions in one of them.

Each event is handled when it comes, whatever is being waited for: signals go where they would have gone, new threads of
the program are followed, and processes that it forks run on without the breakpoints. While the main thread calls
functions, signals are held back, because handlers of the program would run within them. ProcessLookupError means that
the process has ended.
"""

from __future__ import annotations

import os
import signal
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from interpose.attach import ptrace
from interpose.attach.execution import Call
from interpose.attach.machine import GENERAL, Machine
from interpose.attach.tracee import CannotAttach, Tracee

Condition = Callable[[Sequence[int]], bool]

_OPTIONS = ptrace.REPORT_FORK | ptrace.REPORT_VFORK | ptrace.REPORT_CLONE | ptrace.REPORT_EXEC | ptrace.REPORT_EXIT
_WAIT_ALL = 0x40000000  # __WALL: for threads as well
_BY_TRAP, _BY_STEP = (0x80, 1), (2, signal.SIGTRAP)  # codes of a SIGTRAP; of others' it is another
_TRAP_BIT = 1 << (signal.SIGTRAP - 1)
# Those of the thread's own instructions, of the C library and of a terminal's job control are never held back.
_CANNOT_WAIT = {
    *(signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS),
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
    *range(signal.SIGSYS + 1, signal.SIGRTMIN),
}
_STOP_S = 20.0  # a thread stops at once, unless it waits in the kernel or for a child that has not begun yet
_KERNEL_S = 0.01  # a thread that does not stop for so long may wait in the kernel
_LOOK_S = 1.0
_MOMENT_S, _LOOKS_AT_MASKS = 0.002, 20
_WORD_BYTES = 8


class Thread:
    """A thread of the process, as its last event left it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_stopped = self.is_suspended = False  # by this debugger, or by SIGSTOP and similar signals
        self.signal = 0  # the signal that it gets when it continues
        self.trap: int | None = None  # the address of the trap that it came to
        self.steps_over: int | None = None  # the breakpoint that it passes when it continues
        self.blocks_traps = False


class Debugger:
    """Of the process of `tracee`. SIGCHLD must be blocked, and the calling process have no other children."""

    def __init__(self, tracee: Tracee, machine: Machine) -> None:
        self._tracee, self._machine = tracee, machine
        self._entry = tracee.entry()
        self._threads: dict[int, Thread] = {}
        self._words: dict[int, int] = {}  # what stood where there is a trap, or was one
        self._armed: dict[int, Condition | None] = {}
        self._announced: set[int] = set()  # children that have still to come
        self._come: set[int] = set()  # those that came before they were announced
        self._holds = False  # all threads but the borrowed one
        self._borrowed: Thread | None = None
        self._held_back: list[tuple[int, int]] = []  # a thread and the signal that came for it

    # --- the process

    def attach(self) -> None:
        """Stop all threads. Raises PermissionError too."""
        ptrace.request(ptrace.SEIZE, self._tracee.pid, 0, _OPTIONS)
        self._threads[self._tracee.pid] = Thread(self._tracee.pid)
        seen = {self._tracee.pid}
        while new := self._tracee.threads() - seen:
            seen |= new
            for number in new:
                with suppress(PermissionError, ProcessLookupError):  # it is ours already, or has ended
                    ptrace.request(ptrace.SEIZE, number, 0, _OPTIONS)
                    self._threads[number] = Thread(number)
        self.stop()
        for _ in range(_LOOKS_AT_MASKS):
            if not self._look_at_masks():
                break
            self.go_on()
            time.sleep(_MOMENT_S)
            self.stop()

    def _look_at_masks(self) -> bool:
        """Whether a thread blocks SIGTRAP: libraries block all signals for a moment where they start a thread."""
        for thread in self._threads.values():
            with suppress(ProcessLookupError):
                thread.blocks_traps = bool(ptrace.signal_mask(thread.number) & _TRAP_BIT)
        return any(thread.blocks_traps for thread in self._threads.values())

    def stop(self) -> None:
        """Stop all threads, wherever they are. Raises CannotAttach if one does not stop.

        Others do not stand still for one that waits for a disk or for vfork's child: that one stops before it executes
        anything of the program again.
        """
        self._holds = True
        for thread in self._threads.values():
            if not thread.is_stopped:
                _ask(ptrace.INTERRUPT, thread)
        until_s = time.monotonic() + _STOP_S
        while self._announced or not all(thread.is_stopped for thread in self._threads.values()):
            event = self._next_event(time.monotonic() + _KERNEL_S)
            if event is not None:
                self._handle(*event)
            elif self._others_wait_in_kernel():
                break
            elif time.monotonic() >= until_s:
                raise CannotAttach(f"{self._tracee.pid}: a thread of it cannot be stopped: it waits in the kernel")

    def _others_wait_in_kernel(self) -> bool:
        """Are some threads stopped, and all others where they cannot be?"""
        others = [thread.number for thread in self._threads.values() if not thread.is_stopped]
        is_one_stopped = len(others) < len(self._threads)
        return is_one_stopped and not self._announced and all(map(self._tracee.waits_in_kernel, others))

    def go_on(self) -> None:
        """Let all threads run except the borrowed one."""
        self._holds = False
        for thread in self._threads.values():
            if thread.is_stopped and thread is not self._borrowed:
                self._resume(thread)

    def let_go(self) -> None:
        """Detach from the process, all threads of which are stopped; it runs on."""
        for thread in self._threads.values():
            with suppress(ProcessLookupError):
                ptrace.request(ptrace.DETACH, thread.number, 0, thread.signal)
        self._threads.clear()

    # --- traps

    def arm(self, traps: Mapping[int, Condition | None]) -> None:
        """Have threads stop at these addresses, where the condition for their registers holds, until `disarm`."""
        for address in traps.keys() - self._words.keys():
            self._words[address] = int.from_bytes(self._tracee.read(address, _WORD_BYTES), "little")
        self._armed.update(traps)
        for address in traps:
            self._set_trap(self._any_stopped(), address)

    def disarm(self) -> None:
        """Take all traps out. All threads must be stopped: none is on its way to the trap that it came to."""
        for address in self._armed.keys() - {self._entry}:
            self._take_out(self._any_stopped(), address)
            del self._armed[address]

    def wait_for_trap(self, timeout_s: float) -> Thread | None:
        """The thread that came to a trap, and is stopped; None if none did in time."""
        until_s = time.monotonic() + timeout_s
        while event := self._next_event(until_s):
            thread = self._handle(*event)
            if thread is not None:
                return thread
        return None

    def registers(self, thread: Thread) -> array[int]:
        """The general registers of a stopped thread."""
        return array("Q", ptrace.read_registers(thread.number, GENERAL))

    # --- calls

    @contextmanager
    def borrowed(self, thread: Thread) -> Iterator[Call]:
        """A function that calls functions in a thread: given the address and words, it gives what comes back. The
        thread is at a trap, so it is in no system call. Signals come afterwards, when its registers are as they were,
        in the sets and sizes that the kernel gave. All threads must be stopped at the end."""
        sets = {which: ptrace.read_registers(thread.number, which) for which in (GENERAL, self._machine.extended)}
        general = array("Q", sets[GENERAL])
        self.arm({self._entry: None})  # calls return to it: nothing else executes it any more
        self._borrowed = thread

        def call(address: int, *words: int) -> int:
            prepared = self._machine.call(general, address, words, self._entry, self._tracee.write)
            ptrace.write_registers(thread.number, GENERAL, prepared.tobytes())
            self._resume(thread)
            while self.wait_for_trap(_LOOK_S) is not thread:
                pass
            return self.registers(thread)[self._machine.result]

        try:
            yield call
        finally:
            if self._borrowed is thread:
                self._borrowed = None
                for which, registers in sets.items():
                    ptrace.write_registers(thread.number, which, registers)
                self._take_out(thread, self._entry)
                del self._armed[self._entry]
            self._send_again()

    def _send_again(self) -> None:
        """Send the signals that were held back, to the process where the thread has ended."""
        for number, held in self._held_back:
            try:
                ptrace.send_signal(self._tracee.pid, number, held)
            except ProcessLookupError:
                with suppress(ProcessLookupError):
                    os.kill(self._tracee.pid, held)
        self._held_back.clear()

    # --- events

    def _next_event(self, until_s: float) -> tuple[int, int] | None:
        """A thread and its wait status."""
        while True:
            try:
                number, status = os.waitpid(-1, os.WNOHANG | _WAIT_ALL)
            except ChildProcessError:
                raise ProcessLookupError from None
            if number:
                return number, status
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return None
            signal.sigtimedwait({signal.SIGCHLD}, min(left_s, _LOOK_S))

    def _handle(self, number: int, status: int) -> Thread | None:
        """The thread, if it came to a breakpoint; any other continues, unless all are held."""
        if not os.WIFSTOPPED(status):
            self._announced.discard(number)
            self._forget(number)
            return None
        thread = self._threads.get(number)
        if thread is None:
            self._match_child(number, self._announced, self._come)
            if not self._tracee.has_thread(number):
                self._free_child(number)
                return None
            thread = self._threads[number] = Thread(number)
        try:
            return self._handle_stop(thread, status >> 16, os.WSTOPSIG(status))
        except ProcessLookupError:  # killed meanwhile: the next event says so
            return None

    def _handle_stop(self, thread: Thread, event: int, number: int) -> Thread | None:
        thread.is_stopped, thread.is_suspended, thread.signal, thread.trap = True, False, 0, None
        if thread.steps_over is not None:
            self._step_ends(thread)
        if event == ptrace.EXEC:
            self._give_up_after_exec(thread)
        elif event == ptrace.EXIT:
            self._resume(thread)
            self._forget(thread.number)
            return None
        elif event in (ptrace.FORK, ptrace.VFORK, ptrace.CLONE):
            self._match_child(ptrace.child(thread.number), self._come, self._announced)
        elif event == ptrace.STOP:
            thread.is_suspended = number != signal.SIGTRAP
        elif not event and not (number == signal.SIGTRAP and self._is_ours(thread)):
            thread.signal = self._hold_back(thread, number)
        if thread.trap is not None and not self._may_stop_at(thread):
            thread.steps_over = thread.trap
        elif thread.trap is not None and not self._is_held(thread):
            return thread
        if event == ptrace.STOP and self._is_held(thread) and self._has_trap_pending(thread):
            thread.is_suspended = False
            self._resume(thread)
        elif not self._is_held(thread):
            self._resume(thread)
        return None

    def _hold_back(self, thread: Thread, number: int) -> int:
        """The signal that the thread gets now: `number`, or 0 if it gets that later.

        CPython runs handlers in the main thread only, so if another one is borrowed they do not run within calls.
        """
        main = self._threads.get(self._tracee.pid)
        if main is None or self._borrowed is not main or number in _CANNOT_WAIT:
            return number
        self._held_back.append((thread.number, number))
        return 0

    def _match_child(self, number: int, waiting: set[int], others: set[int]) -> None:
        """Its announcement and its first stop come in any order."""
        (waiting.remove if number in waiting else others.add)(number)

    def _is_held(self, thread: Thread) -> bool:
        return self._holds and thread is not self._borrowed

    def _may_stop_at(self, thread: Thread) -> bool:
        assert thread.trap is not None
        condition = self._armed.get(thread.trap)
        return condition is None or condition(self.registers(thread))

    def _is_ours(self, thread: Thread) -> bool:
        """Is this SIGTRAP from us? A thread that came to a trap is put back to it."""
        code = ptrace.signal_code(thread.number)
        if code not in (*_BY_TRAP, *_BY_STEP):
            return False
        if thread.blocks_traps:  # the kernel has changed that, to send this one
            ptrace.set_signal_mask(thread.number, ptrace.signal_mask(thread.number) | _TRAP_BIT)
        registers = self.registers(thread)
        address = registers[self._machine.counter] - self._machine.trap_advance_bytes
        if code not in _BY_TRAP or address not in self._words:
            return code in _BY_STEP
        registers[self._machine.counter] = thread.trap = address
        ptrace.write_registers(thread.number, GENERAL, registers.tobytes())
        return True

    def _has_trap_pending(self, thread: Thread) -> bool:
        """Whether the request to stop overtook a breakpoint that the thread has just reached: it must not stay."""
        return bool(self._armed) and self._tracee.has_signal_pending(thread.number, signal.SIGTRAP)

    def _step_ends(self, thread: Thread) -> None:
        address, thread.steps_over = thread.steps_over, None
        if address in self._armed:
            self._set_trap(thread, address)

    def _resume(self, thread: Thread) -> None:
        thread.is_stopped = False
        if thread.steps_over in self._armed:
            self._take_out(thread, thread.steps_over)
            _ask(ptrace.STEP, thread)
        elif thread.is_suspended:
            _ask(ptrace.LISTEN, thread)
        else:
            _ask(ptrace.CONT, thread, thread.signal)

    def _forget(self, number: int) -> None:
        self._threads.pop(number, None)
        if not self._threads:
            raise ProcessLookupError

    def _give_up_after_exec(self, thread: Thread) -> None:
        """The new program has no breakpoints, and its other threads are gone."""
        self._armed.clear()
        self._borrowed, self._threads = None, {thread.number: thread}
        raise CannotAttach(f"{self._tracee.pid}: has started another program in its place")

    def _free_child(self, number: int) -> None:
        """A process that the program forked runs on. Its memory is a copy with our traps; or, until it starts another
        program, the same memory, where the traps must stay."""
        child = Thread(number)
        with suppress(ProcessLookupError):
            if self._armed and not self._has_our_memory(child):
                for address in self._armed:
                    self._take_out(child, address)
            ptrace.request(ptrace.DETACH, number)

    def _has_our_memory(self, child: Thread) -> bool:
        """Whether changes in its memory are changes in the program's. Tried where nothing executes: a trap that was out
        for a moment would be missed by a thread that comes to it just then."""
        place = self._entry + _WORD_BYTES
        word = self._tracee.read(place, _WORD_BYTES)
        number = int.from_bytes(word, "little")
        ptrace.request(ptrace.POKE, child.number, place, number ^ 1)
        is_same = self._tracee.read(place, _WORD_BYTES) != word
        ptrace.request(ptrace.POKE, child.number, place, number)
        return is_same

    # --- memory

    def _any_stopped(self) -> Thread:
        for thread in self._threads.values():
            if thread.is_stopped:
                return thread
        raise ProcessLookupError

    def _set_trap(self, by: Thread, address: int) -> None:
        word = self._words[address].to_bytes(_WORD_BYTES, "little")
        trap = self._machine.trap
        ptrace.request(ptrace.POKE, by.number, address, int.from_bytes(trap + word[len(trap) :], "little"))

    def _take_out(self, by: Thread, address: int) -> None:
        ptrace.request(ptrace.POKE, by.number, address, self._words[address])


def _ask(what: int, thread: Thread, given: int = 0) -> None:
    """A request to a thread that may be killed at any time; an event says so."""
    with suppress(ProcessLookupError):
        ptrace.request(what, thread.number, 0, given)
