"""What a file says of a data collector: which function it is, for which programs, and when it is called.

A data collector names what a program was about when one of its calls ended (docs/collectors.md).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

PER = ("event", "transaction", "site")
ALL_PROGRAMS = ("*",)
SECTIONS_AT_MOST = 25
SECTION_LETTERS = 31
PREFIX_LETTERS = 63
MAKES_SOMETHING_ELSE = 0x20 | 0x80 | 0x200  # flags of code: a generator, a coroutine, an asynchronous generator
DECLARED = "__interpose_collector__"  # the attribute of a function that is one


class Collector:
    """A data collector: called `per` event, transaction or site of the `programs`, patterns with `*`.

    `sections` are its pseudo-sections: for each name the prefix, or prefixes, of modules that are reported as that.
    """

    __slots__ = ("function", "native", "per", "programs", "sections")

    def __init__(
        self,
        function: Callable[[Any], object] | None,
        programs: Sequence[str] = ALL_PROGRAMS,
        sections: Mapping[str, str | Sequence[str]] | None = None,
        per: str = "event",
        native: int = 0,
    ) -> None:
        self.function = function
        self.programs = (programs,) if isinstance(programs, str) else tuple(programs)
        self.sections = dict(sections or {})
        self.per = per
        self.native = native  # the address of a collector in C, which has no function
        if why := self._wrong():
            raise ValueError(why)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each name of a pseudo-section with each of its prefixes."""
        for name, prefixes in self.sections.items():
            for prefix in (prefixes,) if isinstance(prefixes, str) else prefixes:
                yield name.removeprefix("."), prefix

    def is_for(self, program: str) -> bool:
        """Whether one of its patterns stands for a program: its file's name, with `.py` or without, or its module."""
        names = (program, program.removesuffix(".py"))
        return any(matches(pattern, name) for pattern in self.programs for name in names)

    def _wrong(self) -> str:
        if self.per not in PER:
            return f"per is {self.per!r}, not one of {', '.join(PER)}"
        if not self.programs or not all(isinstance(each, str) for each in self.programs):
            return "programs are not texts"
        pairs = list(self.pairs())
        if len(pairs) > SECTIONS_AT_MOST:
            return f"{len(pairs)} pseudo-sections are more than {SECTIONS_AT_MOST}"
        for name, prefix in pairs:
            if not 0 < len(name.encode()) <= SECTION_LETTERS or not 0 < len(prefix.encode()) <= PREFIX_LETTERS:
                return f"pseudo-section {name!r} of {prefix!r}: a name has up to 31 letters, a prefix up to 63"
        return ""


def matches(pattern: str, name: str) -> bool:
    """Whether `name` is one that a pattern with `*` stands for."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(name) - len(rest[-1]) >= at and name.endswith(rest[-1])


def collector(
    function: Function | None = None,
    *,
    programs: Sequence[str] = ALL_PROGRAMS,
    sections: Mapping[str, str | Sequence[str]] | None = None,
    per: str = "event",
) -> Any:
    """Declare that the function is a data collector; return it unchanged. Raises ValueError, TypeError."""
    if function is None:
        return lambda decorated: collector(decorated, programs=programs, sections=sections, per=per)
    if type(function) is not type(collector):
        raise TypeError(f"a data collector must be a function, not {type(function).__name__}")
    if function.__code__.co_flags & MAKES_SOMETHING_ELSE:
        raise TypeError("a data collector must be a plain function, not a generator or a coroutine function")
    setattr(function, DECLARED, Collector(function, programs, sections, per))
    return function
