"""Combines what was seen to run by source file, over the processes and contexts of an experiment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass, field

from interpose.analysis.coverage.conditions import is_expression
from interpose.experiments.format.covered import Code, Covered, Point
from interpose.experiments.format.traces import Function, read_stretches
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import is_dynamic, path_of

# Functions that libraries make from text, under the name of one of their files or of none.
_MADE = re.compile(r"(?:^|\.)__create_fn__(?:\.|$)")

MAIN = "__main__"
_WHOLE = "<module>"  # the function that a module's code is


@dataclass
class Seen:
    """What was seen of a source: `known` are the places of its code that ran, each executed or not.

    `executed` has the executed ones, by context; `jumps` the branches, from and to where, and whether they were taken.
    `counts` is how often each line was executed, if lines were counted. `modules` counts its code objects by the module
    whose globals they use.
    """

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


class Gathering:
    """What the processes of one experiment saw of the wanted files; what ran only in unwanted contexts counts as not
    executed.

    Line trace counts lines, without contexts. If it alone saw a file, an executed line stands for all statements on it.
    """

    def __init__(self, wants_context: Callable[[str], bool], wants_file: Callable[[str], bool]) -> None:
        self.files: dict[str, tuple[Process, str, Seen]] = {}
        self.codes = 0
        self.in_context = 0  # of these code objects, those in wanted contexts
        self.from_lines = False
        self.made: dict[str, Made] = {}  # by module; what `__main__` made by its file, if it has one
        self._mains: dict[Process | None, str] = {}
        self._wants_context = wants_context
        self._wants_file = wants_file

    def add(self, process: Process) -> int:
        """Add what a process saw; gives for how many code objects it had no room."""
        covered = Covered(process)
        self._mains[process] = _main_file(process, covered) or self._mains.get(process.parent, "")
        of_code = {id(code): self._seen_of(process, code) for code in covered.codes.values()}
        self.codes += len(covered.codes)
        self.in_context += sum(self._wants_context(code.context) for code in covered.codes.values())
        for code, point, was_executed in covered.places():
            was_executed = was_executed and self._wants_context(code.context)
            if seen := of_code[id(code)]:
                if point.line:
                    seen.add(code, point, was_executed)
            elif is_made(code):
                self._add_made(process, code, point.line, was_executed)
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
        _, _, seen = self.files.setdefault(path, (process, function.file, Seen()))
        for line in function.lines:
            seen.counts[line.line] += line.executed
        if is_covered:
            return
        self.codes += 1
        self.in_context += 1
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
        _, _, seen = self.files.setdefault(path, (process, code.file, Seen()))
        seen.modules[code.module] += 1
        seen.has_columns &= bool(code.record.has_columns)
        return seen

    def _add_made(self, process: Process, code: Code, line: int, was_executed: bool) -> None:
        maker = self._mains[process] if code.module == MAIN else ""
        made = self.made.setdefault(maker or code.module, Made())
        key = code.file, code.function, code.record.first_line, line
        made.known.add(key)
        if was_executed:
            made.executed.add(key)


def _main_file(process: Process, covered: Covered) -> str:
    """The source of the program that a process ran as its main module; empty if nothing of one ran."""
    codes = [code for code in covered.codes.values() if code.module == MAIN and not is_dynamic(code.file)]
    codes.sort(key=lambda code: code.function != _WHOLE)
    return path_of(process, codes[0].file) if codes else ""


def is_made(code: Code) -> bool:
    """Whether a code object was made from text at run time: it has no file, or is a method of a dataclass."""
    return is_dynamic(code.file) or _MADE.search(code.function) is not None
