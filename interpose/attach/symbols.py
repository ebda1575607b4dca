"""The addresses of functions in an ELF file, from its symbol tables, including the debuggers' one if it exists."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interpose.errors import Caught

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, the least byte first
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC, _FULL, _LOADED = 11, 2, 1
_TABLES_AT_MOST, _BYTES_AT_MOST = 4096, 1 << 28


class NotELF(Caught):
    """A file is no ELF file of 64 bits, or a damaged one."""


class Symbol(NamedTuple):
    """Where a symbol is, relative to the file's first mapped byte, and how long it is."""

    offset: int
    size_bytes: int


def symbols(path: str, names: Iterable[str]) -> dict[str, Symbol]:
    """Those of `names` that the file at `path` defines. Raises NotELF, OSError."""
    with open(path, "rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise NotELF from None
    with data:
        try:
            return _read(data, [name.encode() for name in names])
        except (struct.error, IndexError, ValueError):
            raise NotELF from None


def _read(data: mmap.mmap, names: list[bytes]) -> dict[str, Symbol]:
    if data[: len(_MAGIC)] != _MAGIC:
        raise NotELF
    base = _first_loaded(data)
    sections = list(_sections(data))
    found: dict[str, Symbol] = {}
    for kind in (_FULL, _DYNAMIC):  # the dynamic one has the last word
        for section in sections:
            if section[1] == kind:
                strings = sections[section[6]]
                found.update(_of_table(data, section[4:6], strings[4:6], names, base))
    return found


def _first_loaded(data: mmap.mmap) -> int:
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        program = _PROGRAM.unpack_from(data, offset + number * size)
        if program[0] == _LOADED:
            return int(program[3] - program[2])
    return 0


def _sections(data: mmap.mmap) -> Iterator[tuple[int, ...]]:
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for number in range(min(count, _TABLES_AT_MOST)):
        yield _SECTION.unpack_from(data, offset + number * size)


def _of_table(
    data: mmap.mmap, table: tuple[int, ...], strings: tuple[int, ...], names: list[bytes], base: int
) -> Iterator[tuple[str, Symbol]]:
    if table[1] > _BYTES_AT_MOST or strings[1] > _BYTES_AT_MOST:
        raise NotELF
    texts = data[strings[0] : strings[0] + strings[1]]
    wanted = {place: name for name in names for place in _places(texts, name + b"\0")}
    entries = data[table[0] : table[0] + table[1] // _SYMBOL.size * _SYMBOL.size]
    for entry in _SYMBOL.iter_unpack(entries):
        if entry[0] in wanted and entry[3] and entry[4]:
            yield wanted[entry[0]].decode(), Symbol(entry[4] - base, entry[5])


def _places(texts: bytes, name: bytes) -> Iterator[int]:
    """Wherever it stands, at the end of a longer name too: linkers let such share their letters."""
    place = texts.find(name)
    while place >= 0:
        yield place
        place = texts.find(name, place + 1)
