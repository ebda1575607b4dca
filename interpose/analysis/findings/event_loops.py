"""Rules about event loops: what blocked them while other tasks waited, and awaits one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from interpose.analysis.findings.finding import LARGE, Calls, Finding, Floor, found, spared_ns
from interpose.analysis.findings.row_locks import held_meanwhile
from interpose.analysis.findings.statements import goes_on, is_control
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.analysis.time.awaited import Awaited, covered_ns
from interpose.analysis.time.blocks_of_loops import Block, Named
from interpose.analysis.time.turns import NATIVE_SELECTORS
from interpose.experiments.model.stacks import Site

# Fewer of one statement in a task may be steps that differ; fewer in all are not worth a change.
TIMES_IN_A_TASK = 5
AWAITS_AT_LEAST = 20
# A task that did other things for longer may have waited for its work, and not for these answers.
AWAITS_SHARE = 0.5
# The code of a task that blocks its loop comes before a call at a line, or after one; or it was sampled there, or all
# that is known is the transaction.
BEFORE, AFTER, AT, WITHIN = "block before", "block", "block at", "block within"
# What waits for its turn.
TASK = "waiting task"
# The unit of waits of a loop that is only known by its native calls.
NATIVE_LOOP = "native"
# These make requests on the network; other awaits may wait for anything.
REQUESTS = frozenset(("send", "request"))


def blocked(survey: Survey) -> Iterator[Finding]:
    """Calls, or code, of one task that kept an event loop while other tasks waited."""
    for (about, intrinsic, site, unit), alike in grouped(survey.blocks, lambda block: _cause(survey, block)):
        wall_ns = sum(each.wall_ns for each in alike)
        rows = _rows_of(survey, (name for each in alike for name in each.calls))
        yield found(
            "blocked event loop",
            rows,
            wall_ns,
            time_ns=max(wall_ns - total_of(rows)[1], 0),
            units=len(alike),
            unit=unit,
            about=about,
            intrinsic=intrinsic,
            site=site,
            longest_ns=max(each.wall_ns for each in alike),
            waiting=max(each.waiting for each in alike),
        )


def _cause(survey: Survey, block: Block) -> tuple[str, str, Site | None, str]:
    """What blocked: the transaction or task, the call, its line or that of the code, and where the code is to it."""
    if block.line:
        return block.owner, "", block.line, AT
    if block.transaction and not (block.site and block.site.own and block.site not in survey.lines_of_loops):
        return block.owner, "", None, WITHIN  # a line of a library or of the loop tells less than the transaction
    return block.owner, block.intrinsic, block.site, BEFORE if block.is_before else AFTER


def awaits_one_by_one(survey: Survey) -> Iterator[Finding]:
    """Statements or requests that a task awaited one after the other, from one line. Tasks that awaited only a few
    there may have done so at the same time, and do not count."""
    floor = Floor(AWAITS_AT_LEAST, TIMES_IN_A_TASK)
    for each in (each.in_tasks_with(TIMES_IN_A_TASK) for each in survey.awaited):
        calls, tasks = len(each.spans), len(each.tasks)
        if calls and _is_request(each) and each.sum_ns >= AWAITS_SHARE * each.tasks_ns:
            rows, wall_ns, facts = _evidence(survey, [each])
            unit = "transaction" if any(row.transaction for row in rows) else "task"
            bound_ns = spared_ns(wall_ns, calls, tasks)
            facts |= {"units": tasks, "made": calls}
            made = found("awaits one by one", rows, bound_ns, unit=unit, about=each.detail, **facts)
            yield replace(made, floor=floor)


def turns(survey: Survey) -> Iterator[Finding]:
    """Tasks that wait at one line for their turn, as threads do; the waits of a loop's tasks overlap."""
    for place, alike in grouped(survey.waits_for_turns, lambda each: each.place):
        rows, wall_ns = _rows_of(survey, [place]), min(sum(each.wall_ns for each in alike), survey.matters_ns)
        tasks, calls = sum(len(each.tasks) for each in alike), sum(each.calls for each in alike)
        facts = {"time_ns": max(wall_ns - total_of(rows)[1], 0), "each_ns": sum(each.sum_ns for each in alike) // calls}
        yield found("waits for a turn", rows, wall_ns, units=tasks, unit=TASK, made=calls, **facts, floor=LARGE)


def slow_awaits(survey: Survey) -> Iterator[Finding]:
    """Calls awaited at one line for much of the time, and what loops waited for that is in no recorded await. Timers
    count for as long as the loop waited, too."""
    for _, alike in grouped([*survey.awaited, *survey.slept], lambda each: (each.site, each.intrinsic)):
        rows, wall_ns, facts = _evidence(survey, alike)
        holders = held_meanwhile(survey, rows, wall_ns, sum(each.sum_ns for each in alike))
        yield found("slow awaits", rows, wall_ns, **facts, floor=LARGE, **holders)
    known_ns = covered_ns(span for each in (*survey.awaited, *survey.slept) for span in each.meanwhile or each.spans)
    known_ns += survey.awaited_at_most_ns
    for is_native, rows in grouped(survey.waits_of_loops, lambda each: each.intrinsic in NATIVE_SELECTORS):
        _, waited_ns = total_of(rows)
        if waited_ns > known_ns:
            unit = NATIVE_LOOP if is_native else ""
            yield found("waits of event loop", rows, waited_ns - known_ns, unit=unit, floor=LARGE)


def _is_request(each: Awaited) -> bool:
    """Whether something was asked for that could have been asked for together with others."""
    if each.kind == "db":
        return bool(each.detail) and not is_control(each.detail) and not goes_on(each.intrinsic)
    return each.intrinsic.rpartition(".")[2] in REQUESTS


def _evidence(survey: Survey, alike: list[Awaited]) -> tuple[list[Calls], int, dict[str, int]]:
    """The calls that were awaited, for how long (no longer than what matters), and what more a finding has."""
    spans = (span for each in alike for span in each.meanwhile or each.spans)
    wall_ns = min(covered_ns(spans), survey.matters_ns)
    rows = _rows_of(survey, ((each.intrinsic, each.site) for each in alike))
    details = {each.detail for each in alike}
    if details != {""}:
        rows = [row for row in rows if row.detail in details]
    each_ns = sum(each.sum_ns for each in alike) // sum(len(each.spans) for each in alike)
    return rows, wall_ns, {"time_ns": max(wall_ns - total_of(rows)[1], 0), "each_ns": each_ns}


def _rows_of(survey: Survey, names: Iterable[Named]) -> list[Calls]:
    wanted = set(names)
    return [each for each in survey.calls if (each.intrinsic, each.site) in wanted]
