"""Messages of Protocol Buffers as bytes, field by field (protobuf.dev, "Encoding")."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_BITS = 0xFFFFFFFFFFFFFFFF


def varint(number: int) -> bytes:
    """A number of up to 64 bits in groups of seven, the lowest first; a negative one as its two's complement."""
    number &= _BITS
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """A field of one number."""
    return varint(field << 3 | _VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    """A field of a floating-point number."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def fixed64(field: int, value: int) -> bytes:
    """A field of a number of 64 bits that is not packed."""
    return varint(field << 3 | _FIXED64) + (value & _BITS).to_bytes(8, "little")


def text(field: int, value: str) -> bytes:
    """A field of text."""
    return message(field, value.encode("utf-8", "replace"))


def message(field: int, *parts: bytes) -> bytes:
    """A field that holds bytes, or the fields of a message."""
    return varint(field << 3 | _LENGTH) + varint(sum(map(len, parts))) + b"".join(parts)


def numbers(field: int, values: Iterable[int]) -> bytes:
    """A field of several numbers, packed."""
    return message(field, *map(varint, values))
