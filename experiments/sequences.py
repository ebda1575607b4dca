"""Which blocks have been seen: sequences have no gaps, so a bit for each is enough, in pages where any are."""

from __future__ import annotations

PAGE = 256


class Sequences:
    """A set of sequences of blocks."""

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}

    def __contains__(self, sequence: int) -> bool:
        return bool(self._pages.get(sequence // PAGE, 0) >> sequence % PAGE & 1)

    def add(self, sequence: int) -> bool:
        """Take it in; gives whether it was not in there."""
        page, bit = self._pages.get(sequence // PAGE, 0), 1 << sequence % PAGE
        self._pages[sequence // PAGE] = page | bit
        return not page & bit
