"""The two machines: their registers as ptrace gives them, their trap instruction, and how they call a function."""

from __future__ import annotations

import platform
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

GENERAL = 1  # NT_PRSTATUS: the general registers
_XSTATE, _FLOATING = 0x202, 2  # NT_X86_XSTATE, NT_PRFPREG
_WORD_BYTES = 8
_RED_ZONE_BYTES = 128  # below the stack pointer, and in use all the same
_STACK_ALIGNMENT_BYTES = 16


class Machine(NamedTuple):
    """Numbers are places among the general registers."""

    trap: bytes
    trap_advance_bytes: int  # where the counter is then, counted from the trap
    counter: int
    pointer: int
    arguments: tuple[int, ...]
    result: int
    link: int | None  # the register with the return address; None: it is on the stack
    cleared: tuple[tuple[int, int], ...]  # before a call: registers, and the bits of them that stay
    extended: int  # the other set of registers that a call may change

    def caller(self, registers: Sequence[int], read: Callable[[int, int], bytes]) -> int:
        """Where a function returns to that has just been called. `read` reads memory."""
        if self.link is not None:
            return registers[self.link]
        return int.from_bytes(read(registers[self.pointer], _WORD_BYTES), "little")

    def call(
        self,
        registers: Sequence[int],
        address: int,
        words: Sequence[int],
        back: int,
        write: Callable[[int, bytes], None],
    ) -> array[int]:
        """The registers with which a thread calls the function there, and returns to `back`. `write` writes memory."""
        prepared = array("Q", registers)
        for number, kept in self.cleared:
            prepared[number] &= kept
        stack = prepared[self.pointer] - _RED_ZONE_BYTES
        stack -= stack % _STACK_ALIGNMENT_BYTES
        if self.link is None:
            stack -= _WORD_BYTES
            write(stack, back.to_bytes(_WORD_BYTES, "little"))
        else:
            prepared[self.link] = back
        prepared[self.pointer], prepared[self.counter] = stack, address
        for number, word in zip(self.arguments, words, strict=False):
            prepared[number] = word
        return prepared


_ALL = (1 << 64) - 1
_DIRECTION, _BRANCH_TYPE = 1 << 10, 3 << 10  # eflags, pstate: what holds for the place where the thread was

_MACHINES = {
    # r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ...
    "x86_64": Machine(
        trap=b"\xcc",
        trap_advance_bytes=1,
        counter=16,
        pointer=19,
        arguments=(14, 13, 12, 11, 9, 8),
        result=10,
        link=None,
        cleared=((10, 0), (18, _ALL ^ _DIRECTION)),
        extended=_XSTATE,
    ),
    # x0 ... x30 sp pc pstate. Threads are borrowed at the first instruction of a function, where the procedure call
    # standard keeps no more of the vector registers than the floating-point set holds.
    "aarch64": Machine(
        trap=b"\x00\x00\x20\xd4",
        trap_advance_bytes=0,
        counter=32,
        pointer=31,
        arguments=tuple(range(8)),
        result=0,
        link=30,
        cleared=((33, _ALL ^ _BRANCH_TYPE),),
        extended=_FLOATING,
    ),
}


def this_machine() -> Machine | None:
    """The machine; None if it is unknown."""
    return _MACHINES.get(platform.machine())
