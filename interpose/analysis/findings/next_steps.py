"""Rules about what this recording does not show: what the program computes, calls without lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from interpose.analysis.calls.groupings import program_label
from interpose.analysis.consolidation.merging import is_merged
from interpose.analysis.findings.files import reopened
from interpose.analysis.findings.finding import BY_CHANCE_NS, LARGE, Finding, Inner, found
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.analysis.profile.profiled import IMPORTS, LIBRARIES, OWN_CODE, Function, Part, function_of
from interpose.analysis.recording.left_out import has_lost, left_out
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE

# A program that computes less than this share of the time has its problem elsewhere.
COMPUTES_SHARE = 0.3
# A function with this part of such a program's CPU time is worth a look.
HOT_SHARE = 0.1
# A library function with this part of the CPU time of the function that called it is named.
INNER_SHARE = 0.25
# A function is said to compute itself if its own code has this part of its CPU time.
OWN_SHARE = 0.9
# Imports with this part of it are named instead of the functions that execute them.
IMPORTS_SHARE = 0.5
# A call that waits for work and uses less than this does nothing else.
WORKS_NS = 1_000_000
# Units of findings about a program. LINES: its lines were traced, which makes them slower. CALLS: some calls were not
# recorded, and may have taken that time. END: the time is Python's own, after the program's last line.
LINES, CALLS, END = "line", "call", "end"


def computing(survey: Survey) -> Iterator[Finding]:
    """A program whose code, also in requests and transactions, uses CPU for much of the time: the functions that have
    most of it or, if none is known, none stands out, or its lines were traced, the program."""
    has_lines = any("lines" in each.process.log.recorded for each in survey.analysis.accounts)
    used: Counter[str] = Counter()
    labels = [program_label(each.process) for each in survey.analysis.accounts]
    for (process, _), cpu_ns in survey.code_cpu_ns.items():
        used[labels[process]] += cpu_ns
    for profile in survey.profiled.processes:  # nothing says what ran after the last samples
        used[program_label(profile.process)] -= sum(spent.cpu_ns for spent in profile.unsampled.values())
    others = {program_label(each.process) for each in survey.analysis.accounts if not each.process.log.is_python}
    merged = any(is_merged(each.process) for each in survey.analysis.accounts)
    blocking_ns = sum(each.wall_ns for each in survey.blocks if not each.intrinsic)
    for program, cpu_ns in used.most_common(1):
        is_told = 2 * blocking_ns > cpu_ns  # with its lines, as code that blocked an event loop
        matters_ns = min(survey.matters_ns, survey.elapsed_ns) - survey.code_waited_for_cpu_ns
        if not is_told and cpu_ns >= COMPUTES_SHARE * matters_ns:
            unit = LINES if has_lines else CALLS if left_out(survey.analysis.accounts) else ""
            functions = [] if has_lines else list(_hot_functions(survey, HOT_SHARE * cpu_ns))
            is_sampled = bool(survey.profiled.processes) and not has_lines
            made = found("computing", (), time_ns=cpu_ns, about=program, unit=unit)
            made = replace(made, is_sampled=is_sampled, is_python=program not in others, is_merged=merged)
            yield from functions or [made]
            ends_ns = sum(each.end_cpu_ns for each in survey.profiled.processes)
            if ends_ns >= max(HOT_SHARE * cpu_ns, BY_CHANCE_NS):
                yield found("computing", (), time_ns=ends_ns, about=program, unit=END)


def _hot_functions(survey: Survey, least_ns: float) -> Iterator[Finding]:
    """The functions of the application with more CPU time than its margin, library code below them included: the chain
    of lines that mostly calls each, and what has most of it, with the line that called that."""
    unit = CALLS if has_lost(survey.analysis.accounts) else ""
    for each in survey.profiled.by_application_function():
        if each.is_known and each.code.is_supported and each.code.cpu_ns >= least_ns:
            about = f"{each.site.file}:{each.site.function}"
            made = found("computing", (), time_ns=each.code.cpu_ns, about=about, unit=unit)
            function = function_of((each.site,))
            site, inner = _mostly_in(survey.profiled.parts_of(function), each)
            callers, again = survey.profiled.callers_of(function), reopened(survey, function)
            yield replace(made, site=site, callers=callers, inner=inner, reopened=again)


def _mostly_in(parts: list[Part], function: Function) -> tuple[Site, tuple[Inner, ...]]:
    """What has the CPU time of `function`, and its line for that: imports, if they are most of it; the library function
    that is a large part; else its own code and what else has some. Only what its samples support is told."""
    whole_ns = function.code.cpu_ns
    of_kind = [_sum_of(what, parts) for what in (OWN_CODE, IMPORTS, LIBRARIES)]
    supported = [each for each in of_kind if each.code.is_supported]
    imports = [each for each in supported if each.what == IMPORTS and each.code.cpu_ns >= IMPORTS_SHARE * whole_ns]
    named = imports or sorted(supported, key=lambda each: -each.code.cpu_ns)
    library = next((each for each in parts if each.what == LIBRARIES and each.code.is_supported), None)
    if library and not imports and library.code.cpu_ns >= INNER_SHARE * whole_ns:
        share = library.code.cpu_ns / whole_ns
        return library.line, (Inner(library.sites.most_common(1)[0][0], share, LIBRARIES),)
    site = named[0].line if named else function.site
    return site, tuple(Inner(None, each.code.cpu_ns / whole_ns, each.what) for each in named)


def _sum_of(what: str, parts: Iterable[Part]) -> Part:
    whole = Part(what)
    for each in parts:
        if each.what == what:
            whole.code.add(each.code)
            whole.lines += each.lines
    return whole


def computing_while_idle(survey: Survey) -> Iterator[Finding]:
    """Calls from one line that waited for work, and also computed: to unpickle it, and to import modules for it."""
    for (site, intrinsic), rows in grouped(survey.of_kind(IDLE), lambda each: (each.site, each.intrinsic)):
        cpu_ns = min(sum(each.cpu_ns for each in rows), survey.matters_ns)
        made, _ = total_of(rows)
        if cpu_ns >= made * WORKS_NS:
            yield found(
                "computing while idle", (), time_ns=cpu_ns, intrinsic=intrinsic, site=site, made=made, floor=LARGE
            )


def calls_without_lines(survey: Survey) -> Iterator[Finding]:
    """Calls without a line, because INTERPOSE_STACK was none."""
    settings = (each.process.log.settings for each in survey.analysis.accounts)
    if any(each.get("INTERPOSE_STACK") == "none" for each in settings):
        rows = [each for each in survey.calls if each.site is None]
        if total_of(rows)[0]:
            yield found("no lines", rows)
