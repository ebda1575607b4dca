"""Programs that say beside each call what is recorded of it, and whether it was.

A line of a program in tests/programs may say, after `#:`, which events its calls make; so may lines of comment before
it. Several are joined by ` & `. Each has the intrinsic's name; before it how many events (1), and where they come
from: nothing is said where the line itself made the call, `within` where what it calls did (library code, or another
call that is recorded), `nowhere` where no code did; after it the kind (the first that is declared), and what was
kept (nothing):

    os.write(pipe, b"abc")  #: os.write process bytes=3 detail=<pipe>
    for line in lines:
        letter.write(line)  #: 3 io.FileIO.write bytes=... detail=/cwd/letter
    letter.tell()  #: io.FileIO.tell error=ValueError

`...` is any text; /cwd is the directory of the program; `since=` and `before=` limit what is said to some Pythons. What
this Python does not have is left out. Of the intrinsics that a program names, all events that its own lines made must
have been said.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tracing import Run, Traced, events_of

from interpose.instrumentation.system_library import every
from interpose.library import Intrinsic

PROGRAMS = Path(__file__).parent / "programs"
BY_NAME = {intrinsic.name: intrinsic for intrinsic in every()}
ANY = "..."
FIELDS = "bytes|detail|error|since|before"
ENTRY = re.compile(
    r"(?:(?P<times>\d+) )?(?:(?P<where>within|nowhere) )?(?P<name>[a-zA-Z_][\w.]+)"
    r"(?: (?P<kind>[a-z]+))?(?P<kept>(?: \w+=.*)?)"
)
FIELD = re.compile(rf" ({FIELDS})=(.*?)(?= (?:{FIELDS})=|$)")


class Kept(NamedTuple):
    """What is known of an event besides its times; as expected, `...` in it is any text."""

    kind: str
    bytes: str
    detail: str
    error: str

    def fits(self, recorded: Kept) -> bool:
        return all(
            re.fullmatch(re.escape(expected).replace(re.escape(ANY), ".*"), actual, re.DOTALL)
            for expected, actual in zip(self, recorded, strict=True)
        )


class Place(NamedTuple):
    """Where events of an intrinsic come from: at or within the call of a line, or nowhere."""

    where: str
    line: int
    name: str


class Expectation(NamedTuple):
    """So many events of an intrinsic at a place, alike in what was kept."""

    place: Place
    times: int
    kept: Kept


def exists(intrinsic: Intrinsic) -> bool:
    """Whether this Python has what the intrinsic stands for."""
    try:
        found: object = importlib.import_module(intrinsic.module)
        owner, _, name = intrinsic.qualified.rpartition(".")
        for each in owner.split(".") if owner else ():
            found = type_of(found, each)
    except (ImportError, KeyError):
        return False
    return name in vars(found)


def type_of(owner: object, name: str) -> object:
    """A type by its name, also one that its module does not show. Raises KeyError."""
    if isinstance(vars(owner).get(name), type):
        return vars(owner)[name]
    full_name = (getattr(owner, "__name__", ""), name)
    hidden = {(each.__module__, each.__qualname__): each for each in object.__subclasses__()}
    return hidden[full_name]


def source_of(name: str) -> str:
    """The program of that name."""
    return (PROGRAMS / f"{name}.py").read_text()


def said(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each entry of a program."""
    pending: list[str] = []
    for number, line in enumerate(source.splitlines(), 1):
        code, _, text = line.partition("#: ")
        pending += text.split(" & ") if text else []
        if code.strip():
            yield from ((number, each) for each in pending)
            pending = []
    yield from ((0, each) for each in pending)


def named(source: str) -> set[str]:
    """The intrinsics of which a program says that a call of them succeeds, or may."""
    entries = [ENTRY.fullmatch(text) for _, text in said(source)]
    return {found["name"] for found in entries if found and may_succeed(found)}


def may_succeed(entry: re.Match[str]) -> bool:
    return dict(FIELD.findall(entry["kept"])).get("error", ANY) == ANY


def expectations(source: str) -> list[Expectation]:
    """What a program says of this Python. Raises ValueError for what means nothing."""
    return [each for line, text in said(source) for each in read_entry(line, text)]


def read_entry(line: int, text: str) -> Iterator[Expectation]:
    found = ENTRY.fullmatch(text)
    if not found or found["name"] not in BY_NAME:
        raise ValueError(f"line {line}: {text!r} means nothing")
    intrinsic = BY_NAME[found["name"]]
    kept = dict(FIELD.findall(found["kept"]))
    kind = found["kind"] or intrinsic.kinds[0]
    if kind not in intrinsic.kinds:
        raise ValueError(f"line {line}: {kind} is no kind of {intrinsic.name}")
    if is_of_this_python(kept) and exists(intrinsic):
        where = found["where"] or "at"
        yield Expectation(
            Place(where, 0 if where == "nowhere" else line, intrinsic.name),
            int(found["times"] or 1),
            Kept(kind, kept.get("bytes", "0"), kept.get("detail", ""), kept.get("error", "")),
        )


def is_of_this_python(kept: dict[str, str]) -> bool:
    def version(text: str) -> tuple[int, ...]:
        return tuple(int(number) for number in text.split("."))

    return version(kept.get("since", "0")) <= sys.version_info[:2] < version(kept.get("before", "9"))


def recorded_at(done: Traced) -> dict[Place, list[Kept]]:
    """What was recorded of the founder and its descendants, by place."""
    found: dict[Place, list[Kept]] = defaultdict(list)
    for process in done.experiment.processes:
        for event in events_of(process):
            frames = list(process.frames(event.stack))
            own = next((frame for frame in frames if frame.own), None)
            where = "nowhere" if not frames else "at" if frames[0].own and not event.parent else "within"
            intrinsic = process.intrinsic(event.intrinsic)
            detail = process.string(event.detail).replace(str(done.directory), "/cwd")
            kept = Kept(intrinsic.kind, str(event.bytes), detail, process.string(event.error))
            found[Place(where, own.line if own else 0, intrinsic.name)].append(kept)
    return found


def differences(source: str, recorded: dict[Place, list[Kept]], names: set[str] | None = None) -> list[str]:
    """Where what was recorded is not what a program says, of the intrinsics `names` or all that it names."""
    lines = ["", *source.splitlines()]
    expected: dict[Place, list[Expectation]] = defaultdict(list)
    for each in expectations(source):
        expected[each.place].append(each)
    names = names or {place.name for place in expected}
    for place in recorded:
        if place.where == "at":
            expected.setdefault(place, [])
    return [
        f"line {place.line}: {lines[place.line].strip()}\n  {place.where} {place.name}: {wrong}"
        for place in sorted(expected, key=lambda place: (place.line, place.name))
        if place.name in names
        for wrong in unlike(expected[place], recorded.get(place, []))
    ]


def unlike(expected: list[Expectation], recorded: list[Kept]) -> Iterator[str]:
    """What is missing, and what is too much."""
    left = list(recorded)
    for each in expected:
        fitting = [kept for kept in left if each.kept.fits(kept)][: each.times]
        for kept in fitting:
            left.remove(kept)
        if len(fitting) < each.times:
            yield f"{each.times - len(fitting)} of {each.times} not recorded: {each.kept}"
    for kept in sorted(set(left)):
        yield f"{left.count(kept)} too many: {kept}"


def assert_program_is_recorded(traced: Run, name: str, *arguments: str, **variables: str) -> None:
    """The program of that name, run under the tracer, is recorded as it says."""
    assert_recorded_as_said(traced(source_of(name), *arguments, **variables), name)


def assert_recorded_as_said(done: Traced, name: str, intrinsics: set[str] | None = None) -> None:
    """The program `name` ran to its end, and what it says of its calls, or of some intrinsics, is what was recorded."""
    wrong = differences(source_of(name), recorded_at(done), intrinsics)
    assert (done.returncode, done.stderr) == (0, "")
    assert not wrong, f"{name}.py:\n" + "\n".join(wrong)
    for process in done.experiment.processes:
        assert sum(thread.record.dropped for thread in process.threads) == 0
