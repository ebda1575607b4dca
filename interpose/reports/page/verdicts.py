"""The page's findings: each in words, with its evidence, its bound and what would have to be otherwise."""

from __future__ import annotations

from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.units import count, duration, percent
from interpose.reports.page.grid import ROWS_AT_MOST, note, section, shown
from interpose.reports.page.markup import Markup, element
from interpose.reports.page.material import Material
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences

_EVIDENCE = 5


def verdicts(material: Material) -> Markup:
    """The section of the findings."""
    found = material.findings
    if not found:
        return section("findings", "Findings", note("None: no rule found anything that takes 1 % of the time or more."))
    words = Sentences(found, material.experiment.founder.log.cwd, material.survey.matters_ns)
    kept = found[:ROWS_AT_MOST]
    items = [_verdict(each, words, material.survey.matters_ns) for each in kept]
    left = [note(f"{count(len(found) - len(kept), 'more finding')}.")] if len(found) > len(kept) else []
    in_turns = ", or idle while tasks waited for a turn" if material.survey.idle_in_turns_ns else ""
    explained = note(
        "The time beside a finding is an upper bound of what you could save; its share is of the"
        f" {duration(material.survey.matters_ns)} that are not idle{in_turns}. Several findings may rest on the same"
        " calls, so these times do not add up."
    )
    return section("findings", "Findings", element("ol", items, class_="findings"), *left, explained)


def _verdict(finding: Finding, words: Sentences, matters_ns: int) -> Markup:
    bound = [
        element("b", duration(finding.bound_ns), data_v=finding.bound_ns),
        f" {percent(finding.bound_ns, matters_ns)}",
    ]
    told = [
        element("h3", finding.rule),
        element("p", words.of(finding)),
        element("p", advice_for(finding), class_="advice"),
        *_evidence(finding, words),
    ]
    return element("li", [element("div", bound, class_="bound"), element("div", told)])


def _evidence(finding: Finding, words: Sentences) -> list[Markup]:
    """The rows that the finding is made from, those that took most first."""
    if not finding.rows:
        return []
    rows = [
        element(
            "li",
            f"{row.calls:,} x {row.intrinsic} at {words.line(row.site)}: {duration(row.wall_ns)}"
            + (f"  {shown(row.detail)}" if row.detail else ""),
        )
        for row in finding.rows[:_EVIDENCE]
    ]
    if len(finding.rows) > _EVIDENCE:
        rows.append(element("li", f"and {count(len(finding.rows) - _EVIDENCE, 'row')} more"))
    return [element("details", [element("summary", "evidence"), element("ul", rows)])]
