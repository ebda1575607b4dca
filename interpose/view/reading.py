"""An experiment as it is now, and the tables that the view shows of it: those of the reports, made once each."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import calls_of
from interpose.analysis.calls.profile import Profile, profile
from interpose.analysis.lines.line_rows import Trace, line_trace
from interpose.analysis.lines.line_sources import LineFile, SourcesOfFiles, line_files
from interpose.analysis.profile.count_rows import WITH_COUNTS, with_code_and_counts
from interpose.analysis.profile.flame import Flame, flame
from interpose.analysis.transactions.response_times import Transactions, transactions
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Table, clean, shortened
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import first_lines, totals
from interpose.reports.tables.rows import arranged, profile_table
from interpose.reports.tables.transactions import arranged as arranged_transactions
from interpose.reports.tables.transactions import transactions_table
from interpose.view.drilling import Step

ROWS_AT_MOST = 1_000  # of calls; the rest is one row


class Reading:
    """What one reading of an experiment found. Only one thread at a time may use it."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._analysis = Analysis(experiment)
        self._profiles: dict[str, Profile] = {}
        self._flames: dict[str, Flame] = {}

    @property
    def is_running(self) -> bool:
        """Whether a process of the experiment still runs."""
        return self._analysis.is_running

    def again(self) -> Reading:
        """A reading of the same experiment as it is by now. Raises ExperimentError."""
        return Reading(Experiment(self.experiment.directory))

    def profile(self, by: str) -> Profile:
        """The profile by `by`, with sampled code and what was counted where that grouping has it."""
        if by not in self._profiles:
            made = profile(self._analysis, by)
            self._profiles[by] = with_code_and_counts(made, by) if by in WITH_COUNTS else made
        return self._profiles[by]

    def rows(self, step: Step, sort: str | None) -> Table:
        """The table of `interpose report --by`, of it the rows that `step` keeps."""
        made = self.profile(step.by)
        kept = [row for row in made.rows if step.keeps(row)]
        chosen = replace(made, rows=arranged(kept, sort, ROWS_AT_MOST, with_rest=True))
        return profile_table(chosen, step.by, self.experiment.founder.log)

    def transactions(self, sort: str | None) -> Table:
        """The table of `interpose transactions`. Raises UsageError if calls were sampled."""
        if self.experiment.founder.log.interval:
            raise UsageError("calls were sampled (INTERPOSE_INTERVAL): response times are unknown")
        found = self._transactions
        rows = arranged_transactions(found.rows, sort, None)
        return transactions_table(Transactions(rows, found.has_cpu, found.thread_ns, found.estimate))

    def flame(self, metric: str) -> Flame:
        """The frames of `interpose flame`."""
        if metric not in self._flames:
            self._flames[metric] = flame(calls_of(self._analysis), metric)
        return self._flames[metric]

    @cached_property
    def _transactions(self) -> Transactions:
        return transactions(self._analysis)

    @cached_property
    def sources(self) -> SourcesOfFiles:
        """The sources that processes of the experiment name."""
        return SourcesOfFiles(self.experiment)

    @cached_property
    def traced(self) -> dict[str, LineFile]:
        """The sources of which lines were traced, the dearest first."""
        return {each.file: each for each in line_files(self.experiment, self._lines.lines)}

    @property
    def recording_percent(self) -> int:
        """How much of the CPU time tracing lines took, if so much that times of lines are estimates; else 0."""
        return self._lines.recorded_percent if self._lines.is_estimated else 0

    @cached_property
    def _lines(self) -> Trace:
        return line_trace(self.experiment)

    @cached_property
    def places(self) -> Places:
        """Short names of the files that made calls, or of which lines were traced."""
        files = [*self.traced, *(row.site.file for row in self.profile("site").rows if row.site)]
        return Places(files, self.experiment.founder.log.cwd)

    def heading(self, width: int) -> str:
        """The lines above the first screen's table: what ran, how it ended, how long it took; then any damage."""
        screen = Screen(self.profile("kind"), time.time(), width, Paint(False))
        damaged = [f"damaged: {each}" for each in self.experiment.damages.found[:1]]
        lines = [*first_lines(screen), *totals(screen), *damaged]
        return "\n".join(shortened(clean(line), width) for line in lines)
