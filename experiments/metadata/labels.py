"""Labels: names for windows of time in an experiment, in labels.xml of the founder.

A label has marks, `start` and `stop`, which may be put in any order. In the order of their times a start begins a
window and the next stop ends it; a start within a window and a stop outside of one mean nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from interpose.errors import ExperimentError
from interpose.experiments.format.elements import Attributes, read_elements
from interpose.experiments.metadata.creating import replacing
from interpose.experiments.model.files import Damages

LABELS = "labels.xml"
ACTIONS = ("start", "stop")
MARKS_AT_MOST = 10_000
FOR_EVER_NS = (1 << 64) - 1
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
# What filters call other things (`interpose events --filter help`).
RESERVED = {
    *("all", "none", "start", "stop", "kind", "intrinsic", "site", "function", "detail", "thread", "process"),
    *("experiment", "user", "terminal", "host", "error", "state", "call", "parent", "depth", "bytes", "wall", "cpu"),
    *("wait", "end", "rows", "pid", "task", "file", "line", "stack", "label", "transaction"),
    *("in", "some", "ordered", "leaf", "fname", "func", "help"),
}


class Mark(NamedTuple):
    """A mark of the label `name`, at an instant of the founder's monotonic clock."""

    name: str
    action: str
    time_ns: int
    comment: str = ""


class Window(NamedTuple):
    """From an instant to another, which is not in it any more."""

    start_ns: int
    stop_ns: int


Pair = tuple[Mark, Mark | None]  # that begin and end a window; one that was never stopped has no end


def why_not(name: str) -> str | None:
    """Why `name` cannot be a label; None if it can."""
    if not _NAME.fullmatch(name):
        return "a label is a letter, then letters and digits, at most 64"
    return "filters have that name for something else" if name.lower() in RESERVED else None


def read_marks(directory: str, place: str, damages: Damages) -> list[Mark]:
    """The marks in the founder's directory; invalid ones are ignored and noted."""
    marks: list[Mark] = []
    place = f"{place}/{LABELS}"

    def begin(element: str, attributes: Attributes) -> None:
        if element != "mark":
            return
        mark = _mark(attributes)
        if mark is None:
            damages.add(place, "a mark that is none")
        elif len(marks) == MARKS_AT_MOST:
            damages.add(place, f"more than {MARKS_AT_MOST:,} marks, the rest was not read")
        else:
            marks.append(mark)

    try:
        read_elements(os.path.join(directory, LABELS), place, damages, begin, lambda text: None, lambda name: None)
    except FileNotFoundError:
        pass
    except (OSError, ExperimentError) as error:
        damages.add(place, (getattr(error, "strerror", None) or str(error)).removeprefix(f"{place}: "))
    return marks


def _mark(attributes: Attributes) -> Mark | None:
    name, action, time_ns = (attributes.get(key, "") for key in ("name", "action", "time_ns"))
    # Labels of before a name was reserved are read.
    if not _NAME.fullmatch(name) or action not in ACTIONS or not re.fullmatch("[0-9]{1,19}", time_ns):
        return None
    return Mark(name.lower(), action, int(time_ns), attributes.get("comment", ""))


def write_marks(directory: str, marks: Iterable[Mark]) -> None:
    """Replace the marks of the experiment, at once for all readers. Raises OSError."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<labels>"]
    for mark in marks:
        comment = f' comment="{_escaped(mark.comment)}"' if mark.comment else ""
        lines.append(f'  <mark name="{mark.name}" action="{mark.action}" time_ns="{mark.time_ns}"{comment}/>')
    with replacing(os.path.join(directory, LABELS)) as file:
        file.write("\n".join([*lines, "</labels>", ""]).encode())


def _escaped(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    for letter, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(letter, written)
    return shown.encode("utf-8", "replace").decode()


def windows(marks: Iterable[Mark], name: str) -> list[Window]:
    """The windows of the label `name`, in any case of letters; one that was never stopped has no end."""
    ends = [(start.time_ns, stop.time_ns if stop else FOR_EVER_NS) for start, stop in pairs(marks, name)]
    return [Window(*each) for each in ends]


def pairs(marks: Iterable[Mark], name: str) -> list[Pair]:
    """The marks that begin the windows of the label `name`, each with the one that ends it, if any does."""
    found: list[Pair] = []
    begun: Mark | None = None
    of_label = (mark for mark in marks if mark.name == name.lower())
    for mark in sorted(of_label, key=lambda mark: mark.time_ns):
        if mark.action == "start" and begun is None:
            begun = mark
        elif mark.action == "stop" and begun is not None:
            found.append((begun, mark))
            begun = None
    return found if begun is None else [*found, (begun, None)]


def is_in(label: Iterable[Window], time_ns: int) -> bool:
    """Whether the instant is in one of the windows."""
    return any(window.start_ns <= time_ns < window.stop_ns for window in label)
