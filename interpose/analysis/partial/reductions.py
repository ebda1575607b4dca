"""The reductions: for each question of a report, how one experiment answers it and how answers are merged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls import parts, profile
from interpose.analysis.calls.parts import Part
from interpose.analysis.comparison.figures import Run, run_of
from interpose.analysis.comparison.likeness import Circumstances, circumstances
from interpose.analysis.coverage import coverage
from interpose.analysis.coverage import parts as coverage_parts
from interpose.analysis.coverage.parts import CoveragePart
from interpose.analysis.partial import sections
from interpose.analysis.partial.partial import Question, Reduction
from interpose.analysis.profile.count_rows import with_counts
from interpose.analysis.profile.rows import WITH_CODE, reduced_with_code
from interpose.analysis.transactions import response_times
from interpose.analysis.transactions.response_times import TransactionsPart

ROWS, TRANSACTIONS, RUNS, COVERAGE = "rows", "transactions", "runs", "coverage"


@dataclass
class OneRun:
    """The figures of a run, its circumstances, and when it began on the calendar."""

    run: Run
    circumstances: Circumstances
    time_ns: int


def _rows(analysis: Analysis, question: Question) -> Part:
    part = profile.reduced(analysis, question.by, question.is_scaled)
    if not question.with_code:
        return part
    part = reduced_with_code(part, analysis, question.by) if question.by in WITH_CODE else part
    return with_counts(part, analysis, question.by)


def _transactions(analysis: Analysis, question: Question) -> TransactionsPart:
    return response_times.reduced(analysis)


def _run(analysis: Analysis, question: Question) -> list[OneRun]:
    run = run_of(analysis, question.by, question.with_calls)
    return [OneRun(run, circumstances(analysis), analysis.experiment.founder.log.time_ns)]


def _all_runs(runs: Iterable[list[OneRun]]) -> list[OneRun]:
    """The runs in the order in which they are given: each stays itself."""
    return list(chain.from_iterable(runs))


def _coverage(analysis: Analysis, question: Question) -> CoveragePart:
    return coverage.reduced(analysis.experiment, coverage.unpacked(question.options))


REDUCTIONS: dict[str, Reduction[Any]] = {
    ROWS: Reduction(Part, _rows, parts.merged),
    TRANSACTIONS: Reduction(TransactionsPart, _transactions, response_times.merged, needs_all_calls=True),
    RUNS: Reduction(list[OneRun], _run, _all_runs, needs_all_calls=True),
    COVERAGE: Reduction(CoveragePart, _coverage, coverage_parts.merged),
    sections.NAME: sections.PROFILE,
}
