"""Walks through an experiment with `interpose view`, without a terminal: Textual's pilot presses the keys."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from interpose.experiments.model.experiment import Experiment

TEXT = re.compile(r'<text [^>]*x="([\d.]+)" y="[\d.]+" textLength="[\d.]+" clip-path="[^"]*-line-(\d+)\)">(.*?)</text>')
TRIES = 600  # of 50 ms: long, for a busy machine


class Walk:
    """The view of an experiment, and what it shows."""

    def __init__(self, app: Any, pilot: Any) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other, and wait until each has had its effect."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    async def hold(self, key: str, times: int) -> None:
        """Press a key several times at once."""
        await self._pilot.press(*[key] * times)

    async def write(self, text: str) -> None:
        """Type a text and Enter."""
        for letter in text:
            await self._pilot.press({" ": "space"}.get(letter, letter))
        await self.press("enter")

    async def click(self, selector: str, offset: tuple[int, int], times: int = 1) -> None:
        """Click there."""
        await self._pilot.click(selector, offset=offset, times=times)
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was wanted is shown."""
        await self._pilot.pause()
        await self.until(lambda: self.app.is_settled)
        await self._pilot.pause()
        await self._pilot.pause()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until that holds."""
        for _ in range(TRIES):
            if holds():
                return
            await self._pilot.pause(0.05)
        raise AssertionError("it never held")

    async def resize(self, width: int, height: int) -> None:
        """Give the terminal another size."""
        await self._pilot.resize_terminal(width, height)
        await self.settle()

    def listing(self) -> Any:
        """The table, or the graph, of the tab that is shown."""
        return self.app.pane.body

    def lines(self) -> list[str]:
        """The lines of that table, all of them."""
        return self.listing().lines()

    def chosen(self) -> str:
        """The texts of the chosen row, with one space between."""
        listing = self.listing()
        return " ".join(listing.text_of(listing.row).split())

    def screen(self) -> list[str]:
        """The lines of the terminal."""
        lines: dict[int, dict[float, str]] = defaultdict(dict)
        for x, line, text in TEXT.findall(self.app.export_screenshot()):
            lines[int(line)][float(x)] = html.unescape(text).replace("\xa0", " ")
        return ["".join(lines[number][x] for x in sorted(lines[number])) for number in sorted(lines)]


@asynccontextmanager
async def opened(path: object, size: tuple[int, int] = (120, 30)) -> AsyncIterator[Walk]:
    """The experiment, opened in a terminal of that size."""
    from interpose.view.app import View

    app = View(Experiment(str(path)))
    async with app.run_test(size=size) as pilot:
        walk = Walk(app, pilot)
        await walk.settle()
        yield walk
