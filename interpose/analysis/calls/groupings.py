"""What rows can be grouped by, and the row that a consolidated record belongs to."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from interpose.analysis.calls.rows import START_UP, Row
from interpose.analysis.calls.statements import DATABASE, with_statements
from interpose.analysis.recording.lineage import MULTIPROCESSING_CHILD, main_of, script_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.sources import normal_path_of
from interpose.experiments.model.stacks import UNKNOWN_SITE
from interpose.kinds import IDLE

_KIND_COMMENTS = {IDLE: "waiting for work", START_UP: "Python's own start"}


@dataclass(frozen=True)
class Grouping:
    """One way to group: the fields of the event that it needs, and the row that a key belongs to. `by_place`: that
    depends on nothing but the intrinsic and what `in_rows` tells of the stack."""

    needs: tuple[str, ...]
    row_of: Callable[[Process, Mapping[str, int]], Row]
    by_place: bool = False

    def likeness(self, process: Process, key: Mapping[str, int]) -> Hashable:
        """What keys with the same row have in common, which is told sooner than the row; None if nothing is, or if
        something is not there, which is noted for each row."""
        if not self.by_place or key["intrinsic"] not in process.numbered_intrinsics:
            return None
        place = process.in_rows(key["stack"])
        return place and (key["intrinsic"], *place)


def _of_kind(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return row_of_kind(START_UP)
    return row_of_kind(process.intrinsic(key["intrinsic"]).kind)


def row_of_kind(kind: str | None) -> Row:
    return Row(kind, None, comment=_KIND_COMMENTS.get(kind or "", ""))


def _of_intrinsic(process: Process, key: Mapping[str, int]) -> Row:
    intrinsic = process.intrinsic(key["intrinsic"])
    return Row(intrinsic.kind, intrinsic.name)


def _of_start_up(process: Process, key: Mapping[str, int]) -> Row:
    return Row(process.intrinsic(key["intrinsic"]).kind, START_UP)


def _of_site(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    row.site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"site": f"{row.site.file}:{row.site.line or UNKNOWN}", "function": row.site.function}
    return row


def _of_function(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"function": site.function, "file": site.file}
    return row


def _of_detail(process: Process, key: Mapping[str, int]) -> Row:
    if process.is_start_up(key["stack"]):
        return _of_start_up(process, key)
    row = _of_intrinsic(process, key)
    row.labels = {"detail": process.string(key["detail"])}
    return row


def _of_what(kind: str, label: str) -> Callable[[Process, Mapping[str, int]], Row]:
    """What gives the row of a statement or a file: those of the `kind` by what they were about, the others by kind."""

    def row_of(process: Process, key: Mapping[str, int]) -> Row:
        intrinsic = process.intrinsic(key["intrinsic"])
        found = intrinsic.kind
        if found != kind or (kind == DATABASE and intrinsic.name not in with_statements(process)):
            return Row(found, None, {label: ""})
        is_start_up = process.is_start_up(key["stack"])
        return Row(found, None, {label: START_UP if is_start_up else process.string(key["detail"])})

    return row_of


def _of_whole(by: str) -> Callable[[Process, Mapping[str, int]], Row]:
    """Returns the row of a thread, or of the process or other unit that it belongs to."""

    def row_of(process: Process, key: Mapping[str, int]) -> Row:
        return Row(_idle_or_none(process, key), None, whole_labels(process, key["thread"], by))

    return row_of


def whole_labels(process: Process, thread: int, by: str) -> dict[str, str]:
    """The labels of the row of a thread, or of the unit that it belongs to."""
    if by == "thread":
        return {"thread": thread_label(process, thread), "process": process_label(process)}
    return {by: _WHOLE_LABELS[by](process)}


def _idle_or_none(process: Process, key: Mapping[str, int]) -> str | None:
    """What waited for work is in a row of its own, of each thread and process too."""
    return IDLE if process.intrinsic(key["intrinsic"]).kind == IDLE else None


def thread_label(process: Process, number: int) -> str:
    """The kernel's number of the thread `number` and, if there is one, its name; `main` of the main one."""
    for thread in process.threads:
        if thread.number == number:
            name = "main" if thread.record.main else process.string(thread.record.name)
            return f"{thread.record.tid} {name}".rstrip()
    return UNKNOWN


def task_label(process: Process, number: int) -> str:
    """The number and the name of a task, if known; empty without a task."""
    return f"{number} {process.task_names.get(number, '')}".rstrip() if number else ""


def process_label(process: Process) -> str:
    """The number of `process` and, of a descendant, its lineage; before it the experiment, where there are several."""
    return f"{process.experiment} {process.log.pid} {process.lineage}".strip()


def experiment_label(process: Process) -> str:
    """The name of the experiment that `process` is in."""
    return process.place.partition("/")[0]


def user_label(process: Process) -> str:
    """The user's name, where the user is of this host; else the number."""
    uid = process.log.user.get("uid", UNKNOWN)
    if process.log.system.get("host") != os.uname().nodename:
        return uid
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError, OverflowError):
        return uid


def terminal_label(process: Process) -> str:
    """The terminal that the process had; `none` where it had none."""
    return process.log.user.get("terminal", UNKNOWN) or "none"


def host_label(process: Process) -> str:
    """The host that the process ran on."""
    return process.log.system.get("host", UNKNOWN)


def program_label(process: Process) -> str:
    """What the process ran: the script, the module with its -m, or -c. A script has one name, however it was given: its
    path, below the directory of the founder from there. A child of multiprocessing runs the program that started it."""
    script, main = script_of(process), main_of(process)
    if script != script_of(main):
        return f"{program_label(main)}{MULTIPROCESSING_CHILD}"
    if not script or script.startswith("-") or not process.log.cwd:
        return script or process.log.executable or UNKNOWN
    founder = process
    while founder.starter:
        founder = founder.starter
    return normal_path_of(process, script).removeprefix(founder.log.cwd.rstrip("/") + "/")


_WHOLE_LABELS = {
    "program": program_label,
    "process": process_label,
    "experiment": experiment_label,
    "user": user_label,
    "terminal": terminal_label,
    "host": host_label,
}
WHOLES = ("thread", *_WHOLE_LABELS)
COUNTED = ("kind", "intrinsic")


GROUPINGS = {
    "kind": Grouping(("intrinsic", "stack"), _of_kind, by_place=True),
    "intrinsic": Grouping(("intrinsic",), _of_intrinsic),
    "site": Grouping(("intrinsic", "stack"), _of_site, by_place=True),
    "function": Grouping(("intrinsic", "stack"), _of_function, by_place=True),
    "detail": Grouping(("intrinsic", "stack", "detail"), _of_detail),
    "statement": Grouping(("intrinsic", "stack", "detail"), _of_what(DATABASE, "statement")),
    "file": Grouping(("intrinsic", "stack", "detail"), _of_what("file", "file")),
    **{by: Grouping(("intrinsic",), _of_whole(by)) for by in WHOLES},
}
