"""The engine of the rules: which there are, and which of what they find is worth telling."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings import (
    busy_polls,
    drivers,
    event_loops,
    failures,
    file_locks,
    files,
    locks,
    next_steps,
    statements,
    unseen_waits,
    waits,
)
from interpose.analysis.findings.finding import SLOW_SHARE, Finding, merged
from interpose.analysis.findings.survey import Survey

Rule = Callable[[Survey], Iterator[Finding]]

# Findings with smaller possible savings, as a share of the time that matters, are left out.
LEAST_SHARE = 0.01
# This rule tells what other programs did to this one.
OF_THE_MACHINE = "wait for CPU"
# A finding is left out if half of its time belongs to an earlier one, which is more specific.
RULES: tuple[Rule, ...] = (
    event_loops.awaits_one_by_one,
    statements.repeated_statements,
    statements.commits_one_by_one,
    statements.reconnects,
    busy_polls.busy_polls,
    files.work_repeated,
    files.tiny_transfers,
    files.forced_writes,
    event_loops.blocked,
    waits.sleeps,
    locks.deadlocks,
    locks.unreleased,
    waits.convoys,
    file_locks.file_locks,
    waits.turns,
    event_loops.turns,
    waits.interpreter_lock,
    drivers.waits_for_the_disk,
    drivers.waits_for_a_lock,
    failures.failed_calls,
    drivers.driver_computes,
    statements.slow_statement,
    waits.child_processes,
    event_loops.slow_awaits,
    waits.slow_calls,
    unseen_waits.unseen_waits,
    next_steps.computing,
    next_steps.computing_while_idle,
    next_steps.calls_without_lines,
)


def findings(analysis: Analysis) -> list[Finding]:
    """The findings of an analysis."""
    return found_in(Survey(analysis))


def found_in(survey: Survey, least_share: float = LEAST_SHARE, rules: tuple[Rule, ...] = RULES) -> list[Finding]:
    """The findings of a survey, largest possible savings first; a wait for CPU comes after the program's own
    causes that explain as much."""
    told = worth_telling(candidates(survey, rules), survey.matters_ns, least_share)
    first = _own_causes(survey, told)
    return sorted(told, key=lambda each: (each not in first, *_largest_first(each)))


def found_in_all(candidates: Iterable[Finding], matters_ns: int) -> list[Finding]:
    """The findings of several experiments, largest possible savings first, from the candidates of each."""
    return sorted(worth_telling(candidates, matters_ns, LEAST_SHARE), key=_largest_first)


def candidates(survey: Survey, rules: tuple[Rule, ...] = RULES) -> Iterator[Finding]:
    """All that the rules find, even below their floors: together with other experiments they may reach them."""
    for precedence, rule in enumerate(rules):
        for each in rule(survey):
            yield replace(each, precedence=precedence)


def worth_telling(candidates: Iterable[Finding], matters_ns: int, least_share: float) -> list[Finding]:
    """The findings that reach their floors, without those whose evidence is mostly in earlier ones."""
    told: list[Finding] = []
    claimed: dict[Hashable, Finding] = {}
    least_ns = max(least_share * matters_ns, 1)
    large = [each for each in candidates if each.is_large(matters_ns)]
    for _, of_rule in groupby(sorted(large, key=_precedence), _precedence):
        worth = [each for each in merged(of_rule) if each.bound_ns >= least_ns and not _is_claimed(each, claimed)]
        told += worth
        claimed |= {row.likeness: each for each in sorted(worth, key=_time_outside) for row in each.rows}
    return told


def _precedence(finding: Finding) -> int:
    return finding.precedence


def _largest_first(finding: Finding) -> tuple[int, str, str]:
    return -finding.bound_ns, finding.rule, finding.about


def _own_causes(survey: Survey, told: list[Finding]) -> list[Finding]:
    """The program's own large causes that explain as much of the time as the wait for CPU, which is the
    machine's part."""
    machine_ns = sum(each.bound_ns for each in told if each.rule == OF_THE_MACHINE)
    own = [each for each in told if each.rule != OF_THE_MACHINE]
    large = [each for each in own if each.bound_ns >= SLOW_SHARE * survey.matters_ns]
    return [each for each in large if unseen_waits.explained_ns(survey, each) >= machine_ns]


def _time_outside(finding: Finding) -> int:
    return finding.time_ns


def _is_claimed(finding: Finding, claimed: Mapping[Hashable, Finding]) -> bool:
    """Whether other findings about its calls explain at least half of its time: with the time of these calls, and with
    the others' time outside of calls, such as the time of awaits."""
    theirs = [row for row in finding.rows if row.likeness in claimed]
    others = {id(other): other for other in (claimed[row.likeness] for row in theirs)}
    taken_ns = sum(row.wall_ns for row in theirs) + sum(other.time_ns for other in others.values())
    return bool(theirs) and (2 * taken_ns >= finding.wall_ns)
