"""The identities of traces and spans. They follow from what log.xml says of a process and from the numbers of an event:
an experiment has the same ones each time, and the traced program can send that of a call before it is recorded
(cext/core/trace_identities.c has the same formulas).
"""

from __future__ import annotations

from interpose.experiments.metadata.log import Log

_ALL = (1 << 64) - 1
_STEP, _SPREAD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_UNSTEP, _UNSPREAD = pow(_STEP, -1, _ALL + 1), pow(_SPREAD, -1, _ALL + 1)


def seed_of(log: Log) -> int:
    """What the identities of a process are made from."""
    return _mixed(_mixed(_mixed(log.pid + 1) + log.start_ns) + log.time_ns)


def trace_of(seed: int) -> str:
    """The trace of an experiment, from its founder's seed: 32 hexadecimal digits."""
    return f"{_mixed(seed + 1):016x}{_mixed(seed + 2):016x}"


def span_of(seed: int, thread: int, call: int) -> str:
    """The span of a call, 16 hexadecimal digits; that of the process for thread 0 and call 0."""
    number = ((thread << 32 | call) * _STEP & _ALL) ^ seed
    number = (number ^ number >> 32) * _SPREAD & _ALL
    return f"{number ^ number >> 29 or 1:016x}"


def call_of(seed: int, span: int) -> tuple[int, int]:
    """Thread and call whose span it is, if it is one of the process: the way back of `span_of`."""
    number = (span ^ span >> 29 ^ span >> 58) * _UNSPREAD & _ALL
    number = (number ^ number >> 32 ^ seed) * _UNSTEP & _ALL
    return number >> 32, number & 0xFFFFFFFF


def _mixed(number: int) -> int:
    number &= _ALL
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _ALL
    return number ^ number >> 31
