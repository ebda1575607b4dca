"""All questions that can be asked of many experiments: those of analyses, of the first screen, and of profiles."""

from __future__ import annotations

from typing import Any

from interpose.analysis.partial import reductions
from interpose.analysis.partial.partial import Reduction
from interpose.reports.screen import many, profiled

SCREEN = "screen"
REDUCTIONS: dict[str, Reduction[Any]] = {
    **reductions.REDUCTIONS,
    SCREEN: many.SCREEN,
    profiled.NAME: profiled.PROFILE,
}
