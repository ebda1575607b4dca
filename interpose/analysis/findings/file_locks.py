"""Rules about the locks of files, for which processes wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from interpose.analysis.findings.finding import LARGE, Calls, Finding, found
from interpose.analysis.findings.survey import Survey, grouped, processes_of
from interpose.analysis.time.awaited import Span, covered_ns
from interpose.analysis.time.file_locks import OF_FILE
from interpose.analysis.time.turns import PLACE, calls_of
from interpose.experiments.model.process import Process


def file_locks(survey: Survey) -> Iterator[Finding]:
    """Waits at one line for the lock of a file, which another process, or another open of the file, has."""
    waits = [(each, OF_FILE.fullmatch(each.detail)) for each in survey.of_kind("sync") if each.site]
    waiting = [(each, lock["path"]) for each, lock in waits if lock and not lock["unlock"] and not lock["tries"]]
    for (path, site, intrinsic), pairs in grouped(waiting, lambda each: (each[1], each[0].site, each[0].intrinsic)):
        rows = [each for each, _ in pairs]
        holders = survey.file_locks.holders(path, intrinsic, site)
        lines = tuple(site for site, _ in holders.most_common())
        yield found(
            "file lock",
            rows,
            units=processes_of(rows),
            unit="process",
            about=path,
            held_at=lines,
            held_ns=holders.total(),
            floor=LARGE,
        )


def sleeps_in_lock(survey: Survey, rows: Sequence[Calls]) -> str:
    """The file whose lock the program had for most of these sleeps while others waited for it; else empty."""
    if rows[0].kind != "sleep":
        return ""
    wall_ns = sum(row.wall_ns for row in rows)
    held_ns: Counter[str] = Counter()
    for number, thread in set().union(*(row.threads for row in rows)):
        awaited = survey.file_locks.awaited((number, thread))
        slept = list(_spans(survey.analysis.accounts[number].process, thread, rows)) if awaited else []
        for path, held in awaited.items():
            held_ns[path] += covered_ns(slept) + covered_ns(held) - covered_ns([*slept, *held])
    return min((path for path, each in held_ns.items() if 2 * each > wall_ns), default="")


def _spans(process: Process, thread: int, rows: Sequence[Calls]) -> Iterator[Span]:
    made = {(row.intrinsic, row.site) for row in rows}

    @cache
    def is_one(number: int, stack: int) -> bool:
        return (process.intrinsic(number).name, process.own_line(stack)) in made

    for call in calls_of(process, lambda values: is_one(*values[PLACE])):
        if call.thread == thread:
            yield call.start_ns, call.end_ns
