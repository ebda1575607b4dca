"""What a program would get: which intrinsics, from which libraries, and why others not.

An interpreter begins a recording as the program would, and imports the declared modules; the program's own script does
not run.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interpose.config.schema import Settings
from interpose.errors import InterposeError
from interpose.experiments.metadata import names
from interpose.experiments.metadata.map import Failure, Intrinsic, Library, read_libraries, read_map
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process
from interpose.instrumentation import native, resolved, search
from interpose.instrumentation.interpreters import ASK_SECONDS, Interpreter, preload

UNKNOWN = "its module has no such name"  # as the shims say it
ABSENT = "absent"
ELSEWHERE = "only in programs that are not Python"
WILD = "*"

# The code for the interpreter: it imports the declared modules, and reports declarations and failed imports.
PROGRAM = """
import importlib, json, os, sys
from interpose.timing import shims
answer, every, place = sys.argv[1:4]
del sys.argv[1:]
sys.path[0] = place
wanted = [row for row in shims.declared() if every or row[6]]
reasons = {}
for name in dict.fromkeys(row[0] for row in wanted):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        reasons[name] = "absent" if f"{name}.".startswith(f"{missing}.") else f"cannot be imported: {error}"
    except BaseException as error:
        reasons[name] = f"cannot be imported: {type(error).__name__}: {error}"
with open(answer, "w") as file:
    json.dump([shims.declared(), reasons], file)
os._exit(0)
"""


@dataclass(frozen=True)
class Row:
    """An intrinsic of a library: what it passes on to, how it was interposed or why not, and where it is declared."""

    name: str
    kind: str
    library: str
    passes_on: str
    by: str
    why_not: str
    place: str = ""
    target: str = ""

    @property
    def function(self) -> str:
        """The name of a native call without its library's; "" for others."""
        is_native = self.by == "import table" or self.target.startswith(native.TARGET)
        return self.name.partition(".")[2] if is_native else ""


@dataclass(frozen=True)
class Mapped:
    """All rows, the libraries that were found, and the failures of wrappers."""

    rows: Sequence[Row]
    libraries: Sequence[Library] = ()
    failures: Sequence[Failure] = field(default=())

    @property
    def unknown(self) -> list[Row]:
        """What libraries declare of modules that have no such names."""
        return [row for row in self.rows if row.why_not == UNKNOWN]

    def complaints(self) -> list[str]:
        """A line for each library that is not used, each name that is not there, each wrapper that failed."""
        bad = [each for each in self.libraries if each.why_not]
        unused = [f"{each.place or each.path}: {each.name} is not used: {each.why_not}" for each in bad]
        unknown = [f"{row.place}: {row.library}: {row.target}: {UNKNOWN}" for row in self.unknown]
        failed = [f"{each.place}: {each.library}: {each.target}: {each.why}" for each in self.failures]
        return [*unused, *unknown, *failed]


def places_of(wanted: Settings, words: Sequence[str]) -> tuple[str, str, str] | None:
    """Where a program started with these words (an interpreter and what follows) finds libraries, after updating the
    file of resolved ones; None if there are none but the system library. Raises SettingError."""
    places = search.library_places(wanted, os.environ, words)
    resolved.refresh(places[0] if places else "")
    found: tuple[str, str, str] | None = search.library_places(wanted, os.environ, words)
    return found


def map_program(interpreter: Interpreter, wanted: Settings, every: bool = True) -> Mapped:
    """What a program started with the interpreter gets; `every`: not only of others' libraries, but of ours as well.

    Raises InterposeError if the interpreter does not say.
    """
    words = [interpreter.path, *interpreter.options, *interpreter.words]
    places = places_of(wanted, words)
    with tempfile.TemporaryDirectory() as directory:
        answer = os.path.join(directory, "answer")
        options = [each for each in interpreter.options if each[:2] not in ("-i", "-c", "-m")]
        asked = [interpreter.path, *options, "-c", PROGRAM, answer, "1" if every else ""]
        asked.append(search.library_start(words, os.environ.get("HOME", "")))
        environment = {**_environment(wanted, directory), "INTERPOSE_GROUP": (places[0] if places else "") or directory}
        said = _ask(asked, environment)
        experiment = os.path.join(directory, "trial.er")
        if not os.path.exists(answer) or not os.path.exists(os.path.join(experiment, names.MAP)):
            raise InterposeError(f"{interpreter.path} did not answer{said}")
        with open(answer, encoding="utf-8") as file:
            declared, reasons = json.load(file)
        path = os.path.join(experiment, names.MAP)
        entries = read_map(path, names.MAP, Damages()).values()
        found_libraries, failures = read_libraries(path)
    return Mapped(_rows(declared, reasons, entries), found_libraries, failures)


def _environment(wanted: Settings, directory: str) -> dict[str, str]:
    environment = {
        **os.environ,
        **wanted.environment(),
        "INTERPOSE": "calls,native" if "native" in wanted.record else "1",
        "INTERPOSE_DIR": directory,
        "INTERPOSE_NAME": "trial.er",
        "INTERPOSE_PAUSED": "0",
    }
    environment.pop("INTERPOSE_LINEAGE", None)
    return environment


def _ask(words: list[str], environment: Mapping[str, str]) -> str:
    """Run it; return what went wrong, as the end of a sentence."""
    try:
        subprocess.run(
            words,
            env=preload(dict(environment), words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f": {error}"
    return ""


def _rows(declared: list[list[str]], reasons: dict[str, str], entries: object) -> list[Row]:
    """A row for each declaration; a pattern has one where it stands for nothing."""
    known = {(each.name, each.library): each for each in entries}  # type: ignore[attr-defined]
    rows = []
    stood_for = {place for _, qualified, _, _, _, _, place in declared if place and WILD not in qualified}
    for module, qualified, name, kind, library, passes_on, place in declared:
        target = f"{module}:{qualified}"
        entry: Intrinsic | None = known.get((name, library))
        if WILD in qualified:
            if place not in stood_for:
                why = reasons.get(module) or "it stands for nothing"
                rows.append(Row(name, kind, library, passes_on, "", why, place, target))
        elif entry is None:
            why = reasons.get(module) or (ELSEWHERE if target.startswith(native.TARGET) else ABSENT)
            rows.append(Row(name, kind, library, passes_on, "", why, place, target))
        else:
            shown = entry.target or target
            rows.append(Row(name, kind, library, passes_on, entry.by, entry.why_not, place, shown))
    return rows


def map_experiment(process: Process) -> Mapped:
    """What a process of an experiment got. An intrinsic is of the first of its kinds here."""
    first: dict[tuple[str, str], Intrinsic] = {}
    for each in process.intrinsics:
        first.setdefault((each.name, each.library), each)
    rows = [
        Row(each.name, each.kind, each.library, each.passes_on, each.by, each.why_not, each.place, each.target)
        for each in first.values()
    ]
    return Mapped(rows, process.libraries, process.failures)
