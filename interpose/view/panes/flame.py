"""The flame graph, by CPU or wall time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.widget import Widget

from interpose.analysis.profile.flame import CPU, WALL, Flame
from interpose.reports.flame.drawing import heading, told
from interpose.reports.formats.short_paths import Places
from interpose.view.drilling import Line
from interpose.view.flame_graph import FlameGraph
from interpose.view.panes.pane import Pane
from interpose.view.reading import Reading


class Made(NamedTuple):
    """A flame graph that was read, with the experiment's name and the short names of files."""

    flame: Flame
    name: str
    places: Places


class FlamePane(Pane):
    """Functions and calls, callers above what they call."""

    NAME = "flame"
    BINDINGS: ClassVar[list[BindingType]] = [("c", "other_clock", "CPU/wall"), ("o", "open", "Source")]

    def __init__(self) -> None:
        super().__init__()
        self._graph = FlameGraph(id=f"shown-{self.NAME}")
        self._metric = CPU
        self._places: Places | None = None

    @property
    def body(self) -> Widget:
        return self._graph

    @property
    def searched(self) -> FlameGraph:
        return self._graph

    @property
    def told(self) -> str:
        graph = self._graph
        return told(graph.frame, graph.flame, self._places) if graph.frame and graph.flame and self._places else ""

    def job(self) -> Callable[[Reading], Made]:
        metric = self._metric

        def read(reading: Reading) -> Made:
            made = reading.flame(metric)
            files = {each.function.object for each in made.frames if each.function.object}
            return Made(made, reading.experiment.name, Places(files, reading.experiment.founder.log.cwd))

        return read

    def show(self, made: Made) -> None:
        self._places = made.places
        self._graph.show(made.flame)
        self.entitle(heading(made.flame, made.name))

    def back(self) -> bool:
        return self._graph.unzoom()

    def action_other_clock(self) -> None:
        """Show wall time instead of CPU time, or the other way round."""
        self._metric = WALL if self._metric == CPU else CPU
        self.post_message(self.Wanted(self))

    def action_open(self) -> None:
        """Show the source of the chosen function."""
        frame = self._graph.frame
        if frame and frame.function.object and not frame.kind:
            self.post_message(self.Opened(Line(frame.function.object, function=frame.function.name)))
        else:
            self.app.bell()
