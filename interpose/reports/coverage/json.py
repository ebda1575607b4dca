"""Coverage as coverage.py's JSON report has it (its format 3), with the statements of several on a line besides."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, TextIO

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import MISSED, Line, Module
from interpose.reports.coverage.tables import shown_percent

FORMAT = 3
_Object = dict[str, Any]


def write(coverage: Coverage, place: str, out: TextIO, version: str, with_branches: bool, with_contexts: bool) -> None:
    """Write the report to `out`, paths as from the directory `place`."""
    modules = [module for module in coverage.modules if module.table]
    files = {module.path_from(place): _file(module, with_branches, with_contexts) for module in modules}
    json.dump(
        {
            "meta": {
                "format": FORMAT,
                "version": f"interpose {version}",
                "timestamp": datetime.now().isoformat(),
                "branch_coverage": with_branches,
                "show_contexts": with_contexts,
            },
            "files": files,
            "totals": _summary(modules, with_branches),
        },
        out,
    )
    out.write("\n")


def _file(module: Module, with_branches: bool, with_contexts: bool) -> _Object:
    lines = module.lines.values()
    found: _Object = {
        "executed_lines": [line.number for line in lines if line.executed],
        "summary": _summary([module], with_branches),
        "missing_lines": [line.number for line in lines if line.status == MISSED],
        "excluded_lines": sorted(module.table.excluded) if module.table else [],
    }
    if with_contexts:
        found["contexts"] = {str(line): names for line, names in sorted(module.contexts.items())}
    if with_branches:
        found["executed_branches"] = [way for line in lines for way in _ways(line, True)]
        found["missing_branches"] = [way for line in lines for way in _ways(line, False)]
    return found


def _ways(line: Line, wanted: bool) -> list[list[int]]:
    """From where to where; for the exit minus the first line of the code."""
    ways = ((to, was_gone) for to, was_gone in line.branches.items() if was_gone == wanted)
    return [[line.number, -line.code_line if to == EXIT else to] for to, _ in ways]


def _summary(modules: list[Module], with_branches: bool) -> _Object:
    lines = [line for module in modules for line in module.lines.values()]
    covered = sum(line.executed > 0 for line in lines)
    percent = _percent(covered, len(lines))
    found: _Object = {
        "covered_lines": covered,
        "num_statements": len(lines),
        "percent_covered": percent,
        "percent_covered_display": shown_percent(percent).removesuffix(" %"),
        "missing_lines": len(lines) - covered,
        "excluded_lines": sum(len(module.table.excluded) for module in modules if module.table),
        "percent_statements_covered": percent,
        "percent_statements_covered_display": shown_percent(percent).removesuffix(" %"),
        "statements": sum(line.statements for line in lines),
        "executed_statements": sum(line.executed for line in lines),
    }
    if with_branches:
        found |= _branch_summary(lines, covered)
    return found


def _branch_summary(lines: list[Line], covered: int) -> _Object:
    """The branches; `percent_covered` is then of lines and branches together, as coverage.py has it."""
    ways = [was_gone for line in lines for was_gone in line.branches.values()]
    percent = _percent(covered + sum(ways), len(lines) + len(ways))
    of_branches = _percent(sum(ways), len(ways))
    return {
        "percent_covered": percent,
        "percent_covered_display": shown_percent(percent).removesuffix(" %"),
        "num_branches": len(ways),
        "num_partial_branches": sum(line.executed > 0 and not all(line.branches.values()) for line in lines),
        "covered_branches": sum(ways),
        "missing_branches": len(ways) - sum(ways),
        "percent_branches_covered": of_branches,
        "percent_branches_covered_display": shown_percent(of_branches).removesuffix(" %"),
    }


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0
