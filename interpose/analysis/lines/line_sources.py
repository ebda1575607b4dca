"""What line trace counted, by source file: the figures of each line over all functions, and the text of the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from interpose.analysis.lines.line_rows import Figures, Line
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import Sought, Sources

_Name = tuple[str, ...]


@dataclass
class LineFile:
    """A source: its name in code objects, its text or why it is missing, and the figures of its lines."""

    file: str
    sought: Sought
    lines: dict[int, Figures] = field(default_factory=dict)

    @property
    def self_cpu_ns(self) -> int:
        """CPU time of all its lines, without what they called."""
        return sum(each.self_cpu_ns for each in self.lines.values())


def line_files(experiment: Experiment, lines: Iterable[Line]) -> list[LineFile]:
    """The sources of `lines`, the dearest first. The beginning of a function is of its line, but no entry into it."""
    found: dict[str, LineFile] = {}
    sources = SourcesOfFiles(experiment)
    for (file, number), functions in _by_line(filter(_ran, lines)).items():
        if file not in found:
            found[file] = LineFile(file, sources.sought(file))
        found[file].lines[number] = _together(functions)
    return sorted(found.values(), key=lambda file: (-file.self_cpu_ns, file.file))


def _by_line(lines: Iterable[Line]) -> dict[tuple[str, int], list[Line]]:
    found: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        found[line.place.file, line.line].append(line)
    return found


def _together(functions: Sequence[Line]) -> Figures:
    """The figures of a line of several functions."""
    made = Figures()
    for each in functions:
        made.add(each.figures)
        if each.line == each.place.first_line and not each.figures.executed:
            made.entered -= each.figures.entered
    made.wall_ns = _inclusive_ns(functions, lambda figures: (figures.self_wall_ns, figures.wall_ns))
    made.cpu_ns = _inclusive_ns(functions, lambda figures: (figures.self_cpu_ns, figures.cpu_ns))
    return made


def _inclusive_ns(functions: Sequence[Line], times: Callable[[Figures], tuple[int, int]]) -> int:
    """The inclusive time of a line, of the self and inclusive `times` of its functions.

    The time of a function nested in another one on the line (`map(lambda …)`) counts as a part of what that one's line
    called, as far as this took so long.
    """
    names = {_name(each) for each in functions}
    nested_ns: dict[_Name | None, int] = defaultdict(int)
    for each in sorted(functions, key=lambda each: -len(_name(each))):
        self_ns, inclusive_ns = times(each.figures)
        name = _name(each)
        took_ns = self_ns + max(inclusive_ns - self_ns, nested_ns.pop(name, 0))
        nested_ns[next((outer for outer in _around(name) if outer in names), None)] += took_ns
    return nested_ns[None]


def _name(line: Line) -> _Name:
    """The names of a function and of those around it, outermost first; what is kept separate has no name in common."""
    own = line.place.function.split(".") if line.place.function != "<module>" else []
    return (*line.labels.values(), line.place.module, "<module>", *own)


def _around(name: _Name) -> Iterator[_Name]:
    return (name[:length] for length in range(len(name) - 1, 0, -1))


def _ran(line: Line) -> bool:
    figures = line.figures
    return bool(figures.executed or figures.entered or figures.self_wall_ns > 0)


class SourcesOfFiles:
    """Finds the text of a file that some process of an experiment, or of several, names."""

    def __init__(self, experiment: Experiment) -> None:
        self._of: dict[str, tuple[Sources, Process]] = {}
        self._founder = (Sources(experiment.experiments[0]), experiment.founder)
        for each in experiment.experiments:
            sources = Sources(each)
            for process in each.processes:
                for file in process.files():
                    self._of.setdefault(file, (sources, process))

    def sought(self, file: str) -> Sought:
        """The source of `file`; where it cannot be had, why. What only samples name is looked for as the founder would.
        """
        sources, process = self._of.get(file, self._founder)
        return sources.sought(process, file)
