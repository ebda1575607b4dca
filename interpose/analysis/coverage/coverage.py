"""The coverage of a program: its modules, those that never ran included where asked, and what cannot be covered."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interpose.analysis.coverage.exclusion import DEFAULTS
from interpose.analysis.coverage.gathering import File, Gathered, gather
from interpose.analysis.coverage.module import Module, Share, module_of, never_gone
from interpose.analysis.coverage.paths import COMPILED, EXTENSIONS, SOURCES, Chosen, real_path
from interpose.analysis.coverage.table import LARGEST_BYTES, Table, Unreadable, statement_table
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import open_plain
from interpose.experiments.model.sources import decoded

NOTHING_RAN = "nothing of it ran"
_NAMES_SHOWN = 3


@dataclass
class Asked:
    """What the options select. `directories`, `include` and `omit` are relative to `place`; `context` is an expression
    searched for in contexts; `exclude` are expressions for what is left out besides the usual."""

    directories: Sequence[str] = ()
    include: Sequence[str] = ()
    omit: Sequence[str] = ()
    context: re.Pattern[str] | None = None
    exclude: Sequence[str] = ()
    place: str = field(default_factory=os.getcwd)


@dataclass
class Coverage:
    """The modules by path, remarks, the number of code objects seen, and whether branches were recorded."""

    modules: list[Module]
    notes: list[str]
    codes: int
    with_branches: bool

    @property
    def own(self) -> Share:
        """The statements of all sources that ran."""
        return sum((module.own for module in self.modules), Share(0, 0))

    @property
    def with_generated(self) -> Share:
        """The same, code that was made at run time included."""
        return sum((module.with_generated for module in self.modules), Share(0, 0))

    @property
    def branches(self) -> Share:
        """The branches that were taken, out of all."""
        return sum((module.branches for module in self.modules), Share(0, 0))

    @property
    def contexts(self) -> list[str]:
        """The contexts that something ran in."""
        return sorted({context for module in self.modules for context in module.by_context})


def coverage(experiment: Experiment, asked: Asked) -> Coverage:
    """The coverage recorded in an experiment, or in several read as one."""
    chosen = Chosen(asked.directories, asked.include, asked.omit, asked.place)
    patterns = [re.compile(each, re.MULTILINE) for each in (*DEFAULTS, *asked.exclude)]
    wanted = asked.context
    gathered = gather(experiment, lambda name: wanted is None or bool(wanted.search(name)), chosen.has)
    modules = [_module(file, patterns, gathered.with_branches) for file in gathered.files.values()]
    _give_made(modules, gathered, chosen)
    seen = {real_path(module.path) for module in modules}
    modules += [
        _never_run(path, name, patterns, gathered.with_branches) for path, name in _others(chosen, seen)
    ]
    notes = [*gathered.notes, *_notes(experiment, gathered)]
    in_order = sorted(modules, key=lambda module: module.path)
    return Coverage(in_order, notes, gathered.codes, gathered.with_branches)


def _module(file: File, patterns: Sequence[re.Pattern[str]], with_branches: bool) -> Module:
    if file.sought.source is None:
        return module_of(file.path, None, file.seen, False, why=file.sought.why)
    try:
        table: Table | None = statement_table(file.sought.source.text, patterns)
    except Unreadable as error:
        return module_of(file.path, None, file.seen, False, why=str(error))
    return module_of(file.path, table, file.seen, with_branches, note=file.sought.note)


def _give_made(modules: list[Module], gathered: Gathered, chosen: Chosen) -> None:
    """Give each module the code that was generated for it. Code generated for others, the library's, has a row per
    file."""
    by_name = {module.name: module for module in modules}
    others: dict[str, set[str]] = defaultdict(set)
    for name, made in gathered.made.items():
        if module := by_name.get(name):
            module.made = made
        else:
            for file, *_ in made.known:
                if chosen.has(file):
                    others[file].add(name or "?")
    for file, names in sorted(others.items()):
        told = f"{', '.join(sorted(names)[:_NAMES_SHOWN])}{' …' * (len(names) > _NAMES_SHOWN)}"
        modules.append(Module(file, "", None, f"code made at run time, without a source: of {told}"))


def _others(chosen: Chosen, seen: set[str]) -> Iterator[tuple[str, str]]:
    """The modules in the given directories that were not seen, each once."""
    for path, name in chosen.modules():
        real = os.path.realpath(path)
        if real not in seen and not (path.endswith(COMPILED) and os.path.splitext(real)[0] + ".py" in seen):
            seen.add(real)
            yield path, name


def _never_run(path: str, name: str, patterns: Sequence[re.Pattern[str]], with_branches: bool) -> Module:
    if path.endswith(EXTENSIONS):
        return Module(path, name, None, "an extension module: its code is the processor's", has_run=False)
    if not path.endswith(SOURCES):
        return Module(path, name, None, "compiled, without its source", has_run=False)
    try:
        with open(open_plain(os.path.realpath(path)), "rb") as file:
            table = statement_table(decoded(file.read(LARGEST_BYTES + 1)), patterns)
    except OSError as error:
        return Module(path, name, None, f"its source cannot be read: {error.strerror}", has_run=False)
    except Unreadable as error:
        return Module(path, name, None, str(error), has_run=False)
    jumps = never_gone(table) if with_branches else {}
    return Module(path, name, table, note=NOTHING_RAN, jumps=jumps, has_run=False)


def _notes(experiment: Experiment, gathered: Gathered) -> Iterator[str]:
    here = ".".join(map(str, sys.version_info[:2]))
    versions = {each.log.collector.get("python", here) for each in experiment.processes}
    for version in sorted(versions):
        if version.split(".")[:2] != here.split(".") and gathered.codes:
            yield f"recorded by Python {version}; this is {here}, which may have code for other statements"
    if gathered.from_lines:
        yield "from line trace: statements on one line are not told apart"
    if not all(file.seen.has_columns for file in gathered.files.values()):
        yield "recorded without columns (-X no_debug_ranges): statements on one line are not told apart"
