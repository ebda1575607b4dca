"""How long an experiment lasted."""

from __future__ import annotations

from collections.abc import Sequence

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.recording.calendar import span_of
from interpose.experiments.model.collection import Collection


def elapsed_ns(analysis: Analysis) -> int:
    """From the founder's beginning to the last end, or until the threads of what still runs were read; of several
    experiments, on the calendar; of a merged one, of those that were merged. 0 if the beginning is unknown."""
    if isinstance(analysis.experiment, Collection):
        begins_ns, ends_ns = calendar_span(analysis.accounts)
        return max(ends_ns - begins_ns, 0)
    log = analysis.experiment.founder.log
    start_ns = log.start_ns
    if log.elapsed_ns or not start_ns:
        return log.elapsed_ns
    known_ns = [each.latest_ns for each in analysis.accounts]
    known_ns += [each.process.threads_read_ns for each in analysis.accounts if each.ending.state == "running"]
    return max(max(known_ns) - start_ns, 0)


def calendar_span(accounts: Sequence[ProcessAccount]) -> tuple[int, int]:
    """The first beginning and the last end on the calendar."""
    logs = [(account.process.log, account.latest_ns) for account in accounts]
    return span_of((log.time_ns, log.time_ns + latest_ns - log.start_ns) for log, latest_ns in logs)
