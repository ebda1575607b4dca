"""Which transaction each thread was in at which time, and so which one a call belongs to."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from interpose.analysis.calls.paused import PausedTimes
from interpose.analysis.consolidation.consolidate import follow
from interpose.analysis.time.lifetimes import lives_of
from interpose.analysis.transactions.tracking import (
    BY_DETAIL,
    BY_INTRINSIC,
    MARKED,
    SPAN,
    Closing,
    Details,
    Outermost,
    Step,
    Tracker,
    is_pseudo,
    name_of,
    roles_of,
)
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process

_OF_CALL = ("thread", "call", "task", "start_ns")


@dataclass
class Spans:
    """The starts, ends and names of a thread's transactions, in the order of their starts."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)

    def put(self, start_ns: int, end_ns: int, name: int) -> None:
        """Add one."""
        self.starts.append(start_ns)
        self.ends.append(end_ns)
        self.names.append(name)

    def leave_out(self, names: Collection[int]) -> None:
        """Have none with these names any more."""
        kept = [place for place, name in enumerate(self.names) if name not in names]
        self.starts, self.ends, self.names = (
            [each[place] for place in kept] for each in (self.starts, self.ends, self.names)
        )

    def sort(self) -> None:
        """Sort them by start, and note for each one when the last of those before it ended."""
        order = sorted(range(len(self.starts)), key=self.starts.__getitem__)
        self.starts, self.ends, self.names = (
            [each[place] for place in order] for each in (self.starts, self.ends, self.names)
        )
        self._until, until_ns = [], 0
        for end_ns in self.ends:
            self._until.append(until_ns)
            until_ns = max(until_ns, end_ns)

    def name_at(self, time_ns: int) -> int:
        """What names the transaction at that instant; 0 if there is none, or several."""
        place = bisect_right(self.starts, time_ns) - 1
        if place < 0 or time_ns >= self.ends[place] or time_ns < self._until[place]:
            return 0
        return self.names[place]


class NotingTracker(Tracker):
    """A tracker that notes when each transaction began and ended."""

    def __init__(self, process: Process, paused: PausedTimes | None = None) -> None:
        super().__init__(lives_of(process), paused, Details(process))
        self.spans: dict[int, Spans] = defaultdict(Spans)
        self.of_tasks: dict[tuple[int, int], Spans] = defaultdict(Spans)  # by thread and task: what these committed

    def step(self, thread: int, call: Outermost, is_busy: bool) -> Step:
        """The tracker's step. The transactions that it closes are noted."""
        made = super().step(thread, call, is_busy)
        end_ns = call.start_ns + call.wall_ns
        if made.before:
            self._note(thread, made.before, call.start_ns)
        if made.is_its_own and call.bits & SPAN:
            self._note(thread, Closing(call.name, call.start_ns, call.wall_ns, call.cpu_ns), end_ns)
        if made.after:
            self._note(thread, made.after, end_ns)
        return made

    def step_of_task(self, thread: int, task: int, call: Outermost) -> Step:
        """The tracker's step. The transaction that ends with it is noted."""
        made = super().step_of_task(thread, task, call)
        if made.after and not is_pseudo(made.after.name):
            self.of_tasks[thread, task].put(made.after.start_ns, call.start_ns + call.wall_ns, made.after.name)
        return made

    def serve(self, thread: int, since_ns: int) -> None:
        """What the tracker does. What tasks committed is noted no more by the names of those that ended since then."""
        super().serve(thread, since_ns)
        of_thread = [spans for key, spans in self.of_tasks.items() if key[0] == thread]
        known = [known for each in of_thread for known in zip(each.ends, each.names, strict=True)]
        gone = {name for end_ns, name in known if end_ns > since_ns}
        for each in of_thread:
            each.leave_out(gone)

    def between(self, thread: int) -> None:
        """Do nothing: each step is noted."""

    def finish(self) -> Iterator[tuple[int, Closing]]:
        """The transaction that each thread was in when it ended, noted, too."""
        for thread, closing in super().finish():
            self._note(thread, closing, self._lives[thread].end_ns)
            yield thread, closing

    def _note(self, thread: int, closing: Closing, end_ns: int) -> None:
        if end_ns > closing.start_ns:
            self.spans[thread].put(closing.start_ns, end_ns, closing.name)


class TransactionsOfCalls:
    """Gives the name of a call's transaction, as `interpose transactions` has it; empty if that is unknown.

    A process is read at the first of its calls.
    """

    def __init__(self) -> None:
        self._known: dict[Process, TransactionsOfProcess] = {}

    def __call__(self, process: Process, event: Event) -> str:
        if process not in self._known:
            self._known[process] = TransactionsOfProcess(process)
        name = self._known[process].name_of_call(event.thread, event.task, event.start_ns)
        return name_of(process, name) if name else ""


class TransactionsOfProcess:
    """The transactions of the threads of a process, and those of its tasks.

    A call made by a task belongs to the request or task that the same task serves, or to what the task commits, because
    those of several tasks overlap on one thread.
    """

    def __init__(self, process: Process, paused: PausedTimes | None = None) -> None:
        tracker = NotingTracker(process, paused)
        follow(process, tracker)
        self._process, self._threads, self._of_tasks = process, tracker.spans, tracker.of_tasks
        for spans in (*self._threads.values(), *self._of_tasks.values()):
            spans.sort()

    @cached_property
    def _tasks(self) -> dict[int, Spans]:
        found = _spans_of_tasks(self._process)
        for spans in found.values():
            spans.sort()
        return found

    def name_at(self, thread: int, time_ns: int) -> int:
        """What names the transaction that a thread was in at that instant, tasks aside; 0 if that is unknown."""
        spans = self._threads.get(thread)
        return spans.name_at(time_ns) if spans else 0

    def name_of_call(self, thread: int, task: int, start_ns: int) -> int:
        """What names the transaction in which a call began; 0 if that is unknown."""
        if not task:
            return self.name_at(thread, start_ns)
        committed, served = self._of_tasks.get((thread, task)), self._tasks.get(task)
        name = served.name_at(start_ns) if served else 0
        return name or (committed.name_at(start_ns) if committed else 0)

    def names_of_tasks_calls(self, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """What names the transactions of those of the wanted calls, each a thread and a number, that tasks made."""
        made = _calls_of_tasks(self._process, wanted) if wanted else {}
        return {(thread, call): self.name_of_call(thread, *made[thread, call]) for thread, call in made}


def _calls_of_tasks(process: Process, wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """The task and the start of those of the wanted calls that tasks made."""
    if process.events is None:
        return {}
    picker = process.events.layout.unsigned(_OF_CALL).picker(_OF_CALL)
    events = (event for block in process.events.blocks() for event in picker.many(block.events))
    found = {}
    for thread, call, task, start_ns in events:
        if task and (thread, call) in wanted:
            found[thread, call] = task, start_ns
    return found


def _spans_of_tasks(process: Process) -> dict[int, Spans]:
    """The outermost calls of each task that are transactions themselves; those inside them may name them."""
    roles, found = roles_of(process), defaultdict[int, list[_Served]](list)
    for block in process.events.blocks() if process.events else ():
        for event in process.events.events(block) if process.events else ():
            role = roles.get(event.intrinsic, 0)
            if event.task and role & SPAN:
                _put(found[event.task], event, bool(role & MARKED))
    return {task: _spans(served) for task, served in found.items()}


@dataclass
class _Served:
    """A call that is a transaction: its start, its end, and what names it."""

    start_ns: int
    end_ns: int
    name: int


def _spans(served: list[_Served]) -> Spans:
    return Spans([each.start_ns for each in served], [each.end_ns for each in served], [each.name for each in served])


def _put(served: list[_Served], event: Event, is_marked: bool) -> None:
    """Add a call that is a transaction. It replaces those inside it, which ended before."""
    name = BY_DETAIL | event.detail if event.detail else BY_INTRINSIC | event.intrinsic
    if served and served[-1].start_ns >= event.start_ns and not is_marked:
        name = served[-1].name
    while served and served[-1].start_ns >= event.start_ns:
        served.pop()
    served.append(_Served(event.start_ns, event.start_ns + event.wall_ns, name))
