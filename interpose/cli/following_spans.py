"""Spans that are sent to a collector while their program runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from interpose.analysis.recording.ending import any_running
from interpose.experiments.model.experiment import Experiment
from interpose.exports.live_spans import LiveSpans
from interpose.exports.sending import Sent, address_of, send_all
from interpose.exports.single_events import refuse_without_events

EVERY_S = 1.0


def follow_spans(experiment: Experiment, endpoint: str, headers: Mapping[str, str]) -> Sent:
    """Send spans of `experiment` as its calls end, until all its processes have ended. A request that fails is tried
    again as always; then its spans are lost, and the next ones are sent. Raises UsageError."""
    address_of(endpoint)
    refuse_without_events(experiment)
    spans, made, is_running = LiveSpans(), Sent(), True
    while is_running:
        is_running = any_running(experiment)
        if not is_running:
            experiment = Experiment(experiment.directory)  # what ended last may have started others
            is_running = any_running(experiment)
        made.is_over = False
        send_all(spans.requests(experiment), endpoint, headers, made)
        if is_running:
            time.sleep(EVERY_S)
            experiment = Experiment(experiment.directory)
    return _with_missed(made, spans.lost)


def _with_missed(made: Sent, missed: int) -> Sent:
    """The same, with calls that were in no request."""
    if missed:
        made.lost += missed
        made.why = [*made.why, f"{missed:,} were too many to hold, or replaced in the ring"]
    return made
