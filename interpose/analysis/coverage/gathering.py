"""Combines what was seen to run by source file, over processes, experiments and contexts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from interpose.analysis.coverage.conditions import is_expression
from interpose.experiments.format.covered import Code, Covered, Point
from interpose.experiments.format.traces import Function, read_stretches
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import Sought, Sources, is_dynamic, path_of

# Functions that libraries make from text, under the name of one of their files or of none.
_MADE = re.compile(r"(?:^|\.)__create_fn__(?:\.|$)")

_BRANCHES = "INTERPOSE_BRANCHES"


@dataclass
class Seen:
    """What was seen of a source: `known` are the places of its code that ran, each executed or not.

    `executed` has the executed ones, by context; `jumps` the branches, from and to where, and whether they were taken.
    `counts` is how often each line was executed, if lines were counted. `modules` counts its code objects by the module
    whose globals they use.
    """

    process: Process
    modules: Counter[str] = field(default_factory=Counter)
    has_columns: bool = True
    known: set[Point] = field(default_factory=set)
    executed: dict[str, set[Point]] = field(default_factory=dict)
    jumps: dict[tuple[Point, Point | None], bool] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)

    def add(self, code: Code, point: Point, was_executed: bool) -> None:
        """Add a place of one of its code objects."""
        self.known.add(point)
        if was_executed:
            self.executed.setdefault(code.context, set()).add(point)

    def merge(self, other: Seen) -> None:
        """Add what was seen of the same text elsewhere."""
        self.modules.update(other.modules)
        self.has_columns &= other.has_columns
        self.known |= other.known
        self.counts.update(other.counts)
        for context, points in other.executed.items():
            self.executed.setdefault(context, set()).update(points)
        for jump, was_gone in other.jumps.items():
            self.jumps[jump] = self.jumps.get(jump, False) or was_gone


@dataclass
class Made:
    """Code that was made from text at run time, of one module: its lines that are known and those that were executed,
    each as file, function, line of the function's beginning and line."""

    known: set[tuple[str, str, int, int]] = field(default_factory=set)
    executed: set[tuple[str, str, int, int]] = field(default_factory=set)


@dataclass
class File:
    """A source file of the program: its path, what was seen of it, and its text or why it is missing."""

    path: str
    seen: Seen
    sought: Sought


@dataclass
class Gathered:
    """What was recorded: files by path, generated code by module, remarks, the number of code objects, whether there
    are branches, and whether some files were seen by line trace alone."""

    files: dict[str, File] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    codes: int = 0
    with_branches: bool = False
    from_lines: bool = False


def gather(experiment: Experiment, wants_context: Callable[[str], bool], wants_file: Callable[[str], bool]) -> Gathered:
    """What was recorded of the wanted files; what ran only in unwanted contexts counts as not executed.

    Line trace counts lines, without contexts. If it alone saw a file, an executed line stands for all statements on it.

    If the text of a file differs between experiments, only the latest text counts.
    """
    gathered, left_out = Gathered(), 0
    for each in reversed(_by_age(experiment)):
        sources, found = Sources(each), _Found(wants_context, wants_file, gathered.made)
        for process in each.processes:
            left_out += found.add(process)
        gathered.codes += found.codes
        gathered.from_lines |= found.from_lines
        gathered.with_branches |= any(seen.jumps for _, seen in found.files.values())
        for path, (file, seen) in found.files.items():
            _join(gathered, File(path, seen, sources.sought(seen.process, file)), each.name)
    gathered.with_branches |= any(each.log.settings.get(_BRANCHES) == "1" for each in experiment.processes)
    if left_out:
        gathered.notes.append(f"incomplete: for {left_out:,} code objects there was no room")
    what = ("coverage", "lines") if gathered.from_lines else ("coverage",)
    missed = [why for each in experiment.processes for one in what for why in each.log.missed(one)]
    gathered.notes += [f"not recorded: {why}" for why in dict.fromkeys(missed)]
    return gathered


def _by_age(experiment: Experiment) -> Sequence[Experiment]:
    several = experiment.experiments if isinstance(experiment, Collection) else [experiment]
    return sorted(several, key=lambda each: each.founder.log.time_ns)


def _join(gathered: Gathered, file: File, experiment: str) -> None:
    there = gathered.files.setdefault(file.path, file)
    if there is file:
        return
    ours, theirs = file.sought.source, there.sought.source
    if (ours and ours.text) != (theirs and theirs.text):
        why = "another text" if ours and theirs else "not known whether it was the same text"
        gathered.notes.append(f"{file.path}: {why} in {experiment}, which is left out")
    else:
        there.seen.merge(file.seen)


class _Found:
    """What the processes of one experiment saw."""

    def __init__(
        self, wants_context: Callable[[str], bool], wants_file: Callable[[str], bool], made: dict[str, Made]
    ) -> None:
        self.files: dict[str, tuple[str, Seen]] = {}
        self.codes = 0
        self.from_lines = False
        self._made = made
        self._wants_context = wants_context
        self._wants_file = wants_file

    def add(self, process: Process) -> int:
        """Add what a process saw; gives for how many code objects it had no room."""
        covered = Covered(process)
        of_code = {id(code): self._seen_of(process, code) for code in covered.codes.values()}
        self.codes += len(covered.codes)
        for code, point, was_executed in covered.places():
            was_executed = was_executed and self._wants_context(code.context)
            if seen := of_code[id(code)]:
                if point.line:
                    seen.add(code, point, was_executed)
            elif is_made(code):
                self._add_made(code, point.line, was_executed)
        for code, jump in covered.jumps():
            seen = of_code[id(code)]
            if seen and not (jump.target is None and is_expression(code.function)):
                was_gone = jump.was_gone and self._wants_context(code.context)
                key = jump.origin, jump.target
                seen.jumps[key] = seen.jumps.get(key, False) or was_gone
        if not self._wants_context(""):
            return covered.left_out
        files = {path_of(process, code.file) for code in covered.codes.values()}
        return covered.left_out + self._add_lines(process, files)

    def _add_lines(self, process: Process, covered: Set[str]) -> int:
        """Add what line trace counted, `covered` are files that coverage saw; gives for how many functions it had no
        room."""
        left_out = 0
        for stretch in read_stretches(process):
            left_out += stretch.record.left_out
            for function in stretch.functions:
                path = path_of(process, function.file)
                if not (function.is_outside or is_dynamic(function.file)) and self._wants_file(path):
                    self._count(process, path, function, is_covered=path in covered)
        return left_out

    def _count(self, process: Process, path: str, function: Function, is_covered: bool) -> None:
        _, seen = self.files.setdefault(path, (function.file, Seen(process)))
        for line in function.lines:
            seen.counts[line.line] += line.executed
        if is_covered:
            return
        self.codes += 1
        self.from_lines = True
        seen.modules[function.module] += 1
        executed = (Point(line.line, 0) for line in function.lines if line.executed)
        seen.executed.setdefault("", set()).update(executed)

    def _seen_of(self, process: Process, code: Code) -> Seen | None:
        if is_made(code):
            return None
        path = path_of(process, code.file)
        if not self._wants_file(path):
            return None
        _, seen = self.files.setdefault(path, (code.file, Seen(process)))
        seen.modules[code.module] += 1
        seen.has_columns &= bool(code.record.has_columns)
        return seen

    def _add_made(self, code: Code, line: int, was_executed: bool) -> None:
        made = self._made.setdefault(code.module, Made())
        key = code.file, code.function, code.record.first_line, line
        made.known.add(key)
        if was_executed:
            made.executed.add(key)


def is_made(code: Code) -> bool:
    """Whether a code object was made from text at run time: it has no file, or is a method of a dataclass."""
    return is_dynamic(code.file) or _MADE.search(code.function) is not None
