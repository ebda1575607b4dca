"""Limits on the calls of a test: reading its marks, counting its calls, and the message of a failure."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from interpose.config import levels
from interpose.config.values import parse_one_in, parse_record
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import KINDS, ON_REQUEST
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import count

PATTERNS = ("kind", "intrinsic", "detail")
SHOWN_AT_MOST = 10
LONGEST_DETAIL = 100


@dataclass(frozen=True)
class Limit:
    """At most so many calls of a kind, or of intrinsics and details that match patterns; empty patterns match all."""

    most: int
    kind: str = ""
    intrinsic: str = ""
    detail: str = ""

    def matches(self, kind: str, intrinsic: str, detail: str | None) -> bool:
        """Whether a call counts; `detail` is None if unknown."""
        if detail is None:
            detail = "" if not self.detail else "\0"
        pairs = ((self.kind, kind), (self.intrinsic, intrinsic), (self.detail, detail))
        return all(not pattern or fnmatchcase(text, pattern) for pattern, text in pairs)

    def __str__(self) -> str:
        texts = (f"{name} {getattr(self, name)}" for name in PATTERNS if getattr(self, name))
        return ", ".join(texts) or "any kind"


def limits_of(arguments: tuple[object, ...], words: dict[str, object]) -> Iterator[Limit]:
    """The limits of a mark with these arguments. Raises ValueError for an invalid one."""
    patterns = {name: words[name] for name in PATTERNS if name in words}
    by_kind = {name: most for name, most in words.items() if name not in PATTERNS}
    for name in by_kind:
        if name not in KINDS:
            raise ValueError(f"{name!r} is not one of {', '.join(KINDS)}")
    for name, pattern in patterns.items():
        if not isinstance(pattern, str) or not pattern:
            raise ValueError(f"{name} must be a pattern, not {pattern!r}")
    if patterns.get("kind", "db") not in KINDS:
        raise ValueError(f"{patterns['kind']!r} is not one of {', '.join(KINDS)}")
    if len(arguments) > 1 or (patterns and not arguments) or not (arguments or by_kind):
        raise ValueError("must be of the form db=5, or 5, intrinsic='sqlite3.*'")
    for most in (*arguments, *by_kind.values()):
        if type(most) is not int or most < 0:
            raise ValueError(f"{most!r} is not a number of 0 or more")
    yield from (Limit(int(str(most)), **{name: str(text) for name, text in patterns.items()}) for most in arguments)
    yield from (Limit(int(str(most)), kind) for kind, most in by_kind.items())


def why_unseen(limit: Limit, texts: Mapping[str, str]) -> str:
    """Why calls cannot be counted for a limit with these settings; empty if they can."""
    kinds = levels.parse_kinds(texts["INTERPOSE_KINDS"]) or {kind: levels.usual_level(kind) for kind in KINDS}
    any_kind = [level for kind, level in kinds.items() if kind not in ON_REQUEST]
    levels_asked = [kinds[limit.kind]] if limit.kind else any_kind
    without = {
        "INTERPOSE": "calls" not in parse_record(texts["INTERPOSE"]),
        "INTERPOSE_KINDS": levels.OFF in levels_asked,
        "INTERPOSE_CONSOLIDATE": texts["INTERPOSE_CONSOLIDATE"] == "1",
        "INTERPOSE_RING": texts["INTERPOSE_RING"] != "off",
        "INTERPOSE_INTERVAL": texts["INTERPOSE_INTERVAL"] != "off",
        "INTERPOSE_TRANSACTIONS": parse_one_in(texts["INTERPOSE_TRANSACTIONS"]) > 0,
    }
    return next((f"{name}={texts[name]}" for name, is_so in without.items() if is_so), "")


def unchecked(limited: Sequence[pytest.Item]) -> warnings.WarningMessage:
    """The warning that these tests have limits that nobody checks."""
    have = f"{count(len(limited), 'test')} {'has' if len(limited) == 1 else 'have'}"
    text = f"{have} max_calls, which was not checked: add --interpose"
    file, line, _ = limited[0].location
    return warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, file, (line or 0) + 1)


Call = tuple[str, str, str | None, int]  # kind, intrinsic, detail, stack; without a detail it was only counted


def counted(process: Process) -> dict[int, int]:
    """The number of untimed calls so far, by the number of the intrinsic."""
    return dict(process.counts)


def calls_between(process: Process, begin_ns: int, end_ns: int, before: dict[int, int]) -> Counter[Call]:
    """The calls of a process that began between two monotonic times and have ended, and untimed calls beyond those
    counted `before`."""
    found: Counter[Call] = Counter()
    for event in _events_since(process, begin_ns):
        if begin_ns <= event.start_ns <= end_ns:
            intrinsic = process.intrinsic(event.intrinsic)
            found[intrinsic.kind, intrinsic.name, process.string(event.detail), event.stack] += 1
    for number, times in process.counts.items():
        if times > before.get(number, 0):
            intrinsic = process.intrinsic(number)
            found[intrinsic.kind, intrinsic.name, None, 0] += times - before.get(number, 0)
    return found


def _events_since(process: Process, begin_ns: int) -> Iterator[Event]:
    """The events of the blocks with calls that ended since then."""
    file = process.events
    for place, head in file.heads() if file else ():
        block = file.block(place) if file and head.last_ns >= begin_ns else None
        if file and block:
            yield from file.events(block)


def told(limit: Limit, calls: Counter[Call], process: Process, cwd: str) -> str:
    """The message if there were more calls of the process than the limit, with the lines that made them, relative to
    `cwd`; otherwise empty."""
    matching = {call: times for call, times in calls.items() if limit.matches(*call[:3])}
    total = sum(matching.values())
    if total <= limit.most:
        return ""
    by_line: Counter[tuple[str, str | None, Site | None]] = Counter()
    for (_, intrinsic, detail, stack), times in matching.items():
        by_line[intrinsic, detail, process.own_line(stack)] += times
    rows = by_line.most_common()
    places = Places(process.files(), cwd)
    lines = [f"max_calls: {count(total, 'call')} of {limit}, {limit.most:,} allowed:"]
    lines += [f"  {times:,} x {_shown(*row, places)}" for row, times in rows[:SHOWN_AT_MOST]]
    left = rows[SHOWN_AT_MOST:]
    lines += [f"  and {sum(times for _, times in left):,} of {len(left):,} others"] if left else []
    return "\n".join(lines)


def _shown(intrinsic: str, detail: str | None, site: Site | None, places: Places) -> str:
    place = f"{places.line(site)} {site.function}" if site else "(counted, not timed)" if detail is None else ""
    text = clean(detail or "")
    cut = text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
    return "  ".join(part for part in (intrinsic, place, cut) if part)
