"""Rows of sampled functions and lines, beside those of recorded calls.

They replace the row `code`, the self time of calls that contain Python code, and waits for the interpreter lock outside
of other calls. So all rows together still add up to the thread time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.parts import CodePart, Part
from interpose.analysis.calls.profile import Profile, finished
from interpose.analysis.calls.rows import CODE, Row, closing_row, largest_first, ranked
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.profiled import NO_CODE, Profiled, function_of, innermost, moved_ns, profiled
from interpose.analysis.profile.weights import OUTSIDE_CALLS
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.stacks import Site

WITH_CODE = ("function", "site")  # groupings that have them


def with_code(made: Profile, by: str) -> Profile:
    """The profile, grouped by one of `WITH_CODE`, with the rows of sampled code."""
    assert made.analysis is not None
    return finished_with_code(reduced_with_code(made.part, made.analysis, by), by, made.analysis)


def reduced_with_code(part: Part, analysis: Analysis, by: str) -> Part:
    """The part with what samples say of the code; the one given does not change."""
    found = profiled(analysis)
    if not found.processes:
        return part
    spent = [spent for each in found.processes for (_, within), spent in each.totals() if within == OUTSIDE_CALLS]
    code = CodePart(
        [*(_by_function(found) if by == "function" else _by_site(found))],
        {site: code.cpu_ns for site, code in found.code(innermost).items()} if by == "function" else {},
        sum(each.wall_ns for each in spent),
        sum(each.cpu_ns for each in spent),
        len(found.processes),
    )
    return replace(part, rows=_without_moved(part.rows, found, by), code=code)


def finished_with_code(part: Part, by: str, analysis: Analysis | None = None) -> Profile:
    """The profile with the rows of calls and of code of `part`, sorted and closed."""
    made = finished(part, by, analysis)
    if not part.code.processes:
        return made
    code = _with_hottest(part.code) if by == "function" else part.code.rows
    calls = [row for row in made.rows if row.is_of_calls]
    others = [row for row in made.rows if not row.is_of_calls and row.kind != CODE]
    rows = sorted([*code, *calls], key=largest_first)
    return replace(made, rows=ranked([*rows, *_program_not_sampled(part), *others]))


def _with_hottest(code: CodePart) -> Iterator[Row]:
    """The rows of functions, each with its line that has the most CPU time."""
    hottest: dict[tuple[str, str], Site] = {}
    for site in sorted(code.lines, key=lambda site: (-code.lines[site], site.line)):
        hottest.setdefault(function_of((site,)), site)
    for row in code.rows:
        found = hottest.get((row.labels["function"], row.labels["file"]))
        yield replace(row, site=None if found in NO_CODE else found)


def _by_site(found: Profiled) -> Iterator[Row]:
    tasks = found.tasks(innermost)
    for site, code in found.code(innermost).items():
        yield row_of_line(site, code, tasks.get(site))


def _by_function(found: Profiled) -> Iterator[Row]:
    tasks = found.tasks(function_of)
    for function, code in found.code(function_of).items():
        yield row_of_function(function, code, tasks.get(function))


def row_of_line(site: Site, code: Code | None = None, tasks: dict[str, int] | None = None) -> Row:
    """The row of a line; without figures if none are given."""
    where = "" if site in NO_CODE else f"{site.file}:{site.line or UNKNOWN}"
    return _row({"site": where, "function": site.function}, site, code or Code(), tasks)


def row_of_function(function: tuple[str, str], code: Code | None = None, tasks: dict[str, int] | None = None) -> Row:
    """The row of a function, by its name and file; without figures if none are given."""
    return _row(dict(zip(("function", "file"), function, strict=True)), None, code or Code(), tasks)


def _row(labels: dict[str, str], site: Site | None, code: Code, tasks: dict[str, int] | None) -> Row:
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
    return [_less(row, *moved[row.likeness]) if row.likeness in moved else row for row in rows]


def _less(row: Row, wall_ns: int, cpu_ns: int) -> Row:
    sums = row.sums
    return replace(
        row, sums=replace(sums, self_wall_ns=sums.self_wall_ns - wall_ns, self_cpu_ns=sums.self_cpu_ns - cpu_ns)
    )


def _program_not_sampled(part: Part) -> Iterator[Row]:
    """The row `program` of processes that were not sampled."""
    wall_ns = part.total.program_wall_ns - part.code.spent_wall_ns
    cpu_ns = part.total.program_cpu_ns - part.code.spent_cpu_ns
    if wall_ns or cpu_ns:
        yield closing_row(CODE, wall_ns, cpu_ns, "between calls")
