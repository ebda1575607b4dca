"""Control files: keywords of the Natural Profiler (Software AG), and their meaning here.

    FUNCTION=INIT       /* begins a session, which records nothing until START
    SAMPLING=ON
    INTERVAL=4800       /* microseconds of CPU time
    FUNCTION=FILTER
    FILTER=EVENT
    EVENT=D,IB,IA
    FUNCTION=START
    END-PROFILER

There can be several such blocks. Mistakes are reported with file and line, and everything else is applied. The traced
program imports this module if it starts with INTERPOSE_CONTROL, so it imports next to nothing.
"""

from __future__ import annotations

import os
import stat

from interpose.config import filters
from interpose.legacy.codes import STATEMENT, codes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_BYTES = 1 << 16
TOLD_AT_MOST = 20  # how many mistakes are listed
END = "END-PROFILER"
SWITCH = ("ON", "OFF")
PROCESSING = ("CONSOLIDATE", "READ", "MASHZONE", "LIST", "DELETE")
KEYS = {
    "INIT": ("RESOURCE", "SAMPLING", "INTERVAL", "CONSOLIDATE", "COVERAGE"),
    "FILTER": (
        "FILTER",
        "EVENT",
        "STATEMENT",
        "FNAT",
        "LIBRARY",
        "PROGRAM",
        "FUNCTION-NAME",
        "WITHIN",
        "LINE",
        "SKIP",
        "COUNT",
        "FROM",
        "TO",
        "TRANSACTION",
        "THREAD",
        "PROCESS",
    ),
    "START": (),
    "PAUSE": (),
    **dict.fromkeys(PROCESSING, ("RESOURCE",)),
}
SORTS = ("EVENT", "PROGRAM", "LIBRARY", "LINE", "COUNT", "TIME", "TRANSACTION", "THREAD", "PROCESS", "OFF")
# Which word of a filter a keyword stands for.
CLAUSES = {
    "WITHIN": "within",
    "FUNCTION-NAME": "function",
    "LINE": "line",
    "SKIP": "skip",
    "COUNT": "keep",
    "FROM": "from",
    "TO": "to",
    "TRANSACTION": "transaction",
    "THREAD": "thread",
    "PROCESS": "process",
}


class Step:
    """A function of a control file, with its keywords: their values, and the lines that say them."""

    __slots__ = ("keys", "name", "place")

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place
        self.keys: dict[str, tuple[str, str]] = {}

    def value(self, key: str) -> str:
        """The value of a keyword, nothing if it is not given."""
        return self.keys.get(key, ("", ""))[0]


def read(path: str) -> tuple[list[Step], list[str]]:
    """The steps of the control file at `path`, and its mistakes, a line each. Raises OSError, ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, LARGEST_BYTES + 1)
        is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
    if not is_plain:
        raise ValueError(f"{path}: is not a regular file")
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"{path}: is longer than {LARGEST_BYTES:,} bytes")
    return parse(data.decode("utf-8", "replace"), path)


def parse(text: str, path: str) -> tuple[list[Step], list[str]]:
    """The same, of the text itself."""
    steps: list[Step] = []
    wrong: list[str] = []
    step: Step | None = None
    for number, line in enumerate(text.splitlines(), 1):
        line, place = line.partition("/*")[0].strip(), f"{path}:{number}"
        key, equals, value = (part.strip() for part in line.partition("="))
        key = key.upper()
        if not line or line.startswith("*"):
            continue
        if line.upper() == END:
            step = None
        elif not equals:
            wrong.append(f"{place}: {_shown(line)} is not KEYWORD=VALUE or {END}")
        elif key == "FUNCTION":
            step = _begin(value.upper(), place, steps, wrong)
        elif step is None:
            wrong.append(f"{place}: {_shown(key)} stands before any FUNCTION")
        elif why := _why_not(step.name, key, value):
            wrong.append(f"{place}: {why}")
        else:
            step.keys[key] = (value, place)
    if step is not None:
        wrong.append(f"{path}: {END} is missing at the end")
    if len(wrong) > TOLD_AT_MOST:
        wrong[TOLD_AT_MOST - 1 :] = [f"{path}: {len(wrong) - TOLD_AT_MOST + 1} more lines mean nothing"]
    return steps, wrong


def _begin(name, place, steps, wrong):
    if name not in KEYS:
        wrong.append(f"{place}: FUNCTION={_shown(name)} is not one of {', '.join(KEYS)}")
        return Step("?", place)
    steps.append(Step(name, place))
    return steps[-1]


def _why_not(function, key, value):
    """What is wrong with a keyword of a function; empty if nothing is."""
    known = KEYS.get(function, (key,))
    if key not in known:
        return f"{_shown(key)} is not a keyword of {function}"
    if function == "FILTER" and ";" in value:
        return f"{key}={_shown(value)} has a ; in it"
    if key in ("SAMPLING", "COVERAGE", "STATEMENT", "FNAT", "CONSOLIDATE") and value.upper() not in SWITCH:
        return f"{key}={_shown(value)} is not ON or OFF"
    if key == "INTERVAL" and not (value.isascii() and value.isdigit() and len(value) < 13 and int(value)):
        return f"INTERVAL={_shown(value)} is not a number of microseconds"
    if key == "FILTER" and value.upper() not in SORTS:
        return f"FILTER={_shown(value)} is not one of {', '.join(SORTS)}"
    return ""


def _shown(text):
    return "".join([letter if letter.isprintable() else "?" for letter in text[:60]])


def filter_of(steps: Sequence[Step]) -> tuple[str, list[str]]:
    """The FILTER functions as one INTERPOSE_FILTER, and their mistakes, a line each. A later clause replaces an earlier
    one of the same sort."""
    clauses: dict[str, str] = {}
    wrong: list[str] = []
    for step in steps:
        if step.name != "FILTER":
            continue
        if step.value("FILTER").upper() == "OFF":
            clauses.clear()
        for word, said in _clauses(step):
            try:
                filters.parse(f"{word}={said}")
            except ValueError as error:
                wrong.append(f"{step.place}: {error}")
            else:
                clauses[word] = said
    return "; ".join([f"{word}={said}" for word, said in clauses.items()]), wrong


def _clauses(step):
    codes = [word.strip().upper() for word in step.value("EVENT").split(",") if word.strip()]
    if codes and "ALL" not in codes:
        yield "event", ",".join(codes)
    library, program = step.value("LIBRARY"), step.value("PROGRAM")
    if program:
        yield "module", f"{library}.{program}" if library else program
    elif library:
        yield "package", library
    for key, word in CLAUSES.items():
        if step.value(key):
            yield word, step.value(key)


def _is_of_statements(word):
    return any(code.intrinsic == STATEMENT for code in codes_of(word.strip()))


def settings_of(steps: Sequence[Step], record: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that a control file sets when a program starts, and its mistakes, a line each. `record` is what
    INTERPOSE asks for without it. A session that begins with INIT is paused until START."""
    text, wrong = filter_of(steps)
    found = {"INTERPOSE_FILTER": text} if text else {}
    recorded = [word for word in record if word]
    for step in steps:
        if step.name in PROCESSING:
            wrong.append(f"{step.place}: {step.name} is done by interpose control --file, when the program has ended")
        if step.name in ("INIT", "PAUSE", "START"):
            found["INTERPOSE_PAUSED"] = "0" if step.name == "START" else "1"
        if step.value("SAMPLING").upper() == "ON" and not step.value("INTERVAL"):
            wrong.append(f"{step.place}: SAMPLING=ON needs an INTERVAL")
        if step.value("INTERVAL") and step.value("SAMPLING").upper() != "OFF":
            found["INTERPOSE_INTERVAL"] = f"{int(step.value('INTERVAL'))}us"
        if step.value("CONSOLIDATE").upper() == "ON":
            found["INTERPOSE_CONSOLIDATE"] = "1"
        if step.value("COVERAGE").upper() == "ON":
            recorded.append("coverage")
        events = step.value("EVENT").upper().split(",")
        if any(map(_is_of_statements, events)):
            found["INTERPOSE_STATEMENTS"] = "1"
            recorded += ["calls", "lines"]
        elif step.value("STATEMENT").upper() == "ON":
            recorded.append("lines")
    if recorded != list(record):
        found["INTERPOSE"] = ",".join(dict.fromkeys(recorded))
    return found, wrong
