"""What `interpose display` keeps from one command to the next: which experiment, columns, filter, objects, output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import TextIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import TRUNCATED, Calls, Function, Tree, calls_of
from interpose.analysis.calls.chosen import selecting
from interpose.analysis.calls.figures import Metric, Vector, figures_of
from interpose.analysis.calls.folding import ALL, LIBRARY, Folding
from interpose.analysis.calls.functions import by_source_line, object_of
from interpose.analysis.expressions.filters import Filter
from interpose.analysis.lines.code_lines import code_lines
from interpose.cli.output import refuse_within_experiments
from interpose.cli.source_files import SourceFiles
from interpose.errors import InterposeError, UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import Table
from interpose.reports.screen.display import TEXT, write
from interpose.reports.screen.metrics import DEFAULT, Column, Sort, parse_columns, parse_sort
from interpose.reports.screen.source_view import HOT_PERCENT, source_table
from interpose.reports.screen.views import Names, Shown

_ANY_CALL = "1ns"
_CUT = (
    "Inclusive figures of callers are lower bounds, because stacks of short calls end at your first line:"
    f" INTERPOSE_STACK_ABOVE={_ANY_CALL} records whole stacks"
)
_SHOWN = 5
_WITHOUT = {"DEPTH": "not known where calls come in the order of their ends"}


class Session:
    """An experiment, or several read as one, and the settings of its views."""

    def __init__(self, experiment: Experiment, out: TextIO) -> None:
        self.experiment = experiment
        self.metrics: dict[str, Metric] = figures_of(experiment).metrics()
        self.default_columns = parse_columns(DEFAULT, self.metrics)
        self.columns: Sequence[Column] = self.default_columns
        self.default_sort: Sort | None = None
        self._sort: Sort | None = None
        self.limit = 0
        self.hot_percent = HOT_PERCENT
        self.folding = Folding()
        self.mode, self.sign = TEXT, ","
        self.fragment: list[Function] = []
        self.filter = ""
        self.analysis = Analysis(experiment)
        self._known: dict[str, Calls] = {}
        self._standard_out = self._out = out

    # The contents.

    @property
    def sort(self) -> Sort:
        """By what rows are sorted: as was said, else by the first column."""
        return self._sort or self.default_sort or self._by_the_first_column()

    def _by_the_first_column(self) -> Sort:
        for column in self.columns:
            if column.metric:
                return Sort(column.metric, column.flavour)
        return Sort(None)

    def sort_by(self, text: str) -> None:
        """Sort so from now on; by what the default is where it is said. Raises UsageError."""
        self._sort = None if text == "default" else parse_sort(text, self.metrics)

    def show_columns(self, text: str) -> None:
        """Show these columns from now on. Raises UsageError."""
        self.columns = self.default_columns if text == "default" else parse_columns(text, self.metrics)

    def filter_by(self, text: str) -> None:
        """Look at the calls alone for which the expression holds; at all where it is empty. Raises ExpressionError."""
        chosen = Filter(text, self.experiment, without=_WITHOUT) if text else None
        self.filter = text
        self.analysis = Analysis(self.experiment, selecting(chosen.over) if chosen else None)

    # The calls.

    @property
    def calls(self) -> Calls:
        """The selected calls."""
        if self.filter not in self._known:
            self._known = {key: calls for key, calls in self._known.items() if not key}  # all, and those of one filter
            self._known[self.filter] = calls_of(self.analysis, with_counts=True)
        return self._known[self.filter]

    @property
    def tree(self) -> Tree:
        """Their tree, with objects shown as was said."""
        return self.folding.folded(self.calls.tree)

    @property
    def total(self) -> Vector:
        """The figures of all."""
        return self.calls.tree.totals()[self.calls.tree.root]

    def shown(self, tree: Tree) -> Shown:
        """How views of `tree` are shown."""
        part = f"; filter: {self.filter}" if self.filter else ""
        return Shown(self.columns, self.sort, self.limit, self.names_of(tree), part)

    def names_of(self, tree: Tree) -> Names:
        """The names in `tree` as they are shown."""
        return Names((node.frame.function for node in tree.nodes), self.experiment.founder.log.cwd)

    # What a word means.

    def function(self, name: str, number: str = "") -> Function:
        """The function that `name` means, of several the one with that number. Raises UsageError."""
        tree = self.tree
        names = self.names_of(tree)
        there = sorted({node.frame.function for node in tree.nodes})
        found = [each for each in there if name in (each.name, names.function(each))]
        found = found or [each for each in there if each.name.rpartition(".")[2] == name]
        if not found:
            raise UsageError(f"{name}: no such function{_nearest(name, [each.name for each in there])}")
        if number.isascii() and number.isdigit() and 1 <= int(number) <= len(found):
            return found[int(number) - 1]
        if len(found) > 1 or number:
            listed = ", ".join(f"{place} {names.function(each)}" for place, each in enumerate(found[:_SHOWN], 1))
            more = " …" if len(found) > _SHOWN else ""
            raise UsageError(f"{name} {number}".rstrip() + f": choose by number: {listed}{more}")
        return found[0]

    def objects(self, given: str) -> list[str]:
        """The objects that a list with commas means. Raises UsageError."""
        found: list[str] = []
        for name in filter(None, given.split(",")):
            if name in (ALL, LIBRARY):
                found.append(name)
                continue
            meant = [each for each in self.all_objects if _is_meant(each, name)]
            if not meant:
                raise UsageError(f"{name}: no such object{_nearest(name, [*self.all_objects, ALL, LIBRARY])}")
            found += meant
        return found

    @property
    def all_objects(self) -> list[str]:
        """The objects of all calls: files and modules."""
        there = {node.frame.function.object for node in self.calls.tree.nodes}
        return sorted(there - {""})

    # Sources.

    @cached_property
    def sources(self) -> SourceFiles:
        """Where the texts of files are looked for."""
        return SourceFiles(self.experiment.experiments)

    def source(self, item: str, number: str = "") -> Table:
        """The source of a file, or of that of a function, with figures. Raises UsageError."""
        files = [file for file in self.calls.files if _is_meant(file, item)]
        file = files[0] if len(files) == 1 else object_of(self.function(item, number))
        process = self.calls.files.get(file)
        if process is None:
            raise UsageError(f"{item}: has no source: it is a called function, not one of the program's files")
        found = self.sources.text_of(process, file)
        if found is None:
            raise UsageError(f"{file}: source missing or changed; addpath or pathmap name other places")
        changed = " (changed since it was recorded)" if found.changed else ""
        rows = by_source_line(self.calls.tree, file)
        title = f"Source file: {file}{changed}"
        code = code_lines(found.text)
        return source_table(title, found.text, code, rows, self.columns, self.total, self.hot_percent)

    # Output.

    def show_calls(self, view: Callable[[Tree, Shown], Table]) -> None:
        """Write a view of the calls and, below it, what is missing in the figures of their callers."""
        tree = self.tree
        notes = [_CUT] if self._are_stacks_short and _has_callers_cut_off(self.calls.tree) else []
        self.show(replace(view(tree, self.shown(tree)), notes=notes))

    @cached_property
    def _are_stacks_short(self) -> bool:
        """Whether the stacks of short calls were to end at the first line of your own code."""
        settings = [each.log.settings for each in self.experiment.processes]
        return any(each.get("INTERPOSE_STACK_ABOVE") != _ANY_CALL for each in settings)

    def show(self, *tables: Table) -> None:
        """Write tables to where the output goes, with an empty line between them."""
        for place, table in enumerate(tables):
            if place:
                self._out.write("\n")
            write(table, self._out, self.mode, self.sign)
        self._out.flush()

    def write_to(self, path: str, append: bool = False) -> None:
        """Write what follows to the file at `path`; to standard output where it is `-`. Raises InterposeError."""
        self.close()
        if path == "-":
            return
        refuse_within_experiments(path)
        try:
            self._out = open(  # noqa: SIM115 (closed by the next one, or at the end)
                path, "a" if append else "w", encoding="utf-8", errors="backslashreplace", newline="\n"
            )
        except OSError as error:
            raise InterposeError(f"{path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file that is written to, if any."""
        if self._out is not self._standard_out:
            with suppress(OSError):
                self._out.close()
        self._out = self._standard_out


def standard_output() -> TextIO:
    """Where results go unless said."""
    return sys.stdout


def _is_meant(path: str, name: str) -> bool:
    """Whether `name` is the name of an object, its last part, or a directory that contains it: `urllib3`."""
    return name == path or name.strip("/") in path.split("/") or path.endswith(f"/{name.lstrip('/')}")


def _has_callers_cut_off(tree: Tree) -> bool:
    """Whether a stack begins with a line of your own code that has a caller."""
    cut = (node for node in tree.nodes if node.frame.function == TRUNCATED)
    return any(frame.line and frame.function.own for node in cut for frame in node.inner)


def _nearest(name: str, known: Iterable[str]) -> str:
    there = sorted(set(known))
    near = get_close_matches(name, there, 1, 0.5)
    near = near or [each for each in there if os.path.basename(each) == name][:1]
    return f"; did you mean {near[0]}?" if near else ""
