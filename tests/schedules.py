"""Schedules of threads whose CPU time by function is known, and what a sampler from outside sees of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from interpose.experiments.model.sampled import NOT_READ
from tests.build import START_NS, Build, event

MS = 1_000_000
RUNS, WAITS, READY, RECORDS = 1, 2, 3, 4


@dataclass
class Schedule:
    """Segments of a thread, one after the other: what it does (`run`, `wait`, `call`, `wait in call`), in which
    function, and for how long; what is preempted is ready to run and has no processor (`ready`)."""

    segments: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def wall_ns(self) -> int:
        return sum(ns for _, _, ns in self.segments)

    def of(self, *what: str) -> Counter[str]:
        """The time of each function in segments of this kind."""
        found: Counter[str] = Counter()
        for each, function, ns in self.segments:
            if each in what:
                found[function] += ns
        return found


def put_thread(
    build: Build,
    schedule: Schedule,
    random: Random,
    *,
    thread: int = 1,
    lost: float | dict[str, float] = 0.0,
    unread: dict[str, float] | None = None,
    tick_ns: int = 1,
    only: int | None = None,
    sampled_ns: float = float("inf"),
) -> None:
    """Put a thread into `build` that lived as `schedule` says, with its events, and samples taken at random intervals
    around 10 ms. A part of these is `lost`, or their stacks are `unread`, perhaps of some functions alone; or there are
    `only` those in one state, or those until `sampled_ns`. The kernel counts CPU time at each switch and once in
    `tick_ns`."""
    names = sorted({name for _, name, _ in schedule.segments})
    main = ("app.py", 1, "main")
    stacks = {name: build.sampled_stack(main, ("app.py", line, name)) for line, name in enumerate(names, 2)}
    query = build.intrinsic("sqlite3.Cursor.execute", "db") if not build.intrinsics else 1
    now = cpu = delay = 0
    next_sample = random.uniform(0, 15 * MS)
    events, calls = [], 0
    for what, function, ns in schedule.segments:
        state = RUNS if what in ("run", "call") else READY if what == "ready" else WAITS
        is_running, is_call = what in ("run", "call"), what in ("call", "wait in call")
        while next_sample < now + ns:
            into = int(next_sample) - now
            is_lost = random.random() < (lost.get(function, 0.0) if isinstance(lost, dict) else lost)
            is_unread = unread is not None and random.random() < unread.get(function, 0.0)
            if only in (None, state) and not is_lost and next_sample <= sampled_ns:
                build.thread_sample(
                    START_NS + int(next_sample),
                    cpu_ns=cpu + into // tick_ns * tick_ns if is_running else cpu,
                    run_delay_ns=delay + into if what == "ready" else delay,
                    state=state,
                    stack=NOT_READ if is_unread else stacks[function],
                    thread=thread,
                    **({"call": calls + 1, "intrinsic": query} if is_call else {}),
                )
            next_sample += random.uniform(5 * MS, 15 * MS)
        if is_call:
            calls += 1
            events.append(event(now, ns, ns if is_running else 0, call=calls, thread=thread, intrinsic=query))
        cpu += ns if is_running else 0
        delay += ns if what == "ready" else 0
        now += ns
    build.events(events)
    counted = {"recorded": calls, "made": calls, "run_delay_ns": delay}
    build.thread(end_ns=START_NS + now, end_cpu_ns=cpu, tid=thread, main=thread == 1, **counted)


def phases(random: Random, functions: int = 4, seconds: float = 3.0) -> Schedule:
    """Functions run in phases of tenths of a second."""
    return _turns(random, functions, seconds, 80 * MS, 400 * MS)


def turns(random: Random, functions: int = 4, seconds: float = 10.0) -> Schedule:
    """Functions take turns of a millisecond or so."""
    return _turns(random, functions, seconds, MS // 2, 2 * MS)


def _turns(random: Random, functions: int, seconds: float, least: int, most: int) -> Schedule:
    liking = [random.random() + 0.05 for _ in range(functions)]
    made, taken = Schedule(), 0
    while taken < seconds * 1e9:
        function = random.choices(range(functions), liking)[0]
        made.segments.append(("run", f"f{function}", random.randint(least, most)))
        taken += made.segments[-1][2]
    return made


def mostly_waiting(random: Random, functions: int = 4, seconds: float = 20.0) -> Schedule:
    """It computes for a millisecond or so and then waits, in calls or not, for nine."""
    liking = [random.random() + 0.05 for _ in range(functions)]
    made, taken = Schedule(), 0
    while taken < seconds * 1e9:
        function = f"f{random.choices(range(functions), liking)[0]}"
        waiting = random.choice(("wait", "wait in call", "wait in call"))
        run_ns, wait_ns = random.randint(MS // 2, 2 * MS), random.randint(5 * MS, 13 * MS)
        made.segments += [("run", function, run_ns), (waiting, function, wait_ns)]
        taken += run_ns + wait_ns
    return made


def with_calls(random: Random, functions: int = 4, seconds: float = 10.0) -> Schedule:
    """It computes in functions, in calls, and is preempted now and then."""
    liking = [random.random() + 0.05 for _ in range(functions)]
    made, taken = Schedule(), 0
    while taken < seconds * 1e9:
        function = f"f{random.choices(range(functions), liking)[0]}"
        what = random.choices(("run", "call", "ready", "wait in call"), (6, 2, 1, 1))[0]
        made.segments.append((what, function, random.randint(MS // 2, 6 * MS)))
        taken += made.segments[-1][2]
    return made


KINDS = {"phases": phases, "turns": turns, "mostly waiting": mostly_waiting, "with calls": with_calls}
