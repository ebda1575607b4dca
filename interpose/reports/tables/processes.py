"""The processes of an experiment as a table: a tree for people, a row for each with its parent for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from interpose.analysis.recording.life import is_start_known
from interpose.analysis.recording.lineage import Node, program_of, why_not
from interpose.analysis.recording.used import used_by
from interpose.experiments.format.children import Child
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import SECOND_NS, duration, scale_for, size
from interpose.reports.screen.state import command_line, ending_in_words

FOUNDER = "founder"
HOW = {1: "fork", 2: "exec", 3: "spawn", 4: "system"}
LETTERS = {"f": "fork", "x": "exec", "c": "other"}
COUNTED = ("system_ns", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
USAGE = (*COUNTED, "read_bytes", "written_bytes", "is_usage_exact", "is_memory_at_most")
NAMES = (
    "lineage",
    "parent",
    "depth",
    "how",
    "pid",
    "start_ns",
    "duration_ns",
    "state",
    "status",
    "signal",
    "command",
    "followed",
    "why",
    "cpu_ns",
    "memory_bytes",
    "site",
    "function",
    *USAGE,
)

Row = tuple[int, Node]


def processes_table(rows: Iterable[Row], founder: Process) -> Table:
    """The table of the processes `rows`, each with its depth in the tree, in the order in which they are given."""
    start_ns, rows = founder.log.start_ns, list(rows)
    places = Places([site.file for _, node in rows if (site := _site(node))], founder.log.cwd)
    columns = [
        Column("process", lambda row: "  " * row[0] + _name(row[1]), right=False),
        Column("pid", lambda row: str(row[1].pid or "")),
        Column("began after", lambda row: f"{(row[1].start_ns - start_ns) / SECOND_NS:,.3f} s"),
        Column("duration", lambda row: _duration(row[1])),
        Column("CPU", lambda row: _cpu(row[1])),
        Column("memory", lambda row: _memory(row[1]), optional=True),
        Column("in kernel", lambda row: _told(row[1], lambda child: duration(child.record.system_ns)), optional=True),
        Column("faults", lambda row: _told(row[1], _faults), optional=True),
        Column("read", lambda row: _told(row[1], lambda child: size(child.read_bytes)), optional=True),
        Column("written", lambda row: _told(row[1], lambda child: _written(row[1], child)), optional=True),
        Column("status", lambda row: ending_in_words(row[1].ending), right=False),
        Column("command", lambda row: clean(_command_in_short(row[1])), right=False, flexible=True),
        Column("started at", lambda row: _where(row[1], places), right=False, optional=True),
    ]
    if any(_why(node) for _, node in rows):
        columns.append(Column("not followed", lambda row: clean(_why(row[1])), right=False, flexible=True))
    return Table(NAMES, _values, columns, rows, shown=places.shown)


def _name(node: Node) -> str:
    return (node.process.lineage or FOUNDER) if node.is_followed else "-"


def _command(node: Node) -> str:
    return program_of(node.child, node.process) if node.child else command_line(node.process)


def _command_in_short(node: Node) -> str:
    """A program that has no experiment, whose arguments are not known, without its directory."""
    command = _command(node)
    return command.rpartition("/")[2] or command if node.child else command


def _why(node: Node) -> str:
    return why_not(node.child, node.process) if node.child else ""


def _duration(node: Node) -> str:
    lasted_ns = max(node.last_ns - node.start_ns, 0)
    shown = scale_for(lasted_ns).show(lasted_ns)
    if node.end_ns is None:
        return "" if node.child else f"at least {shown}"
    is_exact = node.child or not node.process.lineage or is_start_known(node.process)
    return shown if is_exact else f"~{shown}"


def _started(node: Node) -> Child | None:
    """What its starter noted of it."""
    return node.child or node.process.started_as


def _site(node: Node) -> Site | None:
    """The line that it was started from."""
    started, starter = _started(node), node.process if node.child else node.process.starter
    return starter.own_line(started.record.stack) if started and starter and started.record.stack else None


def _cpu(node: Node) -> str:
    measured = used_by(node)
    return duration(measured.record.cpu_ns) if measured else ""


def _memory(node: Node) -> str:
    used = used_by(node)
    if not used or not used.memory_bytes:
        return ""
    return f"{'<= ' if used.is_memory_at_most else ''}{size(used.memory_bytes)}"


def _told(node: Node, figure: Callable[[Child], str]) -> str:
    """A figure that older experiments do not have."""
    measured = used_by(node)
    return figure(measured) if measured and measured.record.usage else ""


def _written(node: Node, child: Child) -> str:
    """What it wrote; that of a recorded process contains interpose's own files of it."""
    return f"{'~' if node.is_followed and child.written_bytes else ''}{size(child.written_bytes)}"


def _faults(child: Child) -> str:
    return f"{child.record.minor_faults + child.record.major_faults:,}"


def _where(node: Node, places: Places) -> str:
    site = _site(node)
    return clean(places.named(site)) if site else ""


def _how(node: Node) -> str:
    if node.child:
        return HOW.get(node.child.record.how, "")
    return LETTERS.get(node.process.lineage.rpartition("_")[2][:1], "")


def _values(row: Row) -> Values:
    depth, node = row
    end = node.ending
    starter = node.process if node.child else node.process.starter
    measured, site = used_by(node), _site(node)
    known: dict[str, Any] = {
        "lineage": node.process.lineage if node.is_followed else None,
        "parent": starter.lineage if starter else None,
        "depth": depth,
        "how": _how(node),
        "pid": node.pid or None,
        "start_ns": node.start_ns,
        "duration_ns": None if node.end_ns is None else max(node.end_ns - node.start_ns, 0),
        "state": end.state,
        "status": end.status if end.state == "exit" else None,
        "signal": end.signal if end.state == "killed" else None,
        "command": _command(node),
        "followed": node.is_followed,
        "why": _why(node) or None,
        "cpu_ns": measured.record.cpu_ns if measured else None,
        "memory_bytes": measured.memory_bytes or None if measured else None,
        "site": f"{site.file}:{site.line}" if site else None,
        "function": site.function if site else None,
        **_usage(measured),
    }
    return known


def _usage(child: Child | None) -> dict[str, Any]:
    if child is None or not child.record.usage:
        return dict.fromkeys(USAGE)
    counted = {name: getattr(child.record, name) for name in COUNTED}
    moved = {"read_bytes": child.read_bytes, "written_bytes": child.written_bytes}
    return {**counted, **moved, "is_usage_exact": child.is_exact, "is_memory_at_most": child.is_memory_at_most}
