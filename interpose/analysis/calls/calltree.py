"""The calls of an experiment as one tree: from `<Total>` through the frames of the program to the recorded calls.

Each node was called by the node above it. A recorded call is below its frames, if its stack was recorded, and these are
below the recorded call that contains it, if any. Figures of a node itself are self times: their sum is the thread time,
and they never overlap. Recorded calls have them and, if the program's code was sampled, its functions: the time between
calls, with estimated CPU and wall times, and the self time of calls that contain Python code.

    <Total>                    all of it
    <Truncated-stack>          calls with unrecorded callers: by default a stack ends with your first line
    <Unknown>                  calls without a recorded stack
    <code>                     time between the calls, of processes that were not sampled
    <overhead>                 what recording cost
    <before-the-ring>          time of calls that newer ones have overwritten
    <paused>                   time when nothing was recorded
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount, Share
from interpose.analysis.calls.chosen import call_of, is_shell
from interpose.analysis.calls.figures import Figures, Vector, figures_of, put
from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.counts import Counted, Seen, counted
from interpose.analysis.profile.profiled import NO_CODE, NOT_SAMPLED, ProcessProfile, profiled, task_frame
from interpose.analysis.profile.weights import Pool
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import UNKNOWN_SITE, Site

NODES_AT_MOST = 1_000_000
MODULE = "<module>"
_BY = ("thread", "intrinsic", "stack")


class Function(NamedTuple):
    """A function of the program or of a library, or an intrinsic.

    `object` is its file, or the module of an intrinsic; `own` if it is your own code. Pseudo-functions such as
    `<Total>` have no object.
    """

    name: str
    object: str = ""
    own: bool = False


class Frame(NamedTuple):
    """A line of a function; 0 if it has none."""

    function: Function
    line: int = 0


TOTAL, TRUNCATED, UNKNOWN, CODE, OVERHEAD, IN_PROGRESS, BEFORE, PAUSED = (
    Function(f"<{name}>")
    for name in ("Total", "Truncated-stack", "Unknown", "code", "overhead", "in-progress", "before-the-ring", "paused")
)


_Path = tuple[int, tuple[Frame, ...]]  # of a thread, from the outermost frame inward


class Node:
    """A frame below others; `own` are the figures of the calls made there, if any."""

    __slots__ = ("frame", "inner", "outer", "own")

    def __init__(self, frame: Frame, outer: Node | None) -> None:
        self.frame = frame
        self.outer = outer
        self.inner: dict[Frame, Node] = {}
        self.own: Vector | None = None


class Tree:
    """A tree of calls; in `nodes` each stands behind the one above it."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.root = Node(Frame(TOTAL), None)
        self.nodes = [self.root]
        self.is_full = False

    def inside(self, outer: Node, frame: Frame) -> Node:
        """The node of `frame` below `outer`; where there are too many, one for all that is too much."""
        found = outer.inner.get(frame)
        if found is None:
            if len(self.nodes) >= NODES_AT_MOST and (outer, frame) != (self.root, Frame(UNKNOWN)):
                self.is_full = True
                return self.inside(self.root, Frame(UNKNOWN))
            found = outer.inner[frame] = Node(frame, outer)
            self.nodes.append(found)
        return found

    def add(self, node: Node, vector: Sequence[int]) -> None:
        """Have that much more at `node`."""
        if node.own is None:
            node.own = self.figures.nothing()
        put(node.own, vector)

    def totals(self) -> dict[Node, Vector]:
        """The figures of each node with all that is below it."""
        found = {node: list(node.own) if node.own else self.figures.nothing() for node in self.nodes}
        for node in reversed(self.nodes):
            if node.outer:
                put(found[node.outer], found[node])
        return found


@dataclass
class Calls:
    """The selected calls: their tree, and the same figures by thread.

    A part of the calls has no rows for time outside calls. `files` are the files of the frames, each with a process
    that names it. `is_sampled` says whether the functions of a process have the time of its code.
    """

    analysis: Analysis
    tree: Tree
    files: dict[str, Process] = field(default_factory=dict)
    threads: dict[tuple[Process, int], Vector] = field(default_factory=dict)
    is_sampled: bool = False


def calls_of(analysis: Analysis, with_tasks: bool = False, with_counts: bool = False) -> Calls:
    """The calls of an analysis. `with_tasks` puts what an asynchronous task or a greenlet ran below its name;
    `with_counts` adds what was counted beside time. Raises UsageError if the task of each call was not kept."""
    experiment = analysis.experiment
    sampled = {each.process: each for each in profiled(analysis).processes}
    made = Calls(analysis, Tree(figures_of(experiment)), is_sampled=bool(sampled))
    for process in experiment.processes:
        planter = _Planter(made, process, sampled.get(process), with_tasks)
        planter.plant(analysis.records(process, (*_BY, "task") if with_tasks else _BY))
        planter.plant_code()
    for each in analysis.accounts:
        _add_shares(made, each, each.process in sampled)
    for counter in counted(analysis) if with_counts else ():
        _add_counts(made, counter)
    if made.tree.is_full:
        experiment.damages.add(experiment.name, f"more than {NODES_AT_MOST:,} call paths: the rest is <Unknown>")
    return made


class _Planter:
    """Puts the calls of one process into the tree."""

    def __init__(self, calls: Calls, process: Process, sampled: ProcessProfile | None, with_tasks: bool) -> None:
        self._sampled = sampled
        self._with_tasks = with_tasks
        self._left: dict[Pool, list[int]] = {}
        for pool, each in sampled.totals() if sampled else ():
            put(self._left.setdefault(pool, [0, 0]), [each.wall_ns, each.cpu_ns])
        self._calls = calls
        self._tree = calls.tree
        self._process = process
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._nodes: dict[tuple[int, str], Node] = {}
        self._called: dict[int, Frame] = {}

    def plant(self, records: Records) -> None:
        """Put all records into the tree, each below the one around it."""
        waiting: list[tuple[Record, Node | None, tuple[Frame, ...]]] = [(each, None, ()) for each in records.roots]
        while waiting:
            record, around, outer_frames = waiting.pop()
            _, intrinsic, stack, *task = record.key
            frames = self._frames(stack)
            if around is None:
                node = self._of_stack(stack, self._task(*task))
            else:
                node = self._below(around, frames, outer_frames)
            is_there = not (self._calls.analysis.is_part and is_shell(intrinsic))
            node = self._tree.inside(node, self._intrinsic(intrinsic if is_there else call_of(intrinsic)))
            if is_there:
                self._add(node, record)
            waiting += [(each, node, frames) for each in record.inner]

    def plant_code(self) -> None:
        """Put the code that was sampled into the tree, each stack below those of its callers."""
        for pool, frames, code in self._code():
            node = self._tree.root
            for site in reversed(frames):
                node = self._tree.inside(node, _frame_of_code(self._calls, self._process, site))
            self._put(node, pool[0], self._tree.figures.of_times(code.wall_ns, code.cpu_ns))

    def _task(self, number: int = 0) -> str:
        return self._process.task_names.get(number, "")

    def _code(self) -> Iterator[tuple[Pool, tuple[Site, ...], Code]]:
        if self._sampled:
            yield from self._sampled.code(lambda frames: frames, with_locks=False, with_tasks=self._with_tasks)

    def _add(self, node: Node, record: Record) -> None:
        thread, intrinsic = record.key[:2]
        sums = record.sums
        left = self._left.get((thread, intrinsic))
        if left:  # its self time is that of the code in it
            wall_ns, cpu_ns = min(left[0], sums.self_wall_ns), min(left[1], sums.self_cpu_ns)
            left[:] = left[0] - wall_ns, left[1] - cpu_ns
            sums = replace(sums, self_wall_ns=sums.self_wall_ns - wall_ns, self_cpu_ns=sums.self_cpu_ns - cpu_ns)
        self._put(node, thread, self._tree.figures.of_calls(self._process.intrinsic(intrinsic).kind, sums))

    def _put(self, node: Node, thread: int, vector: Vector) -> None:
        self._tree.add(node, vector)
        threads = self._calls.threads
        put(threads.setdefault((self._process, thread), self._tree.figures.nothing()), vector)

    def _frames(self, stack: int) -> tuple[Frame, ...]:
        """The frames of a stack, from the innermost outward."""
        found = self._stacks.get(stack)
        if found is None:
            found = self._stacks[stack] = tuple(map(frame_of, self._process.frames(stack)))
            for frame in found:
                if frame.function.object:
                    self._calls.files.setdefault(frame.function.object, self._process)
        return found

    def _of_stack(self, stack: int, task: str) -> Node:
        """The node of the innermost frame of a stack that no recorded call is around, within its task if any."""
        found = self._nodes.get((stack, task))
        if found is None:
            frames = self._frames(stack)
            found = self._tree.inside(self._tree.root, frame_of(task_frame(task))) if task else self._tree.root
            if not frames:
                found = self._tree.inside(found, Frame(UNKNOWN))
            elif _ends_early(frames) or self._process.is_cut(stack):
                found = self._tree.inside(found, Frame(TRUNCATED))
            found = self._nodes[stack, task] = self._below(found, frames, ())
        return found

    def _below(self, node: Node, frames: tuple[Frame, ...], outer_frames: tuple[Frame, ...]) -> Node:
        """The node of the innermost of `frames` below `node`, without frames outside of the surrounding call."""
        for frame in reversed(frames[: _shared_from(frames, outer_frames)]):
            node = self._tree.inside(node, frame)
        return node

    def _intrinsic(self, number: int) -> Frame:
        found = self._called.get(number)
        if found is None:
            found = self._called[number] = _frame_of_intrinsic(self._process, number)
        return found


def _frame_of_intrinsic(process: Process, number: int) -> Frame:
    name = process.intrinsic(number).name
    return Frame(Function(name, name.partition(".")[0]))


def _frame_of_code(calls: Calls, process: Process, site: Site) -> Frame:
    """The frame of sampled code."""
    if site in NO_CODE:
        return Frame(Function(f"<{site.function.replace(' ', '-')}>"))
    if site.file:  # a task has none
        calls.files.setdefault(site.file, process)
    return frame_of(site)


def frame_of(site: Site) -> Frame:
    """The frame that a site is one of."""
    if site == UNKNOWN_SITE:
        return Frame(UNKNOWN)
    return Frame(Function(site.function, site.file, site.own), site.line)


def _ends_early(frames: Sequence[Frame]) -> bool:
    """Whether the stack was cut at the first line of your own code, in a function, which must have a caller. Native
    code has no lines, and its stacks are not cut there."""
    outermost = frames[-1]
    return bool(outermost.line) and outermost.function.own and outermost.function.name != MODULE


def _shared_from(frames: Sequence[Frame], outer: Sequence[Frame]) -> int:
    """From which of `frames` on they are those of the stack of the call around, of which more or less is there."""
    if not outer:
        return len(frames)
    for place in range(len(frames)):
        length = min(len(frames) - place, len(outer))
        if frames[place] == outer[0] and frames[place : place + length] == outer[:length]:
            return place
    return len(frames)


def _add_shares(made: Calls, of: ProcessAccount, is_sampled: bool) -> None:
    """Add time outside calls to the tree and to the threads; for sampled processes, their code."""
    for number, share in of.threads.items():
        for function, wall_ns, cpu_ns in outside_calls(share):
            if not (is_sampled and function is CODE):
                vector = made.tree.figures.of_times(wall_ns, cpu_ns)
                made.tree.add(made.tree.inside(made.tree.root, Frame(function)), vector)
                put(made.threads.setdefault((of.process, number), made.tree.figures.nothing()), vector)


def _add_counts(made: Calls, counter: Counted) -> None:
    """Add what a counter has counted to the tree, below the frames of the samples and the recorded calls in progress,
    and to the threads."""
    process, figures = counter.process, made.tree.figures

    def path_of(frames: tuple[Site, ...], seen: Seen) -> _Path:
        called = (_frame_of_intrinsic(process, seen.intrinsic),) if seen.intrinsic else ()
        return seen.thread, (*(_frame_of_code(made, process, site) for site in reversed(frames)), *called)

    nowhere: _Path = (0, (_frame_of_code(made, process, NOT_SAMPLED),))
    for (thread, path), count in counter.divided(path_of, nowhere).items():
        node = made.tree.root
        for frame in path:
            node = made.tree.inside(node, frame)
        vector = figures.of_counter(counter.name, count.count)
        made.tree.add(node, vector)
        put(made.threads.setdefault((process, thread), figures.nothing()), vector)


def outside_calls(share: Share) -> list[tuple[Function, int, int]]:
    """What there is of a thread's time outside of calls, with its wall and CPU time."""
    found = (
        (CODE, share.program_wall_ns, share.program_cpu_ns),
        (OVERHEAD, share.own_wall_ns, share.own_cpu_ns),
        (IN_PROGRESS, share.open_wall_ns, share.open_cpu_ns),
        (BEFORE, share.before_wall_ns, share.before_cpu_ns),
        (PAUSED, share.paused_wall_ns, share.paused_cpu_ns),
    )
    return [each for each in found if each[1] or each[2]]
