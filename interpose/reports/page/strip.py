"""The page's time-line: its data for the script, and the text if no script runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from interpose.analysis.calls.groupings import process_label, thread_label
from interpose.analysis.time.sampled_states import STATES
from interpose.analysis.time.timeline import Lane, Timeline
from interpose.analysis.time.usage import Usage
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import count, duration
from interpose.reports.page.anchors import Anchors
from interpose.reports.page.grid import note, section, shown
from interpose.reports.page.markup import Markup, data, element
from interpose.reports.page.material import Material

FULL = 255


def strip(material: Material, anchors: Anchors) -> Markup:
    """The section of the time-line."""
    made = material.timeline
    remarks = [
        f"{count(len(made.lanes), 'thread')}, slices of {duration(made.slice_ns)}. The {len(made.calls):,} longest"
        " calls appear one by one when you zoom in; click a call to see its line in the sources. In the upper chart,"
        " drag to select a time range. In the lanes, drag to move; zoom with Ctrl and the wheel, or with two fingers."
    ]
    if not any(each.events for each in material.experiment.processes):
        remarks = ["Not recorded: calls were consolidated during the run (record without INTERPOSE_CONSOLIDATE)."]
    if any(state in lane.kinds for lane in made.lanes for state in STATES):
        remarks.append(
            " Between calls the lanes show samples: code that runs, that waits for CPU, and waits without a"
            " known cause. Samples within requests and imports are shown, too."
        )
    if made.is_estimated:
        remarks.append(" Estimated: where calls are very many, their sums are spread evenly.")
    if made.left_out:
        remarks.append(f" {count(made.left_out, 'more thread')} with less time in calls: not shown.")
    hidden = element("noscript", note("The timeline needs JavaScript."))
    canvas = element(
        "canvas",
        id="lanes",
        tabindex="0",
        role="img",
        aria_label="What each thread did when. Keys: + and - zoom, arrows move, 0 shows all.",
        aria_describedby="range",
    )
    zooms = [
        element("button", text, type="button", data_zoom=factor)
        for text, factor in (("Zoom in", "0.5"), ("Zoom out", "2"), ("Show all", "0"))
    ]
    parts = [
        element("div", id="legend", class_="legend"),
        element("div", zooms, id="zooms", class_="tools", hidden=True),
        element("div", id="activity"),
        element("div", [canvas, element("div", id="tip", hidden=True)], id="strip"),
        element("p", id="range", class_="note"),
        element("p", id="chosen", aria_live="polite"),
        hidden,
        note(*remarks),
        data("timeline-data", timeline_data(made, material.usages, material.experiment.founder.log.cwd, anchors)),
    ]
    return section("timeline", "Timeline", *parts)


def timeline_data(made: Timeline, usages: Sequence[Usage], cwd: str, anchors: Anchors) -> dict[str, Any]:
    """The time-line for the script: times in nanoseconds from its beginning, slices as bytes of 0 to 255, in base64."""
    are_several = len({lane.process for lane in made.lanes}) > 1
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(shown(clean(text)), len(texts))

    own = [made.lanes[call.lane].process.own_line(call.stack) for call in made.calls]
    places = Places({site.file for site in own if site}, cwd)
    calls = []
    for call, site in zip(made.calls, own, strict=True):
        process = made.lanes[call.lane].process
        intrinsic = process.intrinsic(call.intrinsic)
        where = places.named(site) if site else ""
        told = (intrinsic.kind, intrinsic.name, where, process.string(call.detail), anchors.of(site) or "")
        numbers = (number(text) for text in told)
        calls.append([call.lane, call.start_ns, call.wall_ns, call.cpu_ns, *numbers])
    return {
        "slice": made.slice_ns,
        "slices": made.slices,
        "lanes": [_lane(lane, made, are_several) for lane in made.lanes],
        "calls": calls,
        "texts": list(texts),
        "cpu": busy(made, usages),
    }


def _lane(lane: Lane, made: Timeline, are_several: bool) -> dict[str, Any]:
    process, thread = process_label(lane.process), thread_label(lane.process, lane.thread)
    tid, _, name = thread.partition(" ")
    return {
        "name": shown(clean(f"{process} · {name or tid}" if are_several else name or tid)),
        "about": shown(clean(f"process {process} · thread {thread}")),
        "start": lane.start_ns - made.start_ns,
        "end": lane.end_ns - made.start_ns,
        "kinds": {clean(kind): _packed(slices, made.slice_ns) for kind, slices in lane.kinds.items()},
    }


def _packed(slices: Sequence[int], slice_ns: int) -> str:
    """Each slice as a byte: its share of 255, at least 1 if it is not 0."""
    return b64encode(bytes(min(-(-FULL * ns // slice_ns), FULL) for ns in slices)).decode()


def busy(made: Timeline, usages: Sequence[Usage]) -> list[float | None]:
    """How many processors the processes used, slice by slice, from the samples of the overview; None if none was."""
    used: list[float | None] = [None] * made.slices
    for usage in usages:
        begin = usage.start_ns - made.start_ns
        first = max(begin // made.slice_ns, 0)
        last = min((begin + usage.elapsed_ns) // made.slice_ns, made.slices - 1)
        rate = usage.used["cpu_ns"] / usage.elapsed_ns if usage.elapsed_ns > 0 else 0.0
        for place in range(first, last + 1):
            within = min(begin + usage.elapsed_ns, (place + 1) * made.slice_ns) - max(begin, place * made.slice_ns)
            used[place] = round((used[place] or 0.0) + rate * max(within, 0) / made.slice_ns, 3)
    return used
