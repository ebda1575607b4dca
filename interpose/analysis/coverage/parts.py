"""Coverage of one experiment or of several, before it is told by module: partial results, which can be merged.

If the text of a file differs between experiments, what was seen of each text stays apart until all are merged. Then the
text of the latest experiment counts, and those with another one are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from interpose.analysis.coverage.gathering import Made, Seen
from interpose.experiments.model.sources import Sought

Experiment = tuple[int, str]  # when it began, and its name


@dataclass
class Version:
    """What was seen of one text of a file, and in which experiments; `sought` is as the latest of them has it."""

    experiments: list[Experiment]
    sought: Sought
    seen: Seen

    @property
    def text(self) -> str | None:
        """The text; None if it is missing."""
        return self.sought.source.text if self.sought.source else None


@dataclass
class CoveragePart:
    """What was recorded: the versions of each file by its path, and code that was generated, by module.

    `codes` is the number of code objects, `in_context` how many of them ran in a context that was asked for.
    `left_out` is the number of code objects for which there was no room, `missed` why something was not recorded.
    `pythons` are the versions of Python. `was_asked` says that coverage was to be recorded, `wanted` of what.
    """

    files: dict[str, list[Version]] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    codes: int = 0
    in_context: int = 0
    left_out: int = 0
    with_branches: bool = False
    from_lines: bool = False
    missed: list[str] = field(default_factory=list)
    pythons: set[str] = field(default_factory=set)
    was_asked: bool = False
    wanted: str = ""


@dataclass
class File:
    """A source file of the program: its path, what was seen of it, and its text or why it is missing."""

    path: str
    seen: Seen
    sought: Sought


def merged(parts: Iterable[CoveragePart]) -> CoveragePart:
    """One part of all; those given do not change."""
    whole = CoveragePart()
    for part in parts:
        for path, versions in part.files.items():
            _add_versions(whole.files.setdefault(path, []), versions)
        for name, made in part.made.items():
            into = whole.made.setdefault(name, Made())
            into.known |= made.known
            into.executed |= made.executed
        whole.codes += part.codes
        whole.in_context += part.in_context
        whole.left_out += part.left_out
        whole.with_branches |= part.with_branches
        whole.from_lines |= part.from_lines
        whole.missed = list(dict.fromkeys([*whole.missed, *part.missed]))
        whole.pythons |= part.pythons
        whole.was_asked |= part.was_asked
        whole.wanted = whole.wanted or part.wanted
    return whole


def _add_versions(into: list[Version], more: Iterable[Version]) -> None:
    for each in more:
        alike = next((known for known in into if known.text == each.text), None)
        if alike is None:
            alike = Version([], each.sought, Seen())
            into.append(alike)
        is_later = not alike.experiments or max(each.experiments) > max(alike.experiments)
        alike.sought = each.sought if is_later else alike.sought
        alike.experiments = sorted([*alike.experiments, *each.experiments])
        alike.seen.merge(each.seen)


def latest_files(part: CoveragePart) -> Iterator[File]:
    """The files, each with the text of the latest experiment."""
    for path, versions in part.files.items():
        latest = max(versions, key=lambda each: max(each.experiments))
        yield File(path, latest.seen, latest.sought)


def notes_on(part: CoveragePart) -> Iterator[str]:
    """Which experiments are left out, and what was not recorded."""
    for path, versions in part.files.items():
        latest, *others = sorted(versions, key=lambda each: max(each.experiments), reverse=True)
        for each in others:
            why = "not known whether it was the same text" if None in (latest.text, each.text) else "another text"
            yield from (f"{path}: {why} in {name}, which is left out" for _, name in reversed(each.experiments))
    if part.left_out:
        yield f"incomplete: for {part.left_out:,} code objects there was no room"
    yield from (f"not recorded: {why}" for why in part.missed)

