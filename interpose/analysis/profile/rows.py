"""Rows of sampled functions and lines, beside those of recorded calls.

They replace the row `code`, the self time of calls that contain Python code, and waits for the interpreter lock outside
of other calls. So all rows together still add up to the thread time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import Profile
from interpose.analysis.calls.rows import CODE, Row, closing_row, largest_first, ranked
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.profiled import GIL, NO_CODE, Profiled, function_of, innermost, moved_ns, profiled
from interpose.analysis.profile.weights import OUTSIDE_CALLS
from interpose.experiments.model.process import UNKNOWN, Site

WITH_CODE = ("function", "site")  # groupings that have them


def with_code(made: Profile, by: str) -> Profile:
    """The profile, grouped by one of `WITH_CODE`, with the rows of sampled code."""
    found = profiled(made.analysis)
    if not found.processes:
        return made
    code = _by_function(found) if by == "function" else _by_site(found)
    calls = _without_moved((row for row in made.rows if row.is_of_calls), found, by)
    others = [row for row in made.rows if not row.is_of_calls and row.kind != CODE]
    rows = sorted([*code, *calls], key=largest_first)
    return replace(made, rows=ranked([*rows, *_program_not_sampled(made, found), *others]))


def _by_site(found: Profiled) -> Iterator[Row]:
    tasks = found.tasks(innermost)
    for site, code in found.code(innermost).items():
        where = "" if site in NO_CODE else f"{site.file}:{site.line or UNKNOWN}"
        yield _row({"site": where, "function": site.function}, site, code, tasks.get(site))


def _by_function(found: Profiled) -> Iterator[Row]:
    tasks = found.tasks(function_of)
    for each in found.by_function():
        labels = {"function": each.site.function, "file": each.site.file}
        yield _row(labels, each.site, each.code, tasks.get(function_of((each.site,))))


def _row(labels: dict[str, str], site: Site, code: Code, tasks: dict[str, int] | None) -> Row:
    times = Sums(wall_ns=code.wall_ns, cpu_ns=code.cpu_ns, self_wall_ns=code.wall_ns, self_cpu_ns=code.cpu_ns)
    known = None if site in NO_CODE else site
    return Row(CODE, None, labels, known, sums=times, is_of_calls=False, code=code, tasks=tasks or {})


def _without_moved(rows: Iterable[Row], found: Profiled, by: str) -> list[Row]:
    """The rows of calls without the self time that rows of code have."""
    moved: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for each in found.processes:
        for record, _, _ in each.moved:
            key = dict(zip(("thread", "intrinsic", "stack"), record.key, strict=False))
            times = moved[GROUPINGS[by].row_of(each.process, key).likeness]
            wall_ns, cpu_ns = moved_ns(record)
            times[0] += wall_ns
            times[1] += cpu_ns
    kept = [_less(row, *moved[row.likeness]) if row.likeness in moved else row for row in rows]
    return [row for row in kept if row.kind != GIL or row.sums.self_wall_ns]


def _less(row: Row, wall_ns: int, cpu_ns: int) -> Row:
    sums = row.sums
    return replace(
        row, sums=replace(sums, self_wall_ns=sums.self_wall_ns - wall_ns, self_cpu_ns=sums.self_cpu_ns - cpu_ns)
    )


def _program_not_sampled(made: Profile, found: Profiled) -> Iterator[Row]:
    """The row `program` of processes that were not sampled."""
    spent = [spent for each in found.processes for (_, within), spent in each.spent.items() if within == OUTSIDE_CALLS]
    wall_ns = made.total.program_wall_ns - sum(each.wall_ns for each in spent)
    cpu_ns = made.total.program_cpu_ns - sum(each.cpu_ns for each in spent)
    if wall_ns or cpu_ns:
        yield closing_row(CODE, wall_ns, cpu_ns, "between the calls")
