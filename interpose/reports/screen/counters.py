"""What the first screen says of counters: how much each has counted, and your own lines that had most of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from interpose.analysis.profile.counts import Counted, counted_in
from interpose.analysis.profile.margin import Count
from interpose.analysis.profile.profiled import NO_CODE, NOT_SAMPLED, application_line
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places, Shown
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import percent

_LINES, _LEAST = 2, 100  # how many lines are named, and of how much at least
_LEAST_PART = 0.1  # of the whole, for a line to be named


def counter_lines(experiment: Experiment, cwd: str, shown: Shown | None = None) -> Iterator[str]:
    """A line for each counter that was read."""
    by_name: dict[str, list[Counted]] = {}
    for each in counted_in(experiment):
        if each.is_read:
            by_name.setdefault(each.name, []).append(each)
    for name, found in by_name.items():
        whole = sum(each.total for each in found)
        label = name.replace("_", " ")
        yield clean(f" {label:<19}{whole:>12,}  {_where(found, whole, cwd, shown)}").rstrip()


def _where(found: list[Counted], whole: int, cwd: str, shown: Shown | None) -> str:
    sites: dict[Site, Count] = defaultdict(Count)
    for each in found:
        lines = each.divided(lambda frames, seen: application_line(frames), NOT_SAMPLED)
        for site, count in lines.items():
            sites[site].add(count)
    largest = sorted(sites, key=lambda site: -sites[site].count)[:_LINES]
    named = [site for site in largest if sites[site].count >= max(_LEAST_PART * whole, _LEAST)]
    places = Places([site.file for site in named if site.file], cwd, shown)
    return ", ".join(f"{_part(sites[site], whole)} {_name(site, places)}" for site in named)


def _part(count: Count, whole: int) -> str:
    """Its share of the whole; `~` before what samples divide."""
    return f"{'~' if count.margin else ''}{percent(count.count, whole)}"


def _name(site: Site, places: Places) -> str:
    return site.function if site in NO_CODE else f"{places.line(site)} {site.function}"
