"""The coverage of a program: its modules, those that never ran included where asked, and what cannot be covered."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from interpose.analysis.coverage.exclusion import DEFAULTS
from interpose.analysis.coverage.gathering import MAIN, Gathering, Made
from interpose.analysis.coverage.module import Module, Share, module_of, never_gone
from interpose.analysis.coverage.parts import CoveragePart, File, Version, latest_files, merged, notes_on
from interpose.analysis.coverage.paths import COMPILED, EXTENSIONS, SOURCES, Chosen, real_path
from interpose.analysis.coverage.table import LARGEST_BYTES, Table, Unreadable, statement_table
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import open_plain
from interpose.experiments.model.sources import Sources, decoded

NOTHING_RAN = "nothing of it ran"
_NAMES_SHOWN = 3
_BRANCHES = "INTERPOSE_BRANCHES"


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


    def packed(self) -> tuple[str, ...]:
        """All but what is excluded, as texts: what matters when experiments are read."""
        chosen = [list(each) for each in (self.directories, self.include, self.omit)]
        context = self.context.pattern if self.context else None
        return (json.dumps(chosen), json.dumps(context), self.place)


def unpacked(given: Sequence[str]) -> Asked:
    """What `packed` has made texts of."""
    chosen, context, place = given
    directories, include, omit = json.loads(chosen)
    pattern = json.loads(context)
    expression = None if pattern is None else re.compile(pattern, re.MULTILINE)
    return Asked(directories, include, omit, expression, (), place)


@dataclass
class Coverage:
    """The modules by path, remarks, the number of code objects seen, in any context and in those asked for, and whether
    branches were recorded; `was_asked` says that coverage was to be recorded, and `wanted` of what."""

    modules: list[Module]
    notes: list[str]
    codes: int
    in_context: int
    with_branches: bool
    was_asked: bool = False
    wanted: str = ""

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
    return finished(merged(reduced(each, asked) for each in experiment.experiments), asked)


def reduced(experiment: Experiment, asked: Asked) -> CoveragePart:
    """What one experiment has of the coverage."""
    wanted = asked.context
    found = Gathering(lambda name: wanted is None or bool(wanted.search(name)), _chosen(asked).has)
    left_out = sum(found.add(process) for process in experiment.processes)
    sources, log = Sources(experiment), experiment.founder.log
    began = (log.time_ns, experiment.name)
    what = ("coverage", "lines") if found.from_lines else ("coverage",)
    missed = [why for each in experiment.processes for one in what for why in each.log.missed(one)]
    asked_for = any(each.log.settings.get(_BRANCHES) == "1" for each in experiment.processes)
    return CoveragePart(
        {
            path: [Version([began], sources.sought(process, file), seen)]
            for path, (process, file, seen) in found.files.items()
        },
        found.made,
        found.codes,
        found.in_context,
        left_out,
        asked_for or any(seen.jumps for _, _, seen in found.files.values()),
        found.from_lines,
        list(dict.fromkeys(missed)),
        {each.log.collector.get("python", "") for each in experiment.processes} - {""},
        any("coverage" in each.log.recorded for each in experiment.processes),
        log.settings.get("INTERPOSE_COVERAGE", "own"),
    )


def finished(part: CoveragePart, asked: Asked) -> Coverage:
    """The coverage by module, as `asked`."""
    chosen = _chosen(asked)
    patterns = [re.compile(each, re.MULTILINE) for each in (*DEFAULTS, *asked.exclude)]
    files = list(latest_files(part))
    modules = [_module(file, patterns, part.with_branches) for file in files]
    _give_made(modules, part.made, chosen)
    seen = {real_path(module.path) for module in modules}
    modules += [_never_run(path, name, patterns, part.with_branches) for path, name in _others(chosen, seen)]
    notes = [*notes_on(part), *_notes(part, files)]
    in_order = sorted(modules, key=lambda module: module.path)
    return Coverage(in_order, notes, part.codes, part.in_context, part.with_branches, part.was_asked, part.wanted)


def _chosen(asked: Asked) -> Chosen:
    return Chosen(asked.directories, asked.include, asked.omit, asked.place)


def _module(file: File, patterns: Sequence[re.Pattern[str]], with_branches: bool) -> Module:
    if file.sought.source is None:
        return module_of(file.path, None, file.seen, False, why=file.sought.why)
    try:
        table: Table | None = statement_table(file.sought.source.text, patterns)
    except Unreadable as error:
        return module_of(file.path, None, file.seen, False, why=str(error))
    return module_of(file.path, table, file.seen, with_branches, note=file.sought.note)


def _give_made(modules: list[Module], generated: Mapping[str, Made], chosen: Chosen) -> None:
    """Give each module the code that was generated for it. Code generated for others, the library's, has a row per
    file."""
    by_name = {module.name: module for module in modules if module.name != MAIN}
    by_path = {module.path: module for module in modules}
    others: dict[str, set[str]] = defaultdict(set)
    for name, made in generated.items():
        if module := by_path.get(name) or by_name.get(name):
            module.made = Made(module.made.known | made.known, module.made.executed | made.executed)
        else:
            for file, *_ in made.known:
                if chosen.has(file):
                    others[file].add(MAIN if os.path.isabs(name) else name or "?")
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
    return Module(path, name, table, note=NOTHING_RAN if table.counted else "", jumps=jumps, has_run=False)


def _notes(part: CoveragePart, files: Sequence[File]) -> Iterator[str]:
    here = ".".join(map(str, sys.version_info[:2]))
    for version in sorted(part.pythons):
        if version.split(".")[:2] != here.split(".") and part.codes:
            yield f"recorded by Python {version}; this is {here}, which may have code for other statements"
    if part.from_lines:
        yield "from line trace: statements on one line are not told apart"
    if not all(file.seen.has_columns for file in files):
        yield "recorded without columns (-X no_debug_ranges): statements on one line are not told apart"
