"""What an experiment reveals: its texts by type, how many of them look sensitive, and a masked example of each type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.recording.dialogue import lines_of, spoken
from interpose.errors import InterposeError
from interpose.experiments.maintenance.archives import SOURCE, read_content, read_index
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import LARGEST_SOURCE_BYTES

LONGEST_EXAMPLE = 60
TEXTS_AT_MOST = 200_000  # of each type; others are not examined
SOURCES_AT_MOST_BYTES = 64 << 20
LONGEST_TEXT = 16 * 1024

# Repetitions are bounded, for a text may be anybody's.
_SIGNS = {
    "password": re.compile(
        r"(?i)(?:pass(?:word|wd)?|pwd|secret|token|api_?key|credentials?|bearer)"
        r"[\"']?\s{0,3}[=: ]\s{0,3}[\"']?[^\s?*\"'=:]{3}"
    ),
    "key": re.compile(
        r"\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20}|\bsk-[A-Za-z0-9_-]{16}|\bxox[abprs]-[A-Za-z0-9-]{10}"
        r"|\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY"
    ),
    "e-mail": re.compile(r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}\.[A-Za-z]{2}"),
    "card": re.compile(r"(?<![0-9-])[0-9](?:[ -]?[0-9]){12,18}(?![0-9-])"),
    "home": re.compile(r"/(?:home|Users)/[^/\s]{1,64}"),
}
_INSIDE_A_WORD = re.compile(r"(\w)\w+")


@dataclass
class Revealed:
    """Texts of one sort: how many there are, what some of them look like, and one that tells most, masked."""

    what: str
    texts: int = 0
    signs: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def add(self, text: str) -> None:
        """Count a text."""
        found = signs_of(text[:LONGEST_TEXT])
        if not self.texts or (found and not self.signs):
            self.example = masked(text)
        self.texts += 1
        self.signs.update(found)


def signs_of(text: str) -> list[str]:
    """What a text looks like that should not be seen."""
    return [
        name
        for name, expression in _SIGNS.items()
        if (match := expression.search(text)) and (name != "card" or _is_card(match[0]))
    ]


def _is_card(text: str) -> bool:
    """Whether the check digit is right (ISO/IEC 7812)."""
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def masked(text: str) -> str:
    """The beginning of a text, of each word the first letter."""
    return _INSIDE_A_WORD.sub(r"\1***", text[:LONGEST_EXAMPLE])


def revealed(experiment: Experiment) -> list[Revealed]:
    """What there is of each sort, in a fixed order; sorts of which there is nothing have no texts."""
    return [_of(what, texts(experiment)) for what, texts in SORTS.items()]


def _of(what: str, texts: Iterable[str]) -> Revealed:
    found, seen = Revealed(what), set[str]()
    for text in texts:
        if text and text not in seen:
            seen.add(text)
            found.add(text)
        if len(seen) == TEXTS_AT_MOST:
            break
    return found


def _details(*kinds: str) -> Callable[[Experiment], Iterator[str]]:
    def texts(experiment: Experiment) -> Iterator[str]:
        for process in experiment.processes:
            for kind, text in _details_of(process):
                if kind in kinds and not (text.startswith("<") and text.endswith(">")):
                    yield text

    return texts


def _details_of(process: Process) -> list[tuple[str, str]]:
    """Kind and text of the details of calls, also of calls in progress."""
    if process not in _KEPT:
        try:
            sums = consolidated(process, ("intrinsic", "detail")).sums()
        except InterposeError:
            sums = {}
        calls = {(intrinsic, detail) for intrinsic, detail in sums if detail}
        calls |= {(call.intrinsic, call.detail) for each in process.threads for call in each.open_calls if call.detail}
        _KEPT.clear()
        _KEPT[process] = [(process.intrinsic(number).kind, process.string(detail)) for number, detail in sorted(calls)]
    return _KEPT[process]


_KEPT: dict[Process, list[tuple[str, str]]] = {}  # of the process that was asked last


def _programs(experiment: Experiment) -> Iterator[str]:
    yield from _details("process")(experiment)
    for process in experiment.processes:
        yield from (child.command for child in process.children)


def _arguments(experiment: Experiment) -> Iterator[str]:
    for process in experiment.processes:
        yield from process.log.arguments


def _settings(experiment: Experiment) -> Iterator[str]:
    for process in experiment.processes:
        yield from process.log.settings.values()


def _said(experiment: Experiment) -> Iterator[str]:
    """Labels of samples, filters, warnings, why something was not recorded."""
    for process in experiment.processes:
        for each in process.log.events:
            yield from (each.text, each.why)


def _whereabouts(experiment: Experiment) -> Iterator[str]:
    for process in experiment.processes:
        log = process.log
        yield from (log.system.get("host", ""), log.user.get("terminal", ""), log.executable, log.cwd)


def _code(experiment: Experiment) -> Iterator[str]:
    for process in experiment.processes:
        yield from process.files()
        yield from process.log.roots


def _texts_of_code(experiment: Experiment) -> Iterator[str]:
    for process in experiment.processes:
        for text in process.dynamic_texts().values():
            yield from text.splitlines()


def _sources(experiment: Experiment) -> Iterator[str]:
    """Every line of the archived sources."""
    founder, left_bytes = experiment.founder_directory, SOURCES_AT_MOST_BYTES
    for entry in read_index(founder, experiment.name, experiment.damages).values():
        content = read_content(founder, entry, LARGEST_SOURCE_BYTES) if entry.kind == SOURCE else None
        left_bytes -= len(content or b"")
        if left_bytes < 0:
            return
        yield from (content or b"").decode("utf-8", "replace").splitlines()


def _dialogue(what: str) -> Callable[[Experiment], Iterator[str]]:
    return lambda experiment: (line.text for line in lines_of(spoken(experiment)) if line.what == what)


SORTS: dict[str, Callable[[Experiment], Iterable[str]]] = {
    "statements": _details("db"),
    "paths": _details("file"),
    "addresses": _details("net"),
    "programs": _programs,
    "requests and transactions": _details("logic"),
    "modules": _details("import"),
    "terminals, locks": _details("screen", "sync", "gil", "sleep", "idle", "system"),
    "command line": _arguments,
    "settings": _settings,
    "labels, warnings": _said,
    "host and directories": _whereabouts,
    "files of code": _code,
    "code in no file": _texts_of_code,
    "archived sources": _sources,
    "shown": _dialogue("shown"),
    "typed": _dialogue("typed"),
    "notes": lambda experiment: experiment.notes,
    "environment": lambda experiment: (),
}
