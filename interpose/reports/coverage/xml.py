"""Coverage as Cobertura's XML has it: packages of files, with their lines."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TextIO
from xml.sax.saxutils import quoteattr

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import Line, Module
from interpose.reports.formats.table import clean


def write(coverage: Coverage, place: str, out: TextIO, version: str) -> None:
    """Write the report to `out`, paths as from the directory `place`."""
    modules = [module for module in coverage.modules if module.table]
    packages: dict[str, list[Module]] = defaultdict(list)
    for module in modules:
        packages[os.path.dirname(module.path_from(place)) or "."].append(module)
    out.write('<?xml version="1.0" ?>\n')
    head = {"version": f"interpose {version}", "timestamp": int(time.time() * 1000)}
    out.write(f"<coverage{_attributes(**head, **_totals(modules))}>\n")
    out.write(f"<sources><source>{_text(place)}</source></sources>\n<packages>\n")
    for directory, found in sorted(packages.items()):
        out.write(f"<package{_attributes(name=directory.strip('/').replace('/', '.'), **_rates(found))}>\n<classes>\n")
        for module in found:
            out.writelines(f"{line}\n" for line in _class(module, place))
        out.write("</classes>\n</package>\n")
    out.write("</packages>\n</coverage>\n")


def _class(module: Module, place: str) -> Iterator[str]:
    path = module.path_from(place)
    yield f"<class{_attributes(name=os.path.basename(path), filename=path, **_rates([module]))}>"
    yield "<methods/>"
    yield "<lines>"
    for line in module.lines.values():
        hits = {"number": line.number, "hits": line.hits}
        yield f"<line{_attributes(**hits, **_branches(line))}/>"
    yield "</lines>"
    yield "</class>"


def _branches(line: Line) -> dict[str, object]:
    ways = line.branches
    if not ways:
        return {}
    gone = sum(ways.values())
    found = {"branch": "true", "condition-coverage": f"{100 * gone // len(ways)}% ({gone}/{len(ways)})"}
    if gone < len(ways):
        missing = ("exit" if to == EXIT else str(to) for to, was_gone in ways.items() if not was_gone)
        found["missing-branches"] = ",".join(missing)
    return {**found}


def _counts(modules: Iterable[Module]) -> tuple[int, int, int, int]:
    """Lines, executed lines, branches, taken branches."""
    lines = [line for module in modules for line in module.lines.values()]
    ways = [was_gone for line in lines for was_gone in line.branches.values()]
    return len(lines), sum(line.executed > 0 for line in lines), len(ways), sum(ways)


def _rates(modules: Iterable[Module]) -> dict[str, object]:
    lines, hit, ways, gone = _counts(modules)
    return {"line-rate": rate(hit, lines), "branch-rate": rate(gone, ways) if ways else "0", "complexity": 0}


def _totals(modules: list[Module]) -> dict[str, object]:
    lines, hit, ways, gone = _counts(modules)
    valid = {"lines-valid": lines, "lines-covered": hit, "branches-valid": ways, "branches-covered": gone}
    return {**valid, **_rates(modules)}


def rate(part: int, whole: int) -> str:
    """Four digits, as coverage.py has them: 0 is nothing, and 1 is all."""
    if part in (0, whole):
        return "1" if part == whole else "0"
    return f"{min(max(part / whole, 0.0001), 0.9999):.4g}"


def _attributes(**values: object) -> str:
    return "".join(f" {name}={quoteattr(clean(str(value)))}" for name, value in values.items())


def _text(text: str) -> str:
    return quoteattr(clean(text))[1:-1]
