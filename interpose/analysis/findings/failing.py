"""Calls that mostly failed in the function that sleeps: it probably sleeps to try them again."""

from __future__ import annotations

from collections.abc import Sequence

from interpose.analysis.findings.errors import failures_of
from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.lock_waits import path_tried
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.experiments.model.stacks import Site


def failed_beside(survey: Survey, rows: Sequence[Calls]) -> tuple[Calls, ...]:
    """If these are sleeps at a line of the program: the calls of one intrinsic from the same function, if at least half
    of them failed, and at least half as often as the program slept: then it probably sleeps because they failed.
    Attempts to take the lock of a file are compared with the sleeps alone. Calls that connect inside other calls count,
    too: the outer call ends well if another attempt does."""
    site, sleeps = rows[0].site, total_of(rows)[0]
    if rows[0].kind != "sleep" or not site or not site.own:
        return ()
    beside = [each for each in (*survey.calls, *survey.inner_connects) if _is_in(each, site.file, site.function)]
    best: tuple[Calls, ...] = ()
    for (_, is_lock), calls in grouped(beside, lambda each: (each.intrinsic, bool(path_tried(each)))):
        failed = number_failed(calls)
        of_all = 0 if is_lock else total_of(calls)[0]  # who gets a lock does not sleep, and may try again
        is_retried = not is_lock or (2 * sleeps >= failed and _sleep_between(beside, calls, site))
        if is_retried and 2 * failed >= max(of_all, sleeps) and failed > number_failed(best):
            best = tuple(calls)
    return best


def number_failed(rows: Sequence[Calls]) -> int:
    """How many of these calls failed."""
    return sum(calls for row in rows for calls, _ in failures_of(row).values())


def _sleep_between(beside: Sequence[Calls], tries: Sequence[Calls], site: Site) -> bool:
    """Whether the sleeps of this line may be between the attempts. A package that makes the attempts at lines of the
    program also sleeps at these lines; other lines then sleep for other reasons."""
    lines = {each.site for each in tries}
    return site in lines or not any(each.kind == "sleep" and each.site in lines for each in beside)


def _is_in(each: Calls, file: str, function: str) -> bool:
    return each.site is not None and (each.site.file, each.site.function) == (file, function)
