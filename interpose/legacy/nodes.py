"""Line trace as GT.M stores it: nodes of a global, by module, function and line.

    ^g(routine,label)                            count:time of the function, without what it called
    ^g(routine,label,offset)                     the same of a line; 0 is the line where the function begins
    ^g(routine,label,offset,"FOR_LOOP",level)    entries into the body of a loop on that line
    ^g("*RUN"), ^g("*CHILDREN")                  user:system:total of the process and of its children

Counts are as one reads a program (`entered`), times in microseconds: CPU time alone, or `user:system:total:elapsed`
where user and system time were asked for (YottaDB, VIEW "TRACE").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from interpose.analysis.lines.line_rows import INCOMPLETE, Figures, Run, Trace, line_trace, targets
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

Subscript = str | int
_NAME = re.compile(r"\^(%?[A-Za-z][A-Za-z0-9]{0,30}|%)")
_SUBSCRIPT = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(-?(?:0|[1-9][0-9]{0,17}))|(\$J(?:OB)?))\s*(,|\))', re.IGNORECASE)


class _Job:
    """What `$JOB` is parsed to."""


_JOB = _Job()


@dataclass(frozen=True)
class Node:
    """A node of a global: its name without the circumflex, its subscripts, its value."""

    name: str
    subscripts: tuple[Subscript, ...]
    value: str


@dataclass(frozen=True)
class Target:
    """A global with the subscripts under which nodes go; `$JOB` among these stands for each process's number."""

    name: str
    subscripts: tuple[Subscript | _Job, ...]

    @property
    def is_by_process(self) -> bool:
        """Whether each process has nodes of its own."""
        return _JOB in self.subscripts

    def under(self, pid: int) -> tuple[Subscript, ...]:
        """The subscripts, for one process."""
        return tuple(pid if isinstance(each, _Job) else each for each in self.subscripts)


def parse_target(text: str) -> Target:
    """The global in `text`: `^lvtr`, `^lvtr("MYTRACE",$J)`. Raises UsageError if it is none."""
    found = _NAME.match(text)
    if not found:
        raise UsageError(f"{text}: not a global like ^lvtr or ^lvtr(\"MYTRACE\",$J)")
    name, place = found[1], found.end()
    subscripts: list[Subscript | _Job] = []
    if text[place : place + 1] == "(":
        place, end = place + 1, ","
        while end == ",":
            each = _SUBSCRIPT.match(text, place)
            if not each:
                raise UsageError(f"{text}: column {place + 1}: a subscript is a text in quotes, a number or $JOB")
            subscripts.append(_subscript(each))
            place, end = each.end(), each[4]
    if text[place:].strip():
        raise UsageError(f"{text}: column {place + 1}: nothing goes there")
    return Target(name, tuple(subscripts))


def _subscript(found: re.Match[str]) -> Subscript | _Job:
    if found[1] is not None:
        return found[1].replace('""', '"')
    return int(found[2]) if found[2] is not None else _JOB


def nodes(experiment: Experiment, target: str = "") -> Iterator[Node]:
    """The nodes of all that was traced, under `target`; where that is empty, of each stretch under the one that the
    program gave. Raises UsageError if that is no global, or the program gave none."""
    given = [target] if target else targets(experiment)
    if not given:
        raise UsageError("--global: the program named none (interpose.trace_lines(to=...)); say which")
    for text in given:
        parsed = parse_target(text)
        stretch = None if target else text
        if not parsed.is_by_process:
            yield from _nodes(line_trace(experiment, target=stretch), parsed.name, parsed.under(0))
            continue
        for process in experiment.processes:
            yield from _nodes(line_trace(_Alone(process), target=stretch), parsed.name, parsed.under(process.log.pid))


class _Alone(Experiment):
    """One process of an experiment, read as if it were all of it."""

    def __init__(self, process: Process) -> None:
        self.processes = [process]


def _nodes(trace: Trace, name: str, under: tuple[Subscript, ...]) -> Iterator[Node]:
    if not trace.threads:
        return
    for function in trace.functions:
        place = (*under, function.place.module, function.place.function)
        yield Node(name, place, _value(function.figures))
    for line in trace.lines:
        offset = max(line.line - line.place.first_line, 0)
        place = (*under, line.place.module, line.place.function, offset)
        if line.figures.entered or line.figures.executed:
            yield Node(name, place, _value(line.figures))
        for level, passes in line.loops.items():
            if passes:
                yield Node(name, (*place, "FOR_LOOP", level), str(passes))
    mark = f":{INCOMPLETE}" if trace.beyond else ""
    yield Node(name, (*under, "*RUN"), _run(trace.run) + mark)
    yield Node(name, (*under, "*CHILDREN"), _run(trace.children))


def _us(ns: int) -> int:
    return max(ns, 0) // 1000


def _value(figures: Figures) -> str:
    if figures.system_ns is None:
        return f"{figures.entered}:{_us(figures.self_cpu_ns)}"
    user, system = _us(figures.user_ns or 0), _us(figures.system_ns)
    return f"{figures.entered}:{user}:{system}:{user + system}:{_us(figures.self_wall_ns)}"


def _run(run: Run) -> str:
    user, system = _us(run.user_ns), _us(run.system_ns)
    return f"{user}:{system}:{user + system}"
