"""The level of each intrinsic: whether its calls are timed, counted, or ignored, by the settings."""

from interpose.kinds import IDLE, KINDS, ON_REQUEST

TIME, COUNT, OFF = "time", "count", "off"
LEVELS = (TIME, COUNT, OFF)
KEPT = ("usual", "nothing", "shape", "normalised", "whole")  # as HOW_MUCH in cext/core/detail_levels.h has them
ALL = "all"


def usual_level(kind):
    """The level of a kind by default."""
    return OFF if kind in ON_REQUEST else TIME


def parse_kinds(text):
    """The level of each kind in `db,net=count`; kinds that are not named are off. None for `all` alone. In `all,import`
    it stands for the usual kinds, and what follows takes precedence.

    Raises ValueError for an unknown kind or level.
    """
    if text == ALL:
        return None
    found = dict.fromkeys(KINDS, OFF)
    for word in text.split(","):
        kind, equals, level = (part.strip() for part in word.partition("="))
        if kind not in (ALL, *KINDS):
            raise ValueError(f"{kind!r} is not one of {', '.join((ALL, *KINDS))}")
        named = [each for each in KINDS if each not in ON_REQUEST] if kind == ALL else [kind]
        found.update(dict.fromkeys(named, _level(level) if equals else TIME))
    return found


def names_kind(text, kind):
    """Whether `text`, as INTERPOSE_KINDS has it, says something of the kind by its own name."""
    return kind in [word.partition("=")[0].strip() for word in text.split(",")]


def parse_levels(text):
    """The level of each name in `redis=off,os.stat=count`: names of libraries or intrinsics, or their beginnings.

    Raises ValueError for an unknown level.
    """
    if text == TIME:
        return {}
    found = {}
    for word in text.split(","):
        name, equals, level = (part.strip() for part in word.partition("="))
        if not equals or not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"{word.strip()!r} is not of the form os.stat=count")
        found[name] = _level(level)
    return found


def parse_arguments(text):
    """How much to keep of arguments, a number by kind, from `db=normalised,file=shape`; empty for `usual`.

    Raises ValueError for an unknown kind or word.
    """
    if text == KEPT[0]:
        return {}
    found = {}
    for word in text.split(","):
        kind, equals, kept = (part.strip() for part in word.partition("="))
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join((KEPT[0], *KINDS))}")
        if kept not in KEPT or not equals:
            raise ValueError(f"{kept!r} is not one of {', '.join(KEPT)}")
        found[kind] = KEPT.index(kept)
    return found


def keeps_whole(arguments, kind):
    """Whether values and arguments of a kind are kept, by what `parse_arguments` gave."""
    return arguments.get(kind, 0) == KEPT.index("whole")


def _level(text):
    if text not in LEVELS:
        raise ValueError(f"{text!r} is not one of {', '.join(LEVELS)}")
    return text


def parse_budget(text):
    """Millionths of the CPU time for `2%` or `0.5%`; 0 for `off`. Raises ValueError."""
    if text == OFF:
        return 0
    try:
        share = float(text.removesuffix("%")) if text.endswith("%") and text[:1].isdigit() else -1.0
    except ValueError:
        share = -1.0
    if not 0.01 <= share <= 100:
        raise ValueError("not off or a share such as 2%")
    return round(share * 10_000)


def assign(intrinsics, by_kind, by_name):
    """Set the level of each kind of each intrinsic, and return the intrinsics.

    The longest name that matches an intrinsic's name, or its beginning, overrides its library's, and that overrides its
    kind's. Waiting for work has the level of the intrinsic's first kind. A library's name does not switch on what is
    off by default.
    """
    for intrinsic in (each for first in intrinsics for each in (first, *first.others)):
        named, of_library = _by_name(intrinsic, by_name), _by_library(intrinsic, by_name)
        kinds = [intrinsic.kinds[0] if kind == IDLE else kind for kind in intrinsic.kinds]
        by_itself = [(kind, (by_kind or {}).get(kind, usual_level(kind))) for kind in kinds]
        told = [level if level == usual_level(kind) == OFF else of_library or level for kind, level in by_itself]
        intrinsic.levels = [named or level for level in told]
    return intrinsics


def forbid(intrinsics, kinds):
    """Switch off all calls of `kinds`, whatever was requested, and return all intrinsics."""
    for intrinsic in (each for first in intrinsics for each in (first, *first.others)):
        if any(kind in kinds for kind in intrinsic.kinds):
            intrinsic.levels = [OFF] * len(intrinsic.levels)
    return intrinsics


def _by_name(intrinsic, by_name):
    parts = intrinsic.name.split(".")
    for count in range(len(parts), 0, -1):
        if level := by_name.get(".".join(parts[:count])):
            return level
    return None


def _by_library(intrinsic, by_name):
    found_in, _, library = intrinsic.library.rpartition(":")  # as group:orders
    return by_name.get(library) or by_name.get(found_in)
