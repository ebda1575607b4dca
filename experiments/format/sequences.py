"""Which blocks were seen. Sequences have no gaps, so there is a bit for each, in pages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

PAGE = 256


class Sequences:
    """A set of sequences of blocks."""

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}

    def __contains__(self, sequence: int) -> bool:
        return bool(self._pages.get(sequence // PAGE, 0) >> sequence % PAGE & 1)

    def add(self, sequence: int) -> bool:
        """Take it in; returns whether it was not in there."""
        page, bit = self._pages.get(sequence // PAGE, 0), 1 << sequence % PAGE
        self._pages[sequence // PAGE] = page | bit
        return not page & bit


class Ranges:
    """A set of numbers that nearly follow each other, as ranges: the first and the last of each."""

    def __init__(self, found: Iterable[tuple[int, int]] = ()) -> None:
        self.found = sorted(found)

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self.found, (number + 1,)) - 1
        return place >= 0 and number <= self.found[place][1]

    def add(self, number: int) -> None:
        """Take it in."""
        if number in self:
            return
        place = bisect_left(self.found, (number,))
        first = last = number
        if place < len(self.found) and self.found[place][0] == number + 1:
            last = self.found.pop(place)[1]
        if place and self.found[place - 1][1] == number - 1:
            place -= 1
            first = self.found.pop(place)[0]
        self.found.insert(place, (first, last))
