"""What stands in CPython's own tables: the pointers of functions, types and descriptors, and what dictionaries hold.

For a comparison of a process with itself later. Imported by programs under test, so it has nothing but the standard
library. Where a pointer lies in memory is as in CPython's headers, 3.11 to 3.13, 64 bits.
"""

import ctypes
import gc
import struct
import sys
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType

import audit

WORD = 8
OURS = ("interpose", "pointers", "audit")
# What is before the type in an object; and how many words more than with an interpreter lock.
HEAD = ("-refcount",) if object.__basicsize__ == 2 * WORD else ("-thread", "-bits", "-shared")
MORE = len(HEAD) - 1
# PyTypeObject. What begins with a dash changes by itself: counts, caches, lists of those who refer to it.
TYPE = (
    *HEAD, *("type", "-size", "name", "basicsize", "itemsize", "dealloc", "vectorcall_offset", "getattr"),
    *("setattr", "as_async", "repr", "as_number", "as_sequence", "as_mapping", "hash", "call", "str", "getattro"),
    *("setattro", "as_buffer", "flags", "doc", "traverse", "clear", "richcompare", "weaklistoffset", "iter"),
    *("iternext", "methods", "members", "getset", "base", "dict", "descr_get", "descr_set", "dictoffset", "init"),
    *("alloc", "new", "free", "is_gc", "bases", "mro", "-cache", "-subclasses", "-weaklist", "del", "-version"),
    *("finalize", "vectorcall"),
)
# What differs between two types of the same bases.
OF_ONE_TYPE = {"type", "name", "doc", "members", "getset", "methods", "dict", "bases", "mro", "flags"}
AWAITED = ("coroutine", "coroutine_wrapper", "async_generator", "async_generator_asend", "async_generator_athrow")
SUITES = {"as_async": 4, "as_number": 36, "as_sequence": 10, "as_mapping": 3, "as_buffer": 2}
VERSION_IS_VALID = 1 << 19
VECTORCALL = 15 + MORE + (sys.version_info >= (3, 12)) + (sys.version_info >= (3, 14))  # the word in a Python function
CLASS_METHOD = type(dict.__dict__["fromkeys"])
# The number of words in a callable, of those that do not change by themselves; and of what the first of them points to.
CALLABLES = {
    BuiltinFunctionType: ({"definition": 2 + MORE, "vectorcall": 6 + MORE}, 4),
    MethodDescriptorType: ({"definition": 5 + MORE, "vectorcall": 6 + MORE}, 4),
    CLASS_METHOD: ({"definition": 5 + MORE, "vectorcall": 6 + MORE}, 4),
    GetSetDescriptorType: ({"definition": 5 + MORE}, 5),
    WrapperDescriptorType: ({"base": 5 + MORE, "wrapped": 6 + MORE}, 0),
    FunctionType: ({"type": 1 + MORE, "code": 6 + MORE, "vectorcall": VECTORCALL}, 0),
}


def words(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}Q", ctypes.string_at(address, count * WORD))


def slots(kind: type) -> dict[str, int]:
    """What stands in a type's slots, those of its suites included."""
    found = dict(zip(TYPE, words(id(kind), len(TYPE)), strict=True))
    found = {name: value for name, value in found.items() if not name.startswith("-")}
    found["flags"] &= ~VERSION_IS_VALID
    for suite, count in SUITES.items():
        # A type made at run time has its suites in itself, and each at an address of its own.
        if address := found.pop(suite):
            found |= {f"{suite}[{number}]": value for number, value in enumerate(words(address, count))}
    return found


def sort_of(function: object) -> type:
    """Its type; an interposed function is of one under that of functions."""
    return FunctionType if isinstance(function, FunctionType) else type(function)


def in_callable(function: object) -> dict[str, int]:
    """What stands in a function or descriptor, and in the definition that it is made from."""
    places, count = CALLABLES[sort_of(function)]
    found = {name: words(id(function) + place * WORD, 1)[0] for name, place in places.items()}
    defined = words(found["definition"], count) if count else ()
    return found | {f"definition[{number}]": value for number, value in enumerate(defined)}


def types() -> list[type]:
    """All types that there are, but for ours."""
    found: dict[int, type] = {}
    waiting: list[type] = [object]
    while waiting:
        kind = waiting.pop()
        if id(kind) not in found:
            found[id(kind)] = kind
            waiting += type.__subclasses__(kind)
    return [kind for kind in found.values() if not is_ours(kind)]


def callables() -> list[object]:
    """All functions and descriptors that are to be found, but for ours."""
    objects = [*gc.get_objects(), *(each for kind in types() for each in dictionary(kind).values())]
    found = {id(each): each for each in objects if sort_of(each) in CALLABLES}
    return [each for each in found.values() if not is_ours(each) and not is_ours(getattr(each, "__objclass__", None))]


def is_ours(what: object) -> bool:
    """Whether it is of our modules, which know how they are made, a type that Cython made for them, one that coroutines
    are of while they are suspended, or that of interposed functions."""
    if isinstance(what, type) and what is not FunctionType and issubclass(what, FunctionType):
        return True
    if isinstance(what, type) and what.__base__ and what.__name__ == what.__base__.__name__ in AWAITED:
        return True
    places = [getattr(what, "__module__", None)]
    if isinstance(what, type):
        places.append(ctypes.string_at(words(id(what), len(TYPE))[TYPE.index("name")]).decode())
    tops = [place.partition(".")[0] for place in places if isinstance(place, str)]
    return any(top in OURS or top.startswith("_cython_") for top in tops)


def dictionary(kind: type) -> dict[str, object]:
    return dict(type.__getattribute__(kind, "__dict__"))


def dictionaries() -> dict[str, dict[str, object]]:
    """What types and modules hold: of types everything, of modules what can be called."""
    found = {
        f"module {name}": {key: value for key, value in vars(module).items() if callable(value)}
        for name, module in sys.modules.items()
        if name.partition(".")[0] not in (*OURS, "__main__") and hasattr(module, "__dict__")
    }
    found |= {f"type {kind.__module__}.{kind.__qualname__} {id(kind):#x}": dictionary(kind) for kind in types()}
    return found


class Snapshot:
    """How it was. What it speaks of is kept alive: no address is used for something else meanwhile."""

    def __init__(self) -> None:
        self.types = [(kind, slots(kind)) for kind in types()]
        self.callables = [(function, in_callable(function)) for function in callables()]
        self.dictionaries = dictionaries()

    def changes(self) -> list[str]:
        """What is not as it was, each in a line."""
        found = [f"{kind}: {name}" for kind, was in self.types for name in differing(was, slots(kind))]
        found += [f"{each!r}: {name}" for each, was in self.callables for name in differing(was, in_callable(each))]
        now = dictionaries()
        for owner, was in self.dictionaries.items():
            found += [f"{owner}: {name}" for name in differing(was, now.get(owner, was))]
        return found


def differing(was: dict, now: dict) -> list[str]:
    """The names under which there is not the very same."""
    return [name for name in {**was, **now} if not same(was.get(name), now.get(name))]


def same(one: object, other: object) -> bool:
    return one == other if type(one) is type(other) is int else one is other


def differing_slots(kind: type, other: type) -> list[str]:
    """The slots that two types of the same bases do not share."""
    return [name for name in differing(slots(kind), slots(other)) if name not in OF_ONE_TYPE]


def pointing_at_us() -> list[str]:
    """What of CPython's and everybody's points into our libraries."""
    ours = [(begin, end) for begin, end, path in audit.maps() if "/interpose/" in path and path.endswith(".so")]
    tables = [(kind, slots(kind)) for kind in types()] + [(each, in_callable(each)) for each in callables()]
    return [
        f"{what!r}: {name}"
        for what, pointers in tables
        for name, value in pointers.items()
        if any(begin <= value < end for begin, end in ours)
    ]
