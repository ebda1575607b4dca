"""Spans while the program runs: each call with what is inside it, once it has ended, and each exactly once.

A call belongs to the trace of its transaction, which is known when that has ended. So calls are held back until the
outermost recorded call around them ends. Work that another thread does for a transaction waits for that, too. At most
HELD_AT_MOST are held; of a call with more inside, the rest is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.life import first_link
from interpose.experiments.format.blocks import FULL, EventFile, Place
from interpose.experiments.format.records import Event
from interpose.experiments.format.sequences import Sequences
from interpose.experiments.format.trace_contexts import (
    CONTEXTS_AT_MOST,
    NAME,
    ActiveSpan,
    TraceContext,
    active_span_of,
    context_of,
)
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.exports.otlp import SPANS_IN_A_REQUEST, ProcessSpans
from interpose.exports.single_events import calls_in_progress

HELD_AT_MOST = 100_000
REMEMBERED = 100_000  # calls that ended, of which each may have work in another thread that is read later


class LiveSpans:
    """The requests with the spans of an experiment that have come since the last time; `lost` says how many calls are
    in none, because too many were held, or because a ring had replaced them before they were read."""

    def __init__(self) -> None:
        self._processes: dict[str, _Following] = {}

    @property
    def lost(self) -> int:
        """The number of calls that are in no request."""
        return sum(each.lost for each in self._processes.values())

    def requests(self, experiment: Experiment) -> Iterator[tuple[bytes, int]]:
        """The requests, each with the number of its spans. A process that has ended has its own span as well."""
        for process in experiment.processes:
            known = self._processes.setdefault(process.lineage, _Following())
            if not known.is_over:
                has_ended = _is_end_known(process)  # before its events are read: then these are all
                yield from known.requests(experiment, process, has_ended)


def _is_end_known(process: Process) -> bool:
    """Whether it has ended, and its starter has seen that or will not any more."""
    first = first_link(process)
    child, starter = first.started_as, first.starter
    is_awaited = child and not child.has_ended and starter and ending(starter).state == "running"
    return ending(process).state != "running" and not is_awaited


class _Part(NamedTuple):
    """How far a block was read: the number of possible events, and of all; -1 if it has to be read again anyway."""

    read: int = 0
    used: int = -1


class _Following:
    """One process."""

    def __init__(self) -> None:
        self.is_over = False
        self.lost = 0
        self._done = Sequences()  # of blocks that are read to their ends
        self._in_part: dict[int, _Part] = {}  # of others
        self._taken = self._held = 0
        self._inside: dict[tuple[int, int], list[Event]] = {}  # by thread and the call around them
        self._working: dict[tuple[int, int], list[Event]] = {}  # by the call that it came from
        self._traces: dict[tuple[int, int], str] = {}  # of the last calls that have ended
        self._contexts: dict[tuple[int, int], TraceContext] = {}
        self._active: dict[tuple[int, int], list[ActiveSpan]] = {}
        self._next_context = 1

    def requests(self, experiment: Experiment, process: Process, has_ended: bool) -> Iterator[tuple[bytes, int]]:
        made = ProcessSpans(experiment, process, self._contexts, self._active)
        waiting: list[str] = []
        for spans in self._spans(made, process, has_ended):
            waiting += spans
            while len(waiting) >= SPANS_IN_A_REQUEST:
                yield made.request(waiting[:SPANS_IN_A_REQUEST]), SPANS_IN_A_REQUEST
                del waiting[:SPANS_IN_A_REQUEST]
        if waiting:
            yield made.request(waiting), len(waiting)

    def _spans(self, made: ProcessSpans, process: Process, has_ended: bool) -> Iterator[list[str]]:
        """The spans of calls that came since; in the end those of calls in progress, of what is inside these, and of
        the process itself."""
        for events in self._whole_calls(made, process, has_ended):
            yield made.spans_of(events)
            self._remember(made.traces_of(events))
            self._forget_contexts(events)
        if has_ended:
            self.is_over = True
            self._take_contexts(process)
            yield made.spans_of(self._left(), list(calls_in_progress(process)))
            yield [made.whole()]
            recorded = sum(each.record.recorded for each in process.threads)
            self.lost += max(recorded - self._taken, 0)

    def _left(self) -> list[Event]:
        """The calls that are held, when no more come."""
        found = [event for events in (*self._inside.values(), *self._working.values()) for event in events]
        self._inside.clear()
        self._working.clear()
        return found

    def _whole_calls(self, made: ProcessSpans, process: Process, has_ended: bool) -> Iterator[list[Event]]:
        """The calls that are inside no other, each with those inside it and the work for them."""
        for event in self._new_events(process, has_ended):
            self._taken += 1
            if not event.parent:
                self._take_contexts(process)
                whole = [*self._taken_out(event), event]
                if not self._has_to_wait(made, whole):
                    yield self._with_work(whole)
            elif self._held < HELD_AT_MOST:
                self._held += 1
                self._inside.setdefault((event.thread, event.parent), []).append(event)
            else:
                self.lost += 1

    def _has_to_wait(self, made: ProcessSpans, whole: list[Event]) -> bool:
        """Whether a call is work for a transaction that has not ended; then it is kept with what is inside. One that
        has ended gives its trace."""
        for call, came_from in made.came_from(whole).items():
            if came_from in self._traces:
                self._contexts[call] = self._contexts[call]._replace(trace=self._traces[came_from])
            elif self._held + len(whole) <= HELD_AT_MOST:
                self._held += len(whole)
                self._working.setdefault(came_from, []).extend(whole)
                return True
        return False

    def _with_work(self, whole: list[Event]) -> list[Event]:
        """A call and those inside it, with the work that other threads did for it, and the work for that."""
        found: list[Event] = []
        waiting = whole
        while waiting:
            found += waiting
            waiting = [work for event in waiting for work in self._working.pop((event.thread, event.call), ())]
        self._held -= len(found) - len(whole)
        return found

    def _remember(self, traces: dict[tuple[int, int], str]) -> None:
        self._traces.update(traces)
        while len(self._traces) > REMEMBERED:
            del self._traces[next(iter(self._traces))]

    def _taken_out(self, root: Event) -> list[Event]:
        """The calls inside a call, which are held no more."""
        found: list[Event] = []
        waiting = [root]
        while waiting:
            outer = waiting.pop()
            inside = self._inside.pop((outer.thread, outer.call), [])
            found += inside
            waiting += inside
        self._held -= len(found)
        return found

    def _new_events(self, process: Process, has_ended: bool) -> Iterator[Event]:
        """The events that came since, those of a thread in the order of their ends; while the program runs, up to the
        first one of a library that is so new that it was not yet named when the names were read."""
        if process.events is None:
            return
        for place in sorted(self._places_with_more(process.events), key=attrgetter("sequence")):
            block = process.events.block(place)
            if block is None or block.head.sequence != place.sequence:
                continue  # moved meanwhile: next time
            before = self._in_part.pop(place.sequence, _Part()).read
            size = process.events.layout.record_bytes
            events = process.events.events(block._replace(events=block.events[before * size :]))
            for number, event in enumerate(events, before):
                if not has_ended and event.intrinsic not in process.numbered_intrinsics:
                    self._in_part[place.sequence] = _Part(number)
                    return
                yield event
            if place.compressed or block.place.compressed or block.head.state == FULL:
                self._done.add(place.sequence)
            else:
                self._in_part[place.sequence] = _Part(len(block.events) // size, block.head.used)

    def _places_with_more(self, events: EventFile) -> Iterator[Place]:
        for place, head in events.heads():
            if head.sequence not in self._done and head.used != self._in_part.get(head.sequence, _Part()).used:
                yield place

    def _take_contexts(self, process: Process) -> None:
        """Read those that came since; a call's is written before its event."""
        if process.is_ring:
            self._contexts.update(process.trace_contexts)
            self._active.update(process.active_spans)
            return
        table = process.raw_table(NAME)
        while table and (record := table.get(self._next_context)) and record.call:
            self._next_context += 1
            call = record.thread, record.call
            if len(self._contexts) + len(self._active) >= CONTEXTS_AT_MOST:
                continue
            if context := context_of(record):
                self._contexts[call] = context
            elif span := active_span_of(record):
                self._active.setdefault(call, []).append(span)

    def _forget_contexts(self, events: list[Event]) -> None:
        for event in events:
            self._contexts.pop((event.thread, event.call), None)
            self._active.pop((event.thread, event.call), None)
