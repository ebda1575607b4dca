"""What interpose costs beside those who record calls, too: VizTracer, cProfile, ddtrace and OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from calls import CALLS
from environments import CHECKOUT, HERE, Environments
from measuring import Effort, Row, take_turns, times
from served import PEERS as SERVICE_PEERS
from served import Agent
from start import start_ms

TITLE = "Calls, orders, threads and a start, beside others who record calls"

UNTRACED, OURS = "untraced", "interpose"
ROUNDS = 10
LAUNCHER = str(HERE / "programs" / "under_peer.py")


class Peer(NamedTuple):
    """A peer: what is installed for it, the words between the interpreter and the program, and whether it records
    calls of databases only."""

    packages: tuple[str, ...]
    words: tuple[str, ...]
    only_databases: bool = False


PEERS = {
    "VizTracer": Peer(("viztracer",), ("-m", "viztracer", "--quiet", "-o", "trace.json", "--")),
    "cProfile": Peer((), ("-m", "cProfile", "-o", "profile")),
    **{name: Peer(packages, (LAUNCHER, name), True) for name, packages in SERVICE_PEERS.items()},
}


class Subject(NamedTuple):
    """What is measured: a program and its words, how its turns become one figure, its unit, and the target's ratio or
    difference."""

    program: str
    words: tuple[object, ...]
    figure: Callable[[list[Any]], float]
    unit: str
    reach: str
    has_databases: bool = True


def _least_call(turns: list[dict[str, float]]) -> float:
    return min(turn["call_ns"] for turn in turns)


SUBJECTS = {
    "os.write": Subject("calls.py", ("write", ROUNDS, CALLS), _least_call, "ns", "+60 ns", has_databases=False),
    "sqlite3.Cursor.execute": Subject("calls.py", ("execute", ROUNDS, CALLS), _least_call, "ns", "+65 ns"),
    "orders, no wait": Subject("orders.py", (CHECKOUT / "examples", "no-wait"), min, "ms", "1.08 x"),
    "four threads, a call": Subject("threads.py", (ROUNDS, 2000, 4), min, "ns", "1.08 x"),
    "python pass.py": Subject("pass.py", (), median, "ms", "+4.5 ms"),
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """For each subject a row for each way of recording; who records nothing of it is left out."""
    peers = {name: peer for name, peer in PEERS.items() if environments.has_peer(name, *peer.packages)}
    with Agent() as agent:
        return [
            row
            for name, subject in SUBJECTS.items()
            for row in _measure(environments, effort, name, subject, peers, {"DD_TRACE_AGENT_URL": agent})
        ]


def _start_ms(environments: Environments, traced: Mapping[str, str] | None = None, under: Sequence[str] = ()) -> float:
    return start_ms(environments, environments.with_interpose, traced, (*under, str(HERE / "programs" / "pass.py")))


def _measure(
    environments: Environments,
    effort: Effort,
    name: str,
    subject: Subject,
    peers: Mapping[str, Peer],
    variables: Mapping[str, str],
) -> list[Row]:
    run = partial(environments.run, subject.program, *subject.words, variables=variables)
    if subject.program == "pass.py":
        run = partial(_start_ms, environments)
    ways: dict[str, Callable[[], Any]] = {UNTRACED: run, OURS: partial(run, traced={})}
    for each, peer in peers.items():
        if subject.has_databases or not peer.only_databases:
            ways[each] = partial(run, under=peer.words)
    given = {each: subject.figure(turns) for each, turns in take_turns(ways, effort.turns).items()}
    untraced = given.pop(UNTRACED)
    rows = [Row(f"{name}, {UNTRACED}", f"{untraced:,.1f} {subject.unit}")]
    for each, figure in given.items():
        more = f"{figure - untraced:+,.1f} {subject.unit}"
        reach = subject.reach if each == OURS else ""
        rows.append(Row(f"{name}, {each}", more, times(figure / untraced), UNTRACED, reach))
    return rows
