"""What can be counted of each thread beside its time: the one list.

The traced program imports this only where a counter is requested, so it imports next to nothing.
"""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "INTERPOSE_COUNTERS"


class Counter:
    """A counter: what it counts, and where it is read: from a `source` of cext/sampler/counters.h with its `config`.

    `usage` names the fields of the overview that count the same for the whole process, if any.
    """

    __slots__ = ("config", "meaning", "source", "usage")

    def __init__(self, meaning: str, source: str, config: int, *usage: str) -> None:
        self.meaning = meaning
        self.source = source
        self.config = config
        self.usage = usage


_FAULTS = ("minor_faults", "major_faults")
_SWITCHES = ("voluntary_switches", "involuntary_switches")
COUNTERS = {
    "faults": Counter("page faults", "faults", 3, *_FAULTS),
    "minor_faults": Counter("page faults without input", "faults", 1, _FAULTS[0]),
    "major_faults": Counter("page faults with input", "faults", 2, _FAULTS[1]),
    "switches": Counter("context switches", "switches", 3, *_SWITCHES),
    "voluntary_switches": Counter("the thread waited and gave up the processor", "switches", 1, _SWITCHES[0]),
    "involuntary_switches": Counter("the processor was taken from the thread", "switches", 2, _SWITCHES[1]),
    "migrations": Counter("moves to another processor", "software", 4),
    "cycles": Counter("processor cycles", "hardware", 0),
    "instructions": Counter("instructions executed", "hardware", 1),
    "cache_references": Counter("accesses to the last cache", "hardware", 2),
    "cache_misses": Counter("accesses that the last cache did not serve", "hardware", 3),
    "branches": Counter("branch instructions", "hardware", 4),
    "branch_misses": Counter("mispredicted branches", "hardware", 5),
}


def parse_counters(text: str) -> tuple[str, ...]:
    """The counters of a comma list, each once, with `-` for `_` as well; none for `off`. Raises ValueError."""
    if text == "off":
        return ()
    if not text.strip(" ,"):
        raise ValueError(f"no counter is named: write some of {', '.join(COUNTERS)}, or off for none")
    words = [word.strip().replace("-", "_") for word in text.split(",")]
    names = tuple(dict.fromkeys(filter(None, words)))
    for name in names:
        if name not in COUNTERS:
            raise ValueError(f"no counter is called {name!r}{_meant(name)}")
    return names


def counters_of(settings: "Mapping[str, str]") -> tuple[str, ...]:
    """The counters that the settings of an experiment request; none if they mean nothing."""
    try:
        return parse_counters(settings.get(SETTING, "off"))
    except ValueError:
        return ()


def why_not(error: int) -> str:
    """Why a counter is not read, from the error number."""
    if error in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this machine has no such counter"
    if error in (errno.EACCES, errno.EPERM):
        return "the kernel does not permit it (kernel.perf_event_paranoid)"
    if error == errno.EBUSY:
        return "the processor's counters are in use"
    return "too many threads for the monitor's files" if error == errno.EMFILE else os.strerror(error)


def _meant(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COUNTERS, 1)
    return f". Did you mean {near[0]}?" if near else f"; there are {', '.join(COUNTERS)}"
