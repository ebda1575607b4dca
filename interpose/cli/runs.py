"""Runs at some paths, as comparisons and trends read them: one after the other, what cannot be read is left out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from interpose.analysis.comparison.figures import MEASURES
from interpose.analysis.partial.partial import Question
from interpose.analysis.partial.reductions import RUNS, OneRun
from interpose.cli.experiment_choice import note_damages, note_one_in
from interpose.cli.many.reading import ask
from interpose.cli.messages import say
from interpose.cli.parser import list_below


def add_measure_argument(parser: argparse.ArgumentParser) -> None:
    """The option --measure, whose values are listed at the end of the help."""
    parser.add_argument(
        "--measure",
        choices=tuple(MEASURES),
        metavar="MEASURE",
        default="total",
        help="the figure of a row, one of those below (default: %(default)s)",
    )
    list_below(parser, "measures", ((name, measure.meaning) for name, measure in MEASURES.items()))


class Runs:
    """The runs at some paths with their circumstances, and when each began on the calendar; what cannot be read is
    said, and left out. `code` is the exit code so far. Raises ExperimentError if none can be read."""

    def __init__(self, paths: Sequence[str], by: str, with_calls: bool, arguments: argparse.Namespace) -> None:
        many = ask(paths, Question(RUNS, by, with_calls=with_calls), arguments)
        found: list[OneRun] = many.partial.value
        self.runs = [each.run for each in found]
        self.circumstances = [each.circumstances for each in found]
        self.times_ns = [each.time_ns for each in found]
        note_one_in(many.partial.head.one_in, "counts and times are estimates, whose margins are not in the comparison")
        for damage in many.failed.found:
            say(f"{damage}; left out")
        self.code = max(note_damages(many.partial.head), 3 if many.failed.found else 0)

    def order_by_time(self) -> None:
        """Sort the runs by their beginnings; runs that began at once, or at an unknown time, by name."""
        order = sorted(range(len(self.runs)), key=lambda place: (self.times_ns[place], self.runs[place].name))
        self.runs = [self.runs[place] for place in order]
        self.circumstances = [self.circumstances[place] for place in order]
        self.times_ns = [self.times_ns[place] for place in order]
