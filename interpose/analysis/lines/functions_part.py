"""What line trace says of functions, of one experiment or of several."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.lines.line_rows import Figures, Place, line_trace

NOTES = 10  # as many are kept, each once


@dataclass
class LinesPart:
    """What line trace says of functions: CPU time outside of them and that of recording, in how many threads."""

    functions: dict[Place, Figures] = field(default_factory=dict)
    outside_cpu_ns: int = 0
    own_ns: int = 0
    threads: int = 0
    notes: list[str] = field(default_factory=list)


def reduced(analysis: Analysis) -> LinesPart:
    """What line trace says of one experiment."""
    trace = line_trace(analysis.experiment)
    return LinesPart(
        {each.place: each.figures for each in trace.functions},
        sum(thread.outside.self_cpu_ns for thread in trace.threads),
        sum(thread.own_ns for thread in trace.threads),
        len({(id(thread.process), thread.thread) for thread in trace.threads}),
        trace.notes,
    )


def merged(given: list[LinesPart]) -> LinesPart:
    """What it says of all."""
    made = LinesPart(
        {},
        sum(each.outside_cpu_ns for each in given),
        sum(each.own_ns for each in given),
        sum(each.threads for each in given),
        list(dict.fromkeys(note for each in given for note in each.notes))[:NOTES],
    )
    for each in given:
        for place, figures in each.functions.items():
            made.functions.setdefault(place, Figures()).add(figures)
    return made
