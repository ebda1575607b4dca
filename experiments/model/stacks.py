"""What the numbers of sites and stacks in a process's events refer to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from interpose.experiments.format.records import SiteRecord, StackRecord
from interpose.experiments.format.tables import RecordTable
from interpose.experiments.model.demangling import demangled
from interpose.experiments.model.recorded_files import UNKNOWN, RecordedFiles

DEEPEST_STACK = 10_000
_KEPT_STACKS = 64 * 1024
_STACKS_AT_ONCE = 64 * 1024


@dataclass(frozen=True)
class Site:
    """A line of the program's code. `own` if it belongs neither to the standard library nor to an installed package.

    If it `is_native`, `file` is a shared object or a program, `function` a symbol or the file's name, and the line 0.
    For code in an interpreter other than the main one, `function` names the interpreter.

    If a data collector named it, `collector` is that collector; the file is then the module, the function the section,
    and the line the statement.
    """

    file: str
    line: int
    function: str
    own: bool
    collector: str = ""
    is_native: bool = False

    def __hash__(self) -> int:
        return hash((self.file, self.line))  # which tells most apart, sooner than all fields


_SHARED_OBJECT = re.compile(r"\.so(?:\.[\w.]+)?$")
_SITE_MODULE = "<frozen site>"
_FROZEN = "<frozen "  # begins the names of modules without a file
UNKNOWN_SITE = Site(UNKNOWN, 0, UNKNOWN, False)


class _Traits(NamedTuple):
    """What is asked of all frames of a stack: the innermost site of the program's own code, and whether all of it is
    built in, or some is of the interpreter's module `site`."""

    own: Site | None = None
    is_built_in: bool = True
    has_site_module: bool = False

    def around(self, site: Site) -> _Traits:
        """The traits of the stack in which this one called `site`; mostly the same ones."""
        is_built_in = self.is_built_in and site.file.startswith(_FROZEN)
        has_site_module = self.has_site_module or site.file == _SITE_MODULE
        if not site.own and is_built_in == self.is_built_in and has_site_module == self.has_site_module:
            return self
        return _Traits(site if site.own else self.own, is_built_in, has_site_module)


_NO_FRAMES = None, _Traits()


def _own_line(innermost: Site | None, found: _Traits) -> Site | None:
    return found.own or innermost


def _is_start_up(innermost: Site | None, found: _Traits) -> bool:
    return innermost is not None and (found.is_built_in or (found.has_site_module and not found.own))


def is_start_up(frames: Sequence[Site]) -> bool:
    """Whether what these frames do, from the innermost outward, belongs to the interpreter's own start."""
    found = _NO_FRAMES[1]
    for site in reversed(frames):
        found = found.around(site)
    return _is_start_up(frames[0] if frames else None, found)


def is_cut(stack: int, record_of: Callable[[int], StackRecord | None]) -> bool:
    """Whether a stack was deeper than was recorded; `record_of` gives a stack's record."""
    for _ in range(DEEPEST_STACK):
        record = record_of(stack) if stack else None
        if record is None or record.cut or record.outer >= stack:
            return record is not None and bool(record.cut)
        stack = record.outer
    return True


class RecordedStacks(RecordedFiles):
    """The sites and stacks of one process, by their numbers."""

    def frames(self, stack: int) -> Iterator[Site]:
        """The sites of the stack `stack`, from the innermost outward; none if it is not there."""
        for _ in range(DEEPEST_STACK):
            if stack == 0:
                return
            record = self._stack(stack)
            if record is None:
                self._missing("stacks", stack, None)
                return
            yield self.site(record.site)
            if record.outer >= stack:
                self.damages.add(f"{self.place}/stacks", f"stack {stack} is called from {record.outer}")
                return
            stack = record.outer

    def is_cut(self, stack: int) -> bool:
        """Whether the stack `stack` was deeper than could be recorded."""
        return is_cut(stack, self._stack)

    def own_line(self, stack: int) -> Site | None:
        """The first site of the program's own code, going outward; else the innermost, if any."""
        return _own_line(*self._traits_of(stack))

    def is_start_up(self, stack: int) -> bool:
        """Whether calls from that site belong to the interpreter's own start, before the program's first line: from its
        module `site` and what that runs, or from built-in code that looks for the program."""
        return _is_start_up(*self._traits_of(stack))

    def in_rows(self, stack: int) -> tuple[bool, Site | None] | None:
        """All that rows tell of a stack: whether calls from there belong to the start, and the own line of others; None
        if it is not there, which is not noted here."""
        known = self._traits.get(stack)
        if known is None:
            if self._find_stack(stack) is None:
                return None
            known = self._traits_of(stack)
        is_start_up = _is_start_up(*known)
        return is_start_up, None if is_start_up else _own_line(*known)

    def site(self, number: int) -> Site:
        """The site `number`; one with `?` if it is not there."""
        if number not in self._sites_seen:
            self._sites_seen[number] = self._find_site(number)
        return self._sites_seen[number]

    @cached_property
    def _sites(self) -> RecordTable[SiteRecord] | None:
        return self._table("sites", SiteRecord)

    @cached_property
    def _stacks(self) -> RecordTable[StackRecord] | None:
        return self._table("stacks", StackRecord)

    @cached_property
    def _sites_seen(self) -> dict[int, Site]:
        return {}

    @cached_property
    def _stacks_seen(self) -> dict[int, StackRecord]:
        return {}

    @cached_property
    def _traits(self) -> dict[int, tuple[Site | None, _Traits]]:
        """What is known of stacks: at the beginning, of the first ones of which nothing is missing. A stack comes after
        the one that it was called from, so one look at each is enough. Who asks for another one notes what is missing.
        """
        traits: dict[int, tuple[Site | None, _Traits]] = {}
        if self.parent is not None or self._stacks is None:
            return traits
        sites: dict[int, Site | None] = {0: None}  # 0 where a stack is not written yet
        telling: set[int] = set()  # those that may change what is known of the frames around them
        for number, (place, outer, _) in islice(self._stacks.fields(), _STACKS_AT_ONCE):
            if place not in sites:
                sites[place] = site = self._sound_site(place)
                if site and (site.own or site.file == _SITE_MODULE or not site.file.startswith(_FROZEN)):
                    telling.add(place)
            site = sites[place]
            around = traits.get(outer) if outer < number else None
            if site is None or (around is None and outer):
                continue
            found = around[1] if around else _NO_FRAMES[1]
            traits[number] = site, found.around(site) if place in telling else found
        self._sites_seen.update({place: site for place, site in sites.items() if site})
        return traits

    def _traits_of(self, stack: int) -> tuple[Site | None, _Traits]:
        """The innermost site of a stack, and what all of its frames say together; stacks share their outer parts, which
        are looked at once."""
        if (known := self._traits.get(stack)) is not None:
            return known
        inner: list[tuple[int, int]] = []
        while stack and stack not in self._traits and len(inner) < DEEPEST_STACK:
            record = self._find_stack(stack)
            if record is None:
                self._missing("stacks", stack, None)
                stack = 0
                break
            inner.append((stack, record.site))
            if record.outer >= stack:
                self.damages.add(f"{self.place}/stacks", f"stack {stack} is called from {record.outer}")
            stack = record.outer if record.outer < stack else 0
        innermost, found = self._traits.get(stack, _NO_FRAMES)
        for number, place in reversed(inner):
            innermost = self.site(place)
            found = found.around(innermost)
            self._traits[number] = innermost, found
        return innermost, found

    def _stack(self, number: int) -> StackRecord | None:
        if number not in self._stacks_seen:
            found = self._find_stack(number)
            if found is None or not found.site:  # it may still be written
                return found
            if len(self._stacks_seen) >= _KEPT_STACKS:
                self._stacks_seen.clear()
            self._stacks_seen[number] = found
        return self._stacks_seen[number]

    def _find_stack(self, number: int) -> StackRecord | None:
        table = self._with_number(number, lambda process: process._stacks)
        return table.get(number) if table else None

    def _sound_site(self, number: int) -> Site | None:
        """The site, if it is there and all texts that it names, in a process without a parent."""
        record = self._sites.get(number) if self._sites else None
        if record is None or not _is_written(record):
            return None
        file, function, named_by = map(self._sound_string, (record.file, record.function, record.collector))
        if file is None or function is None or named_by is None:
            return None
        return _site(record, file, function, named_by)

    def _find_site(self, number: int) -> Site:
        table = self._with_number(number, lambda process: process._sites)
        record = table.get(number) if table else None
        if record is None or not _is_written(record):
            return self._missing("sites", number, UNKNOWN_SITE)
        return _site(record, *map(self.string, (record.file, record.function, record.collector)))


def _is_written(record: SiteRecord) -> bool:
    """Whether it is a site; room for a later one is all zero. Code that was compiled without a file's name has only a
    function."""
    return bool(record.file or record.function)


def _site(record: SiteRecord, file: str, function: str, named_by: str) -> Site:
    if record.interpreter:
        function += f" (interpreter {record.interpreter})"
    file = file or UNKNOWN
    is_native, name = is_of_object(record, file, function), function if record.line else demangled(function)
    return Site(file, record.line, name, bool(record.own), named_by, is_native)


def is_of_object(record: SiteRecord, file: str, function: str) -> bool:
    """Whether code of a Python program is native: its file is a shared object or has the name of the function."""
    return not record.line and bool(_SHARED_OBJECT.search(file) or file.rpartition("/")[2] == function)
