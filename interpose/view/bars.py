"""Where the frames of a flame graph are in a terminal: in which line, and from which column to which."""

from __future__ import annotations

from typing import NamedTuple

from interpose.analysis.profile.flame import Flame


class Bar(NamedTuple):
    """A frame, by its number, and its columns in the line of its depth: from `left` up to before `right`."""

    frame: int
    left: int
    right: int


class Bars:
    """The frames of a flame graph, with what is above, below and beside each."""

    def __init__(self, flame: Flame) -> None:
        self.flame = flame
        self._above: list[int] = []
        self._below: list[list[int]] = []
        path: list[int] = []
        for number, frame in enumerate(flame.frames):
            del path[frame.depth :]
            self._above.append(path[-1] if path else -1)
            self._below.append([])
            if path:
                self._below[path[-1]].append(number)
            path.append(number)

    def laid(self, zoomed: int, width: int) -> list[list[Bar]]:
        """The lines of a graph of `width` columns, the frame `zoomed` as wide as all; frames without a column are left
        out."""
        around = set(self.path(zoomed))
        whole = self.flame.frames[zoomed]
        lines: list[list[Bar]] = [[] for _ in range(1 + max(each.depth for each in self.flame.frames))]
        for number, frame in enumerate(self.flame.frames):
            if number in around:
                lines[frame.depth].append(Bar(number, 0, width))
            elif whole.start_ns <= frame.start_ns < whole.start_ns + whole.width_ns and frame.depth > whole.depth:
                since_ns, whole_ns = frame.start_ns - whole.start_ns, max(whole.width_ns, 1)
                left, right = since_ns * width // whole_ns, (since_ns + frame.width_ns) * width // whole_ns
                if right > left:
                    lines[frame.depth].append(Bar(number, left, right))
        while len(lines) > 1 and not lines[-1]:
            lines.pop()
        return lines

    def path(self, number: int) -> list[int]:
        """The frame and those above it, the outermost last."""
        found = [number]
        while self._above[found[-1]] >= 0:
            found.append(self._above[found[-1]])
        return found

    def above(self, number: int) -> int:
        """The caller of a frame; itself if it is the whole."""
        return max(self._above[number], 0)

    def below(self, number: int) -> int:
        """The widest frame that a frame called; itself without any."""
        return max(self._below[number], key=lambda each: self.flame.frames[each].width_ns, default=number)

    def beside(self, number: int, step: int) -> int:
        """The next frame of the same depth, to the right (1) or to the left (-1); itself at the end."""
        depth = self.flame.frames[number].depth
        place = number + step
        while 0 <= place < len(self.flame.frames):
            if self.flame.frames[place].depth == depth:
                return place
            place += step
        return number

    def like(self, other: Bars, number: int) -> int:
        """The frame that has the same functions above it as the frame `number` of another graph, as far as it has."""
        at = 0
        for each in reversed(other.path(number)[:-1]):
            wanted = other.flame.frames[each].function
            below = [place for place in self._below[at] if self.flame.frames[place].function == wanted]
            if not below:
                break
            at = below[0]
        return at
