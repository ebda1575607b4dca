"""The document map.xml: intrinsics by number, libraries, data collectors, and what failed in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BytesIO

from interpose.errors import ExperimentError
from interpose.experiments.format.elements import (
    LARGEST_XML_BYTES,
    Attributes,
    integer,
    parse_elements,
    read_elements,
)
from interpose.experiments.metadata.describe import element
from interpose.experiments.model.files import Damages, open_plain

_LINE, _ONCE_LINE = "line", "1"  # as `terminal` has it, and as it had it up to version 3
KINDS_AT_MOST = 8
COLLECTORS_AT_MOST = IDENTIFIERS_AT_MOST = 64
LAST_INTRINSIC = 2**32 - 1
_LARGEST_KNOWN_BYTES = 1 << 18
_UNKNOWN = "?"
_KINDS = re.compile(r"[a-z]{1,16}(?: [a-z]{1,16})*")


@dataclass(frozen=True)
class Intrinsic:
    """A call that is timed: its dotted name, and its kind (db, file, net ...).

    `moves` is what its events count: `bytes` or `rows`. `by` is how it was interposed, `why_not` the reason if it was
    not. `library` is the library that has it, declared at `place` for `target`, and `passes_on` what its wrapper calls.
    `transaction`: a call `is` one, or `continues` that of another thread; or one `begins` or `ends` with it.
    `terminal`: its calls of the kind screen wait for a user, until a `line` is entered or for `keys`. `passed_over`:
    calls with that number are transactions that were not sampled; calls that are `always` recorded were recorded in
    these, too.
    """

    name: str
    kind: str
    by: str = field(default="", compare=False)
    why_not: str = field(default="", compare=False)
    library: str = field(default="", compare=False)
    passes_on: str = field(default="", compare=False)
    target: str = field(default="", compare=False)
    place: str = field(default="", compare=False)
    transaction: str = field(default="", compare=False)
    terminal: str = field(default="", compare=False)
    moves: str = field(default="bytes", compare=False)
    passed_over: bool = field(default=False, compare=False)
    always: bool = field(default=False, compare=False)

    @property
    def continues_transaction(self) -> bool:
        """Whether its calls are parts of transactions of other threads."""
        return self.transaction == "continues"

    @property
    def is_transaction(self) -> bool:
        """Whether its calls are transactions, or parts of them in other threads."""
        return self.transaction == "is" or self.continues_transaction


class Intrinsics(dict[int, Intrinsic]):
    """The intrinsics of a map by number. Processes with equal maps share one that nobody changes, so what follows from
    it can be kept by it: as a key it stands for itself alone."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


@dataclass(frozen=True)
class Library:
    """A library: its file, and why it was not used, with the line."""

    name: str
    path: str = ""
    why_not: str = ""
    place: str = ""


@dataclass(frozen=True)
class Collector:
    """A data collector that was used: its file, when and for which programs it was called, and its identifier."""

    name: str
    path: str
    per: str
    programs: str
    identifiers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """What went wrong in a library's wrapper of a target, or in a data collector, at which line; the program's call was
    made all the same."""

    library: str
    target: str
    place: str
    why: str


def read_map(path: str, place: str, damages: Damages) -> Intrinsics:
    """The intrinsics in the map.xml at `path`, by number.

    An intrinsic with calls of several kinds has as many numbers, beginning with its own. A later entry replaces an
    earlier one of the same number; a number claimed by two other entries belongs to the first.
    """
    try:
        with open(open_plain(path), "rb") as file:
            data = file.read(LARGEST_XML_BYTES + 1)
    except OSError as error:
        damages.add(place, error.strerror or "cannot be read")
        return Intrinsics()
    known = _sound(data) if len(data) <= _LARGEST_KNOWN_BYTES else None
    return known if known is not None else _parsed(data, place, damages)


@lru_cache(maxsize=16)
def _sound(data: bytes) -> Intrinsics | None:
    """The intrinsics of a file without damage, which all runs of a program have alike; None if it is damaged."""
    damages = Damages()
    try:
        found = _parsed(data, "", damages)
    except ExperimentError:
        return None
    return None if damages.found else found


def _parsed(data: bytes, place: str, damages: Damages) -> Intrinsics:
    reader = _MapReader(place, damages)
    parse_elements(BytesIO(data), place, damages, reader.begin, lambda text: None, lambda name: None)
    return reader.intrinsics


def _read_entries(path: str, begin: Callable[[str, Attributes], None]) -> None:
    """Tell `begin` of each entry; that the file cannot be read is noted where the intrinsics are read."""
    with suppress(OSError):
        read_elements(path, path, Damages(), begin, lambda text: None, lambda name: None)


def read_libraries(path: str) -> tuple[list[Library], list[Failure]]:
    """The libraries in the map.xml at `path`, with unused data collectors and failures of both; damaged entries are
    ignored."""
    libraries: list[Library] = []
    failures: list[Failure] = []

    def begin(element: str, attributes: Attributes) -> None:
        what = {name: attributes.get(name, "") for name in ("path", "place", "why", "target", "library")}
        if element == "library":
            why_not = (what["why"] or _UNKNOWN) if attributes.get("used") == "0" else ""
            libraries.append(Library(attributes.get("name", _UNKNOWN), what["path"], why_not, what["place"]))
        elif element == "collector" and attributes.get("used") == "0":
            name, why_not = attributes.get("name", _UNKNOWN), what["why"] or _UNKNOWN
            libraries.append(Library(name, what["path"], why_not, what["place"]))
        elif element == "failure":
            failures.append(Failure(what["library"], what["target"], what["place"], what["why"]))

    _read_entries(path, begin)
    return libraries, failures


def read_collectors(path: str) -> list[Collector]:
    """The data collectors that the map.xml at `path` names as used; damaged entries are ignored."""
    found: dict[str, Collector] = {}

    def begin(element: str, attributes: Attributes) -> None:
        name, identifier = attributes.get("name", _UNKNOWN), attributes.get("identifier", "")
        if element != "collector":
            return
        if attributes.get("used") == "1" and len(found) < COLLECTORS_AT_MOST:
            path, per, programs = (attributes.get(each, "") for each in ("path", "per", "programs"))
            found[name] = Collector(name, path, per, programs)
        elif identifier and name in found:
            known = found[name]
            found[name] = replace(known, identifiers=(*known.identifiers, identifier)[:IDENTIFIERS_AT_MOST])

    _read_entries(path, begin)
    return list(found.values())


def _intrinsic(name: str, kind: str, why_not: str, attributes: Attributes, passed_over: bool) -> Intrinsic:
    names = ("by", "library", "passes_on", "target", "place", "transaction")
    texts = {each: attributes.get(each, "") for each in names}
    moves, terminal = attributes.get("moves", "bytes"), attributes.get("terminal", "")
    waits_for = _LINE if terminal == _ONCE_LINE else terminal
    always = attributes.get("always") == "1"
    return Intrinsic(
        name, kind, why_not=why_not, moves=moves, terminal=waits_for, passed_over=passed_over, always=always, **texts
    )


class _MapReader:
    """Gathers the intrinsics from the elements of a map.xml."""

    def __init__(self, place: str, damages: Damages) -> None:
        self.intrinsics = Intrinsics()
        self._begins: dict[int, int] = {}  # the number of the entry that each number is of
        self._place = place
        self._damages = damages

    def begin(self, element: str, attributes: Attributes) -> None:
        number = integer(attributes.get("number", "")) if element == "intrinsic" else None
        if not number:
            return
        name = attributes.get("name", _UNKNOWN)
        kinds = self._kinds(number, attributes)
        if number < 0 or number + len(kinds) - 1 > LAST_INTRINSIC:
            self._damages.add(self._place, f"no intrinsic can have the number {number}")
            return
        self._forget(number)
        why_not = attributes.get("why", _UNKNOWN) if attributes.get("installed") == "0" else ""
        for mine, kind in enumerate(kinds, number):
            if mine in self.intrinsics:
                self._damages.add(self._place, f"number {mine} is of two intrinsics")
            else:
                is_last = mine == number + len(kinds) - 1
                passed_over = is_last and len(kinds) > 1 and attributes.get("sampled") == "1"
                self.intrinsics[mine] = _intrinsic(name, kind, why_not, attributes, passed_over)
                self._begins[mine] = number

    def _forget(self, number: int) -> None:
        """Give back the numbers of an earlier entry for `number`."""
        for mine in range(number, number + KINDS_AT_MOST):
            if self._begins.get(mine) == number:
                del self.intrinsics[mine], self._begins[mine]

    def _kinds(self, number: int, attributes: Attributes) -> list[str]:
        """The kind for each number of an entry; its single kind if it does not list several correctly."""
        kind, several = attributes.get("kind", _UNKNOWN), attributes.get("kinds")
        if several is None:
            return [kind]
        kinds = several.split(" ", KINDS_AT_MOST)
        if len(kinds) > KINDS_AT_MOST or not _KINDS.fullmatch(several) or kind not in (kinds[0], _UNKNOWN):
            self._damages.add(self._place, f"the kinds of intrinsic {number} are not a list of kinds")
            return [kind]
        return kinds


def map_document(intrinsics: Iterable[Intrinsic]) -> bytes:
    """The map.xml of these intrinsics, which get numbers from 1 on; all of them are installed."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<map>"]
    for number, each in enumerate(intrinsics, 1):
        told = {name: value for name in _TOLD if (value := getattr(each, name))}
        moves = {"moves": each.moves} if each.moves != "bytes" else {}
        about = {"number": number, "name": each.name, "kind": each.kind, "installed": 1, **told, **moves}
        lines.append(element("intrinsic", 1, **about))
    return "\n".join([*lines, "</map>", ""]).encode()


_TOLD = ("by", "library", "passes_on", "target", "place", "transaction", "terminal")
