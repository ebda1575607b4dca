"""The page's pie of CPU time by program, and its table: milliseconds and per cent."""

from __future__ import annotations

from interpose.legacy.mashzone import milliseconds, share
from interpose.legacy.programs import Program
from interpose.reports.formats.short_paths import Places
from interpose.reports.page.drawings import pie, slice_class
from interpose.reports.page.grid import Field, grid, note, section
from interpose.reports.page.markup import Markup, element
from interpose.reports.page.material import Material

_HITS = "calls; what a call itself calls for its database, network, process or lock counts as part of it"


def shares(material: Material) -> Markup:
    """The section of the programs."""
    rows = list(enumerate(material.programs))
    places = Places([row.name for row in material.programs], material.experiment.founder.log.cwd)
    cpu_ns = sum(row.cpu_ns for row in material.programs)

    def named(row: Program) -> str:
        return f"{places.file(row.name)} ({row.part})" if row.part else places.file(row.name)

    fields = [
        Field("key", drawn=lambda row: element("span", "", class_=f"chip {slice_class(row[0])}")),
        Field("program", lambda row: named(row[1])),
        Field("CPU", lambda row: f"{milliseconds(row[1].cpu_ns):,.3f} ms", lambda row: row[1].cpu_ns),
        Field("share", lambda row: f"{share(row[1].cpu_ns, cpu_ns):.2f} %", lambda row: row[1].cpu_ns),
        Field("wall", lambda row: f"{milliseconds(row[1].wall_ns):,.3f} ms", lambda row: row[1].wall_ns),
        Field("hits", lambda row: f"{row[1].calls:,}" if row[1].calls else "", lambda row: row[1].calls, _HITS),
    ]
    drawn = pie([(named(row), row.cpu_ns) for row in material.programs]) if cpu_ns else note("No CPU time.")
    more = "interpose report --format mashzone has all of them."
    table = grid("table-programs", "CPU time by program", fields, rows, more=more)
    explained = note(
        "A source has the CPU time of the calls made from its lines; what a script did between recorded calls is a row"
        f" of its own. Hits are {_HITS}. The same table as a sheet for dashboards: interpose report --format mashzone."
    )
    beside = element("div", [drawn, element("div", [table])], class_="beside")
    return section("programs", "CPU by program", beside, explained)
