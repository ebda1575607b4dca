"""What a traced call costs more than the same call untraced, in units of two bare clock reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "A call: what it costs more than untraced"

ROUNDS = 30
CALLS = 10_000  # fill twelve blocks, so the growth of the pool is in every round
TWO_READS = "two bare clock reads"
NO_SITE = {"INTERPOSE_STACK": "none"}
OWN_LINE = {"INTERPOSE_STACK": "own"}
IN_A_RING = {"INTERPOSE_STACK": "own", "INTERPOSE_RING": "4MiB"}
BY_WRAPT = {"INTERPOSE_BY": "wrapt"}


@dataclass(frozen=True)
class Way:
    """A way of timing a call: untraced, with these settings, or by wrapt; what it must reach."""

    intrinsic: str
    settings: dict[str, str] | None = None
    wrapper: str = ""
    reach: str = ""


WAYS = {
    "without site": Way("write", NO_SITE, reach="at most 2.5 x"),
    "own line": Way("write", OWN_LINE),
    "own line, in a ring": Way("write", IN_A_RING),
    "own line beneath 3 library frames": Way("write_deep", OWN_LINE),
    "own line and statement": Way("execute", OWN_LINE),
    "own line, by wrapt": Way("write", BY_WRAPT),
    "wrapt, two clocks": Way("write", wrapper="wrapt"),
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """A row for each way of tracing a call, and how many times dearer a wrapt wrapper is."""
    untraced = {way.intrinsic: Way(way.intrinsic) for way in WAYS.values()}
    subjects = {name: partial(_run, environments, way) for name, way in (WAYS | untraced).items()}
    given = take_turns(subjects, effort.turns)
    least_ns = {name: min(turn["call_ns"] for turn in turns) for name, turns in given.items()}
    two_reads_ns = 2 * min(turn["bare_ns"] for turns in given.values() for turn in turns)
    added_ns = {name: least_ns[name] - least_ns[way.intrinsic] for name, way in WAYS.items()}
    return [Row(TWO_READS, f"{two_reads_ns:.0f} ns"), *_rows(added_ns, two_reads_ns)]


def _rows(added_ns: dict[str, float], two_reads_ns: float) -> list[Row]:
    rows = [
        Row(name, f"+{added:,.0f} ns", times(added / two_reads_ns), TWO_READS, WAYS[name].reach)
        for name, added in added_ns.items()
    ]
    line_ns = added_ns["own line"] - added_ns["without site"]
    dearer = added_ns["wrapt, two clocks"] / added_ns["own line"]
    return [
        *rows,
        Row("the own line alone", f"{line_ns:+.0f} ns", reach="at most 60 ns"),
        Row("wrapt, two clocks", f"+{added_ns['wrapt, two clocks']:,.0f} ns", times(dearer), "own line"),
    ]


def _run(environments: Environments, way: Way) -> dict[str, float]:
    words = [way.wrapper] if way.wrapper else []
    given: dict[str, float] = environments.run(
        "calls.py", way.intrinsic, ROUNDS, CALLS, *words, traced=way.settings
    )
    return given
