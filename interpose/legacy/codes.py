"""The event types of the Natural Profiler (Software AG), by code, and what they are called and recorded as here.

The codes and their meanings are those of its manual (reference: the utility Profiler, `FILTER=EVENT`).
"""

from __future__ import annotations

STATEMENT = "interpose.statement"
USER_EVENT = "interpose.user_event"


class Code:
    """An event type: its code, its name today, and its kinds or its single intrinsic; neither if the recording itself,
    or something other than calls, is its source (`where`)."""

    __slots__ = ("code", "intrinsic", "kinds", "name", "where")

    def __init__(
        self, code: str, name: str, kinds: tuple[str, ...] = (), intrinsic: str = "", where: str = ""
    ) -> None:
        self.code = code
        self.name = name
        self.kinds = kinds
        self.intrinsic = intrinsic
        self.where = where


CODES = (
    Code("SI", "session start", where="log.xml"),
    Code("ST", "session end", where="log.xml"),
    Code("PL", "module load", ("import",)),
    Code("PS", "transaction start", ("logic",)),
    Code("PT", "transaction end", ("logic",)),
    Code("PR", "return to the transaction around", ("logic",)),
    Code("DB", "before database call", ("db",)),
    Code("DA", "after database call", ("db",)),
    Code("IB", "before terminal I/O", ("screen",)),
    Code("IA", "after terminal I/O", ("screen",)),
    Code("CB", "before external program", ("process",)),
    Code("CA", "after external program", ("process",)),
    Code("RO", "outbound request", ("net",)),
    Code("RI", "inbound request", ("logic",)),
    Code("RS", "request handler start", ("logic",)),
    Code("NS", "statement", intrinsic=STATEMENT),
    Code("E", "error", where="the call that raised it"),
    Code("U", "user event", intrinsic=USER_EVENT),
    Code("MP", "pause", where="log.xml"),
    Code("N", "internal trace", where="interpose.config.state"),
)
BY_CODE = {each.code: each for each in CODES}
GROUPS = {
    "S": ("NS",),
    "P": ("PL", "PS", "PT", "PR"),
    "D": ("DB", "DA"),
    "I": ("IB", "IA"),
    "C": ("CB", "CA"),
    "R": ("RO", "RI", "RS"),
}


def codes_of(word: str) -> tuple[Code, ...]:
    """The event types that a word of an event filter stands for: a code, or a group of them; none for anything else."""
    return tuple(BY_CODE[code] for code in GROUPS.get(word, (word,)) if code in BY_CODE)
