"""Values of analyses as JSON, and back: what is read is checked against the types that it must have.

Dataclasses and named tuples become lists of their fields in order, mappings lists of pairs. Nothing is executed, and no
type is named in the text: the reader knows what it wants.
"""

from __future__ import annotations

import json
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from interpose.analysis.consolidation.histogram import Histogram
from interpose.errors import Caught
from interpose.experiments.format.consolidated import BUCKETS

Value = TypeVar("Value")
LARGEST = 2**127  # sums of times do not come near
_PLAIN = (int, float, str, bool, type(None))


class NotThis(Caught):
    """The text is not one of a value of that type."""


class _Coder(NamedTuple):
    """How values of a type become JSON and are made from it."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def packed(value: Any, kind: Any) -> bytes:
    """`value`, which is of the type `kind`, as JSON."""
    return json.dumps(_coder(kind).pack(value), separators=(",", ":"), ensure_ascii=True).encode()


def unpacked(text: bytes, kind: Callable[..., Value]) -> Value:
    """The value of the type `kind` that `text` holds. Raises NotThis."""
    try:
        found: Value = _coder(kind).unpack(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise NotThis(str(error)) from error
    return found


@cache
def _coder(kind: Any) -> _Coder:
    if kind in _PLAIN:
        return _plain(kind)
    if kind is Histogram:
        return _histogram()
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return _record(tuple, lambda value: value, [_coder(each) for each in inner])
    if origin in _MANY:
        return _many(_MANY[origin], _coder(inner[0]))
    if origin in (dict, Mapping, Counter):
        return _mapping(origin, _coder(inner[0]), _coder(inner[1]) if len(inner) > 1 else _coder(int))
    return _record(_maker(kind), _reader(kind), [_coder(each) for each in _types_of(kind)])


_MANY: dict[Any, Callable[[Any], Any]] = {
    list: list,
    Sequence: list,
    tuple: tuple,
    set: set,
    AbstractSet: frozenset,
    frozenset: frozenset,
}


def _plain(kind: type) -> _Coder:
    """Of numbers, texts and truth values: themselves. A number without a fraction is also one with."""

    def unpack(given: Any) -> Any:
        if type(given) is kind:
            if type(given) is int and not -LARGEST < given < LARGEST:
                raise NotThis("a number that no sum reaches")
            return given
        if kind is float and type(given) is int:
            return float(given)
        raise NotThis(f"{type(given).__name__} instead of {kind.__name__}")

    return _Coder(_itself, unpack)


def _itself(value: Any) -> Any:
    return value


def _optional(inner: tuple[Any, ...]) -> _Coder:
    (kind,) = (each for each in inner if each is not type(None))
    pack, unpack = _coder(kind)
    return _Coder(
        lambda value: None if value is None else pack(value), lambda given: None if given is None else unpack(given)
    )


def _many(make: Callable[[Any], Any], inner: _Coder) -> _Coder:
    pack, unpack = inner
    return _Coder(lambda value: [pack(each) for each in value], lambda given: make(map(unpack, _list(given))))


def _mapping(kind: Any, key: _Coder, value: _Coder) -> _Coder:
    make: Callable[[Any], Any] = Counter if kind is Counter else dict

    def unpack(given: Any) -> Any:
        return make({key.unpack(name): value.unpack(each) for name, each in map(_pair, _list(given))})

    return _Coder(lambda found: [[key.pack(name), value.pack(each)] for name, each in found.items()], unpack)


def _record(make: Callable[[Any], Any], read: Callable[[Any], Sequence[Any]], inner: Sequence[_Coder]) -> _Coder:
    """Of something with a fixed number of parts; numbers and texts among them are checked at once."""
    packed_otherwise = [(place, each.pack) for place, each in enumerate(inner) if each.pack is not _itself]
    alike = {kind: [place for place, each in enumerate(inner) if each is _coder(kind)] for kind in (int, str)}
    at_once = [(kind, itemgetter(*places)) for kind, places in alike.items() if len(places) > 1]
    checked = {place for places in alike.values() if len(places) > 1 for place in places}
    others = [(place, each.unpack) for place, each in enumerate(inner) if place not in checked]

    def pack(value: Any) -> list[Any]:
        parts = [*read(value)]
        for place, pack in packed_otherwise:
            parts[place] = pack(parts[place])
        return parts

    def unpack(given: Any) -> Any:
        parts = _list(given)[:]
        if len(parts) != len(inner):
            raise NotThis("a record of another length")
        for kind, pick in at_once:
            _check_all(kind, pick(parts))
        for place, unpack in others:
            parts[place] = unpack(parts[place])
        return make(parts)

    return _Coder(pack, unpack)


def _check_all(kind: type, given: Sequence[Any]) -> None:
    if {*map(type, given)} != {kind} or (kind is int and not -LARGEST < min(given) <= max(given) < LARGEST):
        raise NotThis(f"something else than {kind.__name__}")


def _histogram() -> _Coder:
    """Of a histogram, whose buckets must be those of times of 64 bits."""
    pack, unpack = _mapping(dict, _coder(int), _coder(int))

    def checked(given: Any) -> Histogram:
        counts = unpack(given)
        if not all(0 <= bucket < BUCKETS for bucket in counts):
            raise NotThis("a bucket that is none")
        return Histogram(counts)

    return _Coder(lambda value: pack(value.counts), checked)


def _types_of(kind: Any) -> list[Any]:
    hints = get_type_hints(kind)
    return [hints[name] for name in _names_of(kind)]


def _names_of(kind: Any) -> Sequence[str]:
    if is_dataclass(kind):
        return [each.name for each in fields(kind)]
    names: Sequence[str] = kind._fields
    return names


def _maker(kind: Any) -> Callable[[Any], Any]:
    return lambda parts: kind(*parts)


def _reader(kind: Any) -> Callable[[Any], Sequence[Any]]:
    names = _names_of(kind)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _list(given: Any) -> list[Any]:
    if type(given) is not list:
        raise NotThis(f"{type(given).__name__} instead of a list")
    return given


def _pair(given: Any) -> list[Any]:
    if len(_list(given)) != 2:
        raise NotThis("a pair of another length")
    return _list(given)
