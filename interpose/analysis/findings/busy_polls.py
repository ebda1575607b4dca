"""The rule about busy loops that ask again and again whether something has happened: a file is there, a child has
ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from interpose.analysis.findings.errors import ANSWERS, name_of
from interpose.analysis.findings.finding import LARGE, Calls, Finding, found
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.analysis.recording.children import Children, children_of
from interpose.analysis.time.turns import PLACE, Call, calls_of, has_events
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

FILE, CHILD = "file", "child process"
NAMED = 3  # so many programs of children are named
# Fewer questions, or with longer between them, are no busy loop: it sleeps, or does something else.
ASKED_AT_LEAST = 1000
BETWEEN_NS = 1_000_000
# Where the questions take less of the time, the loop does something else, and asks meanwhile.
LEAST_SHARE = 0.1
_ASKING = frozenset(("stat", "lstat", "access", "open", "FileIO"))
_WAITING = frozenset(("waitpid", "wait3", "wait4", "waitid"))
# A wait that blocks is one for each child.
_OF_A_CHILD = 10


def busy_polls(survey: Survey) -> Iterator[Finding]:
    """The same question from one line, nearly each time with the same answer, and nothing else in between."""
    experiment = survey.analysis.experiment
    asked = [each for each in survey.of_kind("file") if asks_in_vain(each) and not each.is_of_many]
    asked += [each for each in survey.of_kind("process") if each.verb in _WAITING and _is_dense(each)]
    for (detail, _, kind), rows in grouped(asked, lambda each: (each.detail, each.site, each.kind)):
        living = [each for each in children_of(experiment) if each.wall_ns and _lived(each, rows)]
        lives = sum(len(each.lives) for each in living)
        if kind == "process" and (not lives or total_of(rows)[0] < _OF_A_CHILD * lives):
            continue
        lasted_ns = _lasted_ns(rows)
        yield found(
            "busy poll",
            rows,
            time_ns=max(lasted_ns - total_of(rows)[1], 0),
            unit=FILE if kind == "file" else CHILD,
            about=detail,
            meanwhile=", ".join(each.program for each in living[:NAMED]),
            polled_cpu_ns=_used_ns(survey, rows, lasted_ns),
            floor=LARGE,
        )


def asks_in_vain(each: Calls) -> bool:
    """Whether these are a busy loop that asks for a file which is not there, until it is."""
    failed = sum(calls for error, (calls, _) in each.failures.items() if name_of(error) in ANSWERS)
    return each.verb in _ASKING and _is_dense(each) and 1 <= each.calls - failed <= len(each.threads)


def _is_dense(each: Calls) -> bool:
    is_one = each.site is not None and each.site.own and len(each.threads) == len(each.seen_ns)
    lasted_ns = _lasted_ns([each])
    is_often = each.calls >= ASKED_AT_LEAST and lasted_ns < each.calls * BETWEEN_NS
    return is_one and is_often and each.wall_ns >= LEAST_SHARE * lasted_ns


def _lasted_ns(rows: Sequence[Calls]) -> int:
    """From the first to the last question, in all processes."""
    return sum(last_ns - first_ns for row in rows for first_ns, last_ns in row.seen_ns.values())


def _lived(children: Children, rows: Sequence[Calls]) -> bool:
    """Whether one of them lived for most of that time."""
    for life in children.lives:
        for row in rows:
            first_ns, last_ns = row.seen_ns.get(life.parent, (0, 0))
            if 2 * (min(life.end_ns or last_ns, last_ns) - max(life.start_ns, first_ns)) > last_ns - first_ns > 0:
                return True
    return False


def _used_ns(survey: Survey, rows: Sequence[Calls], lasted_ns: int) -> int:
    """The CPU time of the loop: by the events that were read, or that of the calls alone."""
    used_ns = read_ns = 0
    made = {(row.intrinsic, row.site) for row in rows}
    for number in {number for row in rows for number in row.seen_ns}:
        process = survey.analysis.experiment.processes[number]
        if has_events(process) and (calls := _calls(process, made)):
            used_ns += calls[-1].end_cpu_ns - calls[0].start_cpu_ns
            read_ns += calls[-1].end_ns - calls[0].start_ns
    cpu_ns = sum(row.cpu_ns for row in rows)
    return max(min(used_ns * lasted_ns // read_ns, lasted_ns), cpu_ns) if read_ns else cpu_ns


def _calls(process: Process, made: set[tuple[str, Site | None]]) -> list[Call]:
    @cache
    def is_one(number: int, stack: int) -> bool:
        return (process.intrinsic(number).name, process.own_line(stack)) in made

    return list(calls_of(process, lambda values: is_one(*values[PLACE])))
