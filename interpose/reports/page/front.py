"""The page's header: the program, how it ended, whether the experiment is complete, and the totals."""

from __future__ import annotations

import time

from interpose.analysis.profile.memory import memories
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.units import SECOND_NS, duration, percent, size
from interpose.reports.page.grid import note, section
from interpose.reports.page.markup import Markup, element, joined
from interpose.reports.page.material import Material
from interpose.reports.screen.memory import memory_lines
from interpose.reports.screen.remarks import chosen
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.state import command_line, completeness, ending_in_words

SECTIONS = (
    ("summary", "Summary"),
    ("findings", "Findings"),
    ("time", "Time by kind"),
    ("timeline", "Timeline"),
    ("transactions", "Transactions"),
    ("calls", "Calls"),
    ("sources", "Sources"),
    ("programs", "CPU by program"),
)
_NOTES = 10


def front(material: Material) -> Markup:
    """The head of the page, with the way to its sections."""
    links = [element("a", title, href=f"#{name}") for name, title in SECTIONS]
    skip = element("a", "Skip to the report", href="#report", class_="skip")
    menu = element("button", "Sections", id="menu", type="button", aria_controls="sections", hidden=True)
    theme = element("button", "Theme: system", id="theme", type="button", hidden=True)
    name = element("h1", material.experiment.name)
    nav = element("nav", links, id="sections", aria_label="Sections")
    return joined([skip, element("header", [name, menu, nav, theme])])


def summary(material: Material) -> Markup:
    """The first section: what ran, and the figures of the whole."""
    accounts = material.survey.analysis.accounts
    log = material.experiment.founder.log
    screen = Screen(material.profiles["site"], material.now_s, 80, Paint(False))
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(min(log.time_ns, 2**61) / SECOND_NS))
    told = [
        element("code", command_line(material.experiment.founder)),
        f" · {ending_in_words(accounts[0].ending)} · began {began} · on {log.system.get('host', '?')}"
        f" · {completeness(screen.analysis)}",
    ]
    whole = material.survey.analysis.total
    calls = sum(row.sums.calls for row in material.profiles["site"].rows)
    figures = [
        ("elapsed", duration(elapsed_ns(screen.analysis)), elapsed_ns(screen.analysis)),
        ("thread time", duration(whole.wall_ns), whole.wall_ns),
        ("CPU", f"{duration(whole.cpu_ns)} · {percent(whole.cpu_ns, whole.wall_ns)}", whole.cpu_ns),
        ("calls, estimated" if screen.profile.estimate else "recorded calls", f"{calls:,}", calls),
        ("processes", f"{len(accounts):,}", len(accounts)),
        ("threads", f"{sum(len(each.threads) for each in accounts):,}", sum(len(each.threads) for each in accounts)),
    ]
    if found := memories(material.experiment):
        figures.append(("memory at its peak", size(found[0].peak_bytes), found[0].peak_bytes))
    cards = [
        element("div", [element("dt", name), element("dd", text, data_v=value, id=f"figure-{place}")])
        for place, (name, text, value) in enumerate(figures)
    ]
    grew = memory_lines(material.experiment, log.cwd)
    noted = [note(line) for line in (*material.experiment.notes[:_NOTES], *chosen(screen), *grew)]
    parts = [element("p", told, class_="told"), *noted, element("dl", cards, class_="cards")]
    return section("summary", "Summary", *parts)
