"""Findings in programs whose cause is known: how often the cause is named, first or at all, and how much else is."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from importlib.util import find_spec

import pytest
from planted.programs import PROGRAMS, Program

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Survey
from interpose.reports.formats.units import percent
from interpose.reports.screen.verdict import FINDINGS, WORTH

pytestmark = [pytest.mark.slow, pytest.mark.planted]

# They say what the machine did, or that there is nothing else; no program is planted without them.
ALWAYS_TRUE = frozenset(("wait for CPU", "computing"))


@dataclass(frozen=True)
class Verdict:
    """What the first screen says of a program: the rules of its findings, and which of them name the cause."""

    program: Program
    rules: list[str]
    right: list[bool]

    @property
    def named(self) -> bool:
        """Whether the cause is among them; of a program without a cause, whether none is."""
        return any(self.right) if self.program.causes else not self.rules

    def __str__(self) -> str:
        told = [rule if right else f"{rule} (wrong)" for rule, right in zip(self.rules, self.right, strict=True)]
        return f"{'   ' if self.named else 'NOT'} {self.program.name}: {', '.join(told) or 'nothing'}"


def is_cause(finding: Finding, program: Program) -> bool:
    """Whether a finding names a planted cause, and its line."""
    sites = [finding.site, *(row.site for row in finding.rows)]
    lines = {0, *(site.line for site in sites if site)}
    return any((finding.rule, line) in program.causes for line in lines)


def verdict_of(program: Program, traced) -> Verdict:
    done = traced(program.source, INTERPOSE_SAMPLE="off")
    assert (done.returncode, done.stderr) == (0, "")
    survey = Survey(Analysis(done.experiment))
    told = [each for each in found_in(survey) if each.bound_ns >= WORTH * survey.matters_ns][:FINDINGS]
    told = [each for each in told if is_cause(each, program) or each.rule not in ALWAYS_TRUE]
    return Verdict(program, [each.rule for each in told], [is_cause(each, program) for each in told])


def can_run(program: Program) -> bool:
    """Whether its packages are installed and its server answers."""
    if not all(map(find_spec, program.packages)):
        return False
    try:
        if program.server:
            socket.create_connection(program.server, timeout=5).close()
    except OSError:
        return False
    return True


def test_the_cause_is_named_and_little_else(traced, capsys):
    programs = [each for each in PROGRAMS if can_run(each)]
    verdicts = [verdict_of(each, traced) for each in programs]
    slow = [each for each in verdicts if each.program.causes]
    named, first = sum(each.named for each in slow), sum(each.right[:1] == [True] for each in slow)
    findings, right = sum(len(each.right) for each in verdicts), sum(sum(each.right) for each in verdicts)
    with capsys.disabled():
        print("", *verdicts, sep="\n")
        print("not run, for want of packages or a server:", len(PROGRAMS) - len(programs))
        print(f"recall: {named} of {len(slow)} causes named, {percent(named, len(slow))}; {first} of them first")
        print(f"precision: {right} of {findings} findings right, {percent(right, findings)}")

    assert len(slow) >= 30 and len(verdicts) - len(slow) >= 10
    assert named >= 0.95 * len(slow)
    assert right >= 0.9 * findings
