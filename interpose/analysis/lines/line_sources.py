"""What line trace counted, by source file: the figures of each line over all functions, and the text of the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.lines.line_rows import Figures, Line
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import Sought, Sources


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
    for line in filter(_ran, lines):
        place = line.place
        if place.file not in found:
            found[place.file] = LineFile(place.file, sources.sought(place.file))
        figures = found[place.file].lines.setdefault(line.line, Figures())
        entered = figures.entered
        figures.add(line.figures)
        if line.line == place.first_line and not line.figures.executed:
            figures.entered = entered
    return sorted(found.values(), key=lambda file: (-file.self_cpu_ns, file.file))


def _ran(line: Line) -> bool:
    figures = line.figures
    return bool(figures.executed or figures.entered or figures.self_wall_ns > 0)


class SourcesOfFiles:
    """Finds the text of a file that some process of an experiment, or of several, names."""

    def __init__(self, experiment: Experiment) -> None:
        several = experiment.experiments if isinstance(experiment, Collection) else [experiment]
        self._of: dict[str, tuple[Sources, Process]] = {}
        self._founder = (Sources(several[0]), several[0].founder)
        for each in several:
            sources = Sources(each)
            for process in each.processes:
                for file in process.files():
                    self._of.setdefault(file, (sources, process))

    def sought(self, file: str) -> Sought:
        """The source of `file`; where it cannot be had, why. What only samples name is looked for as the founder would.
        """
        sources, process = self._of.get(file, self._founder)
        return sources.sought(process, file)
