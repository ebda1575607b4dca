"""All questions that can be asked of many experiments: those of analyses and of the first screen."""

from __future__ import annotations

from typing import Any

from interpose.analysis.partial import reductions
from interpose.analysis.partial.partial import Reduction
from interpose.reports.screen import many

SCREEN = "screen"
REDUCTIONS: dict[str, Reduction[Any]] = {
    **reductions.REDUCTIONS,
    SCREEN: many.SCREEN,
}
