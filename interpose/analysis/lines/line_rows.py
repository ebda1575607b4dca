"""How often each line ran, and how long it took: the rows of line trace, and their part of each thread's time.

In some versions of Python a comprehension or generator expression has code of its own: its lines belong to the function
around it, and its passes are loops of its line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from interpose.analysis.calls.groupings import task_label, thread_label
from interpose.analysis.lines.event_costs import LEAST_SHARE, held_share, slowness
from interpose.experiments.format.traces import Function, Stretch, read_stretches
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

ESTIMATED_PERCENT = 50
OTHER_PERCENT = 15  # the speed of the processor differs so much from that during calibration
INCOMPLETE = "INCOMPLETE DATA: MAXTRACELEVEL"
_INLINE = re.compile(r"(?:\.<locals>)?\.?<(?:listcomp|setcomp|dictcomp|genexpr)>$")
_Key = tuple[object, ...]


@dataclass(frozen=True)
class Place:
    """A function: its file, its module, its qualified name, and the line where it begins."""

    file: str
    module: str
    function: str
    first_line: int


@dataclass
class Figures:
    """Counts of line trace, with times in nanoseconds. `wall_ns` and `cpu_ns` include called functions, and count
    recursion once. `system_ns` is None if time in the kernel was not requested."""

    executed: int = 0
    entered: int = 0
    self_wall_ns: int = 0
    self_cpu_ns: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    system_ns: int | None = None
    event_ns: int = 0  # taken off the self times for events

    @property
    def user_ns(self) -> int | None:
        """Self CPU time in user mode, where known."""
        return None if self.system_ns is None else self.self_cpu_ns - self.system_ns

    def add_self(self, wall_ns: int, cpu_ns: int, system_ns: int | None) -> None:
        """Add time that passed in it."""
        self.self_wall_ns += wall_ns
        self.self_cpu_ns += cpu_ns
        if system_ns is not None:
            self.system_ns = (self.system_ns or 0) + system_ns

    def include_self(self) -> None:
        """Make inclusive times at least as large as self times: they differ by rounding, or a generator ran elsewhere.
        """
        self.wall_ns = max(self.wall_ns, self.self_wall_ns)
        self.cpu_ns = max(self.cpu_ns, self.self_cpu_ns)

    def add(self, other: Figures) -> None:
        """Add all figures of another."""
        self.executed += other.executed
        self.entered += other.entered
        self.add_self(other.self_wall_ns, other.self_cpu_ns, other.system_ns)
        self.wall_ns += other.wall_ns
        self.cpu_ns += other.cpu_ns
        self.event_ns += other.event_ns


@dataclass
class Line:
    """A line of a function; `loops` are the entries into the bodies of loops on it, by their level from 1."""

    place: Place
    line: int
    figures: Figures = field(default_factory=Figures)
    loops: dict[int, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class FunctionTotal:
    """A function, with the sums of its lines' self times and its own inclusive ones; entered as often as called."""

    place: Place
    figures: Figures = field(default_factory=Figures)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class Whole:
    """A thread while it was traced: its time, the part that recording took, and the time outside of functions."""

    process: Process
    thread: int
    wall_ns: int = 0
    cpu_ns: int = 0
    own_ns: int = 0
    outside: Figures = field(default_factory=Figures)


@dataclass
class Run:
    """CPU time of a process, or of its children, while it was traced."""

    user_ns: int = 0
    system_ns: int = 0


@dataclass
class Trace:
    """What line trace tells: lines and functions, the dearest first; threads; `*RUN` and `*CHILDREN`."""

    lines: list[Line]
    functions: list[FunctionTotal]
    threads: list[Whole]
    run: Run
    children: Run
    beyond: int
    depth: int
    left_out: int
    missed: list[str]
    held_percent: int
    slow_percent: int  # time of the same work, in percent of its time during calibration

    @property
    def recorded_percent(self) -> int:
        """How much of the threads' CPU time recording took."""
        cpu_ns = sum(thread.cpu_ns for thread in self.threads)
        return 100 * sum(thread.own_ns for thread in self.threads) // cpu_ns if cpu_ns else 0

    @property
    def is_estimated(self) -> bool:
        """Whether calibration was too high, or does not hold, or recording took so much that its error shows."""
        is_other = abs(self.slow_percent - 100) > OTHER_PERCENT
        return self.recorded_percent >= ESTIMATED_PERCENT or self.held_percent < 100 or is_other

    @property
    def notes(self) -> list[str]:
        """Remarks that precede the figures."""
        said = []
        if self.beyond:
            said.append(f"{INCOMPLETE}: {self.beyond:,} calls were more than {self.depth:,} deep in each other")
        if self.left_out:
            said.append(f"incomplete: for {self.left_out:,} functions there was no room")
        if self.held_percent < 100:
            held = f"{self.held_percent} % of what it gives for events is taken off"
            said.append(f"calibration was too high (a busy machine?): {held}")
        if abs(self.slow_percent - 100) > OTHER_PERCENT:
            took = f"the same work took {self.slow_percent} % of the time that it took during calibration"
            said.append(f"{took} (a busy machine?): the costs of events are scaled by that")
        return said + [f"not traced: {why}" for why in self.missed]


def line_trace(experiment: Experiment, apart: Iterable[str] = (), target: str | None = None) -> Trace:
    """The counts of the lines of all processes, or only of those with the `target`.

    Figures are kept separate by what `apart` names: `process`, `thread` and `task`.
    """
    gathered = _Gathered(tuple(apart))
    for process in experiment.processes:
        stretches = read_stretches(process)
        slow = slowness(stretches)
        held = held_share(stretches, slow)
        gathered.note_costs(held, slow)
        for stretch in stretches:
            if target in (None, stretch.target):
                gathered.add_stretch(process, stretch, held)
    missed = [why for process in experiment.processes for why in process.log.missed("lines")]
    return gathered.trace(missed)


def targets(experiment: Experiment) -> list[str]:
    """The globals that stretches of line trace were meant for."""
    found = [stretch.target for process in experiment.processes for stretch in read_stretches(process)]
    return list(dict.fromkeys(name for name in found if name))


def outermost(function: str) -> tuple[str, int]:
    """The function that a comprehension is a part of, and how many of them it stands in, itself counted."""
    depth = 0
    while found := _INLINE.search(function):
        function = function[: found.start()] or "<module>"
        depth += 1
    return function, depth


class _Gathered:
    """Sums while they are gathered."""

    def __init__(self, apart: tuple[str, ...]) -> None:
        self._apart = apart
        self._lines: dict[_Key, Line] = {}
        self._functions: dict[_Key, FunctionTotal] = {}
        self._threads: dict[_Key, Whole] = {}
        self._run, self._children = Run(), Run()
        self._beyond = self._depth = self._left_out = 0
        self._held = self._slow = 1.0

    def note_costs(self, held: float, slow: float) -> None:
        """Note the share of the costs of events that is subtracted in a process, and that which its speed asks for."""
        self._held = min(self._held, held / slow)
        self._slow = max(self._slow, slow, key=lambda each: abs(each - 1))

    def add_stretch(self, process: Process, stretch: Stretch, held: float) -> None:
        """Add the counts of a period, with this share of the subtracted event costs."""
        record = stretch.record
        self._run.user_ns += record.user_ns
        self._run.system_ns += record.system_ns
        self._children.user_ns += record.children_user_ns
        self._children.system_ns += record.children_system_ns
        self._beyond += record.beyond
        self._depth = max(self._depth, record.depth)
        self._left_out += record.left_out
        levels = _levels(stretch.functions)
        first_lines = _first_lines(stretch.functions)
        for function in stretch.functions:
            if function.is_outside:
                self._add_outside(process, stretch, held, function)
            else:
                self._add_function(process, stretch, held, function, first_lines, levels)

    def trace(self, missed: list[str]) -> Trace:
        self._keep_least()
        self._keep_within_cpu()
        for line in self._lines.values():
            line.figures.include_self()
        for function in self._functions.values():
            function.figures.include_self()
        return Trace(
            lines=sorted(self._lines.values(), key=lambda line: -line.figures.self_cpu_ns),
            functions=sorted(self._functions.values(), key=lambda each: -each.figures.self_cpu_ns),
            threads=list(self._threads.values()),
            run=self._run,
            children=self._children,
            beyond=self._beyond,
            depth=self._depth,
            left_out=self._left_out,
            missed=missed,
            held_percent=int(100 * self._held),
            slow_percent=round(100 * self._slow),
        )

    def _keep_least(self) -> None:
        """Let every line keep a share of its time, whatever its events cost. The other lines of its function then have
        less; if they have too little, recording took the rest."""
        cut_ns = 0
        for key, figures in self._by_function().items():
            before_ns = sum(each.self_wall_ns for each in figures), sum(each.self_cpu_ns for each in figures)
            walls_ns = _lifted([each.self_wall_ns for each in figures], figures)
            cpus_ns = _lifted([each.self_cpu_ns for each in figures], figures)
            for each, wall_ns, cpu_ns in zip(figures, walls_ns, cpus_ns, strict=True):
                each.add_self(wall_ns - each.self_wall_ns, cpu_ns - each.self_cpu_ns, None)
            more_ns = sum(walls_ns) - before_ns[0], sum(cpus_ns) - before_ns[1]
            self._functions[key].figures.add_self(*more_ns, None)
            cut_ns += more_ns[1]
        if cut_ns and self._threads:
            dearest = max(self._threads.values(), key=lambda thread: thread.own_ns)
            dearest.own_ns = max(dearest.own_ns - cut_ns, 0)

    def _keep_within_cpu(self) -> None:
        """Let no line have recording's system time, or more than its CPU time: many kernels count system time in jumps,
        and the line that a jump falls on has what is its neighbours'. A function has the sum of its lines."""
        lines = self._by_function()
        known = [[each for each in figures if each.system_ns is not None] for figures in lines.values()]
        own_ns = sum(thread.own_ns for thread in self._threads.values())
        take_off_own([each for figures in known for each in figures], own_ns)
        spread_system(known)
        for key, figures in lines.items():
            known_ns = [each.system_ns for each in figures if each.system_ns is not None]
            self._functions[key].figures.system_ns = sum(known_ns) if known_ns else None

    def _by_function(self) -> dict[_Key, list[Figures]]:
        lines: dict[_Key, list[Figures]] = defaultdict(list)
        for key, line in self._lines.items():
            lines[key[:-1]].append(line.figures)
        return lines

    def _labels(self, process: Process, function: Function) -> dict[str, str]:
        thread, task = function.record.thread, function.record.task
        labels = {
            "process": lambda: process.lineage or "founder",
            "thread": lambda: thread_label(process, thread) if thread else "others",
            "task": lambda: task_label(process, task),
        }
        return {name: labels[name]() for name in self._apart}

    def _add_outside(self, process: Process, stretch: Stretch, held: float, function: Function) -> None:
        whole = self._threads.setdefault(
            (process.directory, function.record.thread), Whole(process, function.record.thread)
        )
        record = function.record
        whole.wall_ns += stretch.ns(record.ticks)
        whole.cpu_ns += stretch.ns(record.ticks - record.off_ticks)
        whole.own_ns += stretch.ns(record.own_ticks - round((1 - held) * record.event_ticks))
        for line in function.lines:
            ticks = line.ticks + round((1 - held) * line.event_ticks)
            whole.outside.add_self(stretch.ns(ticks), stretch.ns(ticks - line.off_ticks), None)

    def _add_function(
        self,
        process: Process,
        stretch: Stretch,
        held: float,
        function: Function,
        first_lines: dict[tuple[str, str], int],
        levels: dict[tuple[str, str, int], int],
    ) -> None:
        name, depth = outermost(function.name)
        first = first_lines.get((function.file, name), function.record.first_line)
        place = Place(function.file, function.module, name, first)
        labels = self._labels(process, function)
        key = (place, *labels.values())
        total = self._functions.setdefault(key, FunctionTotal(place, labels=labels))
        if depth == 0:
            total.figures.entered += function.record.calls
            total.figures.executed += function.record.calls
            ticks = function.record.ticks + round((1 - held) * function.record.event_ticks)
            total.figures.wall_ns += stretch.ns(ticks)
            total.figures.cpu_ns += stretch.ns(ticks - function.record.off_ticks)
        for index, spot in enumerate(function.lines):
            figures = _figures(stretch, held, function, index, inline=depth > 0)
            line = self._lines.setdefault((*key, spot.line), Line(place, spot.line, labels=labels))
            line.figures.add(figures)
            total.figures.add_self(figures.self_wall_ns, figures.self_cpu_ns, figures.system_ns)
        for loop in function.loops:
            line = self._lines.setdefault((*key, loop.line), Line(place, loop.line, labels=labels))
            level = loop.level + levels.get((function.file, function.name, loop.line), 0)
            line.loops[level] = line.loops.get(level, 0) + loop.passes


def _figures(stretch: Stretch, held: float, function: Function, index: int, inline: bool) -> Figures:
    """The counts at one position of a function. Its beginning, index 0, is entered once per call."""
    spot = function.lines[index]
    entered = function.record.calls if index == 0 else spot.executed - spot.back
    figures = Figures(spot.executed, 0 if inline or _has_no_label(function, index) else entered)
    ticks = spot.ticks + round((1 - held) * spot.event_ticks)
    figures.add_self(
        stretch.ns(ticks), stretch.ns(ticks - spot.off_ticks), spot.system_ns if stretch.record.system else None
    )
    if not inline:  # else the line of the function around called it, and has its time
        inner_ticks = spot.inner_ticks + round((1 - held) * spot.inner_event_ticks)
        figures.wall_ns = figures.self_wall_ns + stretch.ns(inner_ticks)
        figures.cpu_ns = figures.self_cpu_ns + stretch.ns(inner_ticks - spot.inner_off_ticks)
    figures.event_ns = stretch.ns(round(held * spot.event_ticks))
    return figures


def _has_no_label(function: Function, index: int) -> bool:
    """Whether a function has no beginning of its own: a module's code, or a function with its body on the line of its
    header."""
    if index or function.name == "<module>":
        return index == 0
    return any(line.line == function.lines[0].line and line.executed for line in function.lines[1:])


def _first_lines(functions: Iterable[Function]) -> dict[tuple[str, str], int]:
    return {(each.file, each.name): each.record.first_line for each in functions if not each.is_outside}


def _levels(functions: Iterable[Function]) -> dict[tuple[str, str, int], int]:
    """How many loops are around those of a comprehension, in the ones that it stands in, by file, name and line."""
    deepest: dict[tuple[str, str, int], int] = defaultdict(int)
    names = set()
    for function in functions:
        for loop in function.loops:
            key = (function.file, function.name, loop.line)
            deepest[key] = max(deepest[key], loop.level)
            names.add(key)
    return {
        (file, name, line): sum(deepest.get((file, outer, line), 0) for outer in _around(name))
        for file, name, line in names
        if outermost(name)[1] > 1
    }


def _around(name: str) -> Iterator[str]:
    """The comprehensions that one stands in."""
    while found := _INLINE.search(name):
        name = name[: found.start()]
        if _INLINE.search(name):
            yield name


def _lifted(times_ns: list[int], figures: list[Figures]) -> list[int]:
    """The self times of a function's lines, each at least the minimum after event costs are subtracted; for a line that
    ran, at least the clock's resolution."""
    least_ns = [
        max(round(LEAST_SHARE * (time_ns + each.event_ns)) if each.event_ns else 0, int(each.executed > 0))
        for time_ns, each in zip(times_ns, figures, strict=True)
    ]
    return not_below(times_ns, least_ns)


def take_off_own(lines: list[Figures], own_ns: int) -> None:
    """Take off the system time of recording itself, which took `own_ns` for all visits of the lines.

    The kernel counts too coarsely to tell it apart in lines that took less than their recording: all their system time
    is taken to be recording's. The visits of other lines have as much of it as theirs.
    """
    visit_ns = own_ns / max(sum(each.executed for each in lines), 1)
    cheap = [each for each in lines if each.self_cpu_ns < each.executed * visit_ns]
    hidden_ns, visits = sum(each.system_ns or 0 for each in cheap), sum(each.executed for each in cheap)
    system_ns = min(hidden_ns / max(visits, 1), visit_ns)
    for each in lines:
        each.system_ns = max((each.system_ns or 0) - round(each.executed * system_ns), 0)
    for each in cheap:
        each.system_ns = 0


def spread_system(functions: Iterable[list[Figures]]) -> None:
    """Move the part of a line's system time that exceeds its CPU time to the other lines of its function, then to all
    lines, in proportion to their user time. What no line has room for is nobody's."""
    lines: list[Figures] = []
    users_ns: list[int] = []
    beyond_ns = 0
    for figures in functions:
        before_ns = [each.user_ns or 0 for each in figures]
        after_ns = not_below(before_ns, [0] * len(figures))
        beyond_ns += sum(after_ns) - sum(before_ns)
        lines += figures
        users_ns += after_ns
    kept_ns = not_below([*users_ns, -beyond_ns], [0] * (len(lines) + 1))
    for each, user_ns in zip(lines, kept_ns, strict=False):
        each.system_ns = each.self_cpu_ns - user_ns


def not_below(times_ns: list[int], least_ns: list[int]) -> list[int]:
    """The times, none below its least; the others less in proportion to what they have more: of the same sum, unless
    that is below the sum of the least."""
    missing_ns = sum(max(least - time, 0) for time, least in zip(times_ns, least_ns, strict=True))
    spare_ns = [max(time - least, 0) for time, least in zip(times_ns, least_ns, strict=True)]
    there_ns = sum(spare_ns)
    if not missing_ns:
        return times_ns
    if there_ns <= missing_ns:
        return least_ns
    kept_ns = [least + spare - spare * missing_ns // there_ns for spare, least in zip(spare_ns, least_ns, strict=True)]
    kept_ns[spare_ns.index(max(spare_ns))] += sum(times_ns) - sum(kept_ns)
    return kept_ns
