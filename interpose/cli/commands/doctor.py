"""`interpose doctor`: whether programs are recorded here, with which clock, at what cost; if not, why not."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator

from interpose import __version__
from interpose.capture import collecting, free_threads, session
from interpose.cli.messages import in_words
from interpose.cli.running.counting import reasons, why_not_read
from interpose.cli.running.watched_processes import why_not_watched
from interpose.cli.suggestions import unknown_variables
from interpose.config import policy, precedence, state
from interpose.config.program import EXEMPT_PROGRAMS, is_exempt, program_name
from interpose.config.trust import distrust
from interpose.counters import COUNTERS
from interpose.errors import InterposeError, SettingError
from interpose.instrumentation import interpreters, libraries, mapping, resolved, search
from interpose.instrumentation.interpreters import Interpreter
from interpose.instrumentation.trial import Trial, record_imports
from interpose.reports.formats.table import clean

NAME = "doctor"
HELP = "check whether programs are recorded here and, if not, why"
EXAMPLE = "interpose doctor"
USAGE = "interpose doctor [--format text|json] [-- COMMAND ...]"
SHOWN = 5
PRELOADED = "a library is preloaded instead, by `interpose run` and into descendants; not by INTERPOSE=1 alone"


@dataclasses.dataclass(frozen=True)
class Findings:
    """Everything that doctor knows: about this installation, an interpreter, and obstacles to recording."""

    version: str
    interpreter: interpreters.Answer | None
    clock: dict[str, str]
    cost: dict[str, int]
    interposed: dict[str, str]
    sampling: str
    counters: dict[str, str]
    system_calls: str
    intrinsics: int
    not_interposed: dict[str, str]
    libraries: list[str]
    collectors: list[str]
    settings: list[dict[str, str]]
    not_recorded: list[str]
    elsewhere: list[str]
    notes: list[str]
    obstacles: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = USAGE
    parser.allow_abbrev = False
    parser.add_argument(
        "--format", choices=("text", "json"), metavar="FORMAT", default="text", help="text (for people) or json"
    )
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="check the interpreter of this command",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; return 1 if something prevents recording."""
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    found = examine(words)
    if arguments.format == "json":
        print(json.dumps(as_json(found), indent=2))
    else:
        print("\n".join(as_text(found)))
    return 1 if found.obstacles else 0


def examine(words: list[str]) -> Findings:
    """What is found for the interpreter that the command `words` starts, or for this one."""
    variables, in_force, obstacles = examine_settings()
    answer, trial, in_the_way = examine_interpreter(words, variables)
    return Findings(
        version=__version__,
        interpreter=answer,
        clock=trial.clock,
        cost={"call_ns": trial.call_ns, "inside_ns": trial.inside_ns} if trial.clock else {},
        interposed=trial.interposed,
        sampling=examine_sampling(),
        counters=why_not_read(COUNTERS),
        system_calls=examine_system_calls(),
        intrinsics=trial.intrinsics,
        not_interposed=trial.not_interposed,
        libraries=examine_libraries(words),
        collectors=examine_collectors(words),
        settings=in_force,
        not_recorded=[str(note) for note in state.not_recorded()[-SHOWN:]],
        elsewhere=state.experiments_elsewhere()[-SHOWN:],
        notes=notes(answer),
        obstacles=[*obstacles, *in_the_way],
    )


def examine_system_calls() -> str:
    """Whether those of processes can be watched from outside."""
    try:
        from interpose.timing import kernel
    except ImportError as error:  # nothing is compiled for this Python
        return f"not possible: {error}"
    try:
        call_ns = kernel.measured_costs(has_stacks=False)["call_ns"]
    except OSError as error:
        return f"not possible: {why_not_watched(error.errno or 0)}"
    return f"possible: interpose kernel; each call costs {call_ns} ns more"


def examine_interpreter(
    words: list[str], variables: dict[str, str]
) -> tuple[interpreters.Answer | None, Trial, list[str]]:
    """What the interpreter says about itself, the result of a trial, and the obstacles to recording."""
    nothing = Trial("not tried")
    interpreter, why_none = find_interpreter(words)
    if interpreter is None:
        return None, nothing, [why_none]
    answer = interpreters.ask(interpreter)
    if answer is None:
        return None, nothing, [f"{interpreter.path} does not say what it is"]
    in_the_way = [*interpreters.obstacles(answer), *examine_program(interpreter)]
    trial = record_imports(interpreter, variables) if variables else nothing
    if trial.why_not and variables and not in_the_way:
        in_the_way.append(f"a trial with {interpreter.path} recorded nothing: {trial.why_not}")
    return answer, trial, in_the_way


def examine_sampling() -> str:
    """Whether the code of programs that are started here can be sampled; else why not."""
    try:
        importlib.import_module("interpose.monitor")  # it needs zstandard
        from interpose.timing.sampler import try_process
    except ImportError as error:
        return f"not possible: {error}"
    with subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        why_not, has_clock = try_process(child.pid, _first_address(child.pid))
        child.communicate(b"\n")
    if why_not:
        return f"not possible: memory of a child cannot be read: {why_not}"
    clock = "exact, by a perf event" if has_clock else "to the kernel's tick, for no perf event can be had"
    others = "" if has_clock else "; programs that are not Python are not sampled"
    return f"possible: memory of a child can be read, its CPU time is {clock}{others}"


def _first_address(pid: int) -> int:
    """The address of the process's first mapping; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return int(maps.readline().partition("-")[0], 16)
    except (OSError, ValueError):
        return 0


def examine_libraries(words: list[str]) -> list[str]:
    """The libraries other than the system library that a program gets here, and what is wrong with them."""
    interpreter, _ = find_interpreter(words)
    try:
        wanted = precedence.in_force(os.environ)
    except SettingError:
        return []  # reported as an obstacle
    if interpreter is None:
        return []
    program = [interpreter.path, *interpreter.options, *interpreter.words]
    try:
        places = search.library_places(wanted, os.environ, program)
        new = resolved.refresh(places[0] if places else "")
        if mapping.places_of(wanted, program) is None:
            return new
        found = mapping.map_program(interpreter, wanted, every=False)
    except InterposeError as error:
        return [str(error)]
    used = [f"{each.name}  {each.path}" for each in found.libraries if not each.why_not]
    return [*used, *new, *found.complaints()]


def examine_collectors(words: list[str]) -> list[str]:
    """The files of data collectors that a program gets here, and why not one of them; nothing in them is run."""
    interpreter, _ = find_interpreter(words)
    try:
        wanted = precedence.in_force(os.environ)
    except SettingError:
        return []  # reported as an obstacle
    if interpreter is None or wanted.collectors == ():
        return []
    program = [interpreter.path, *interpreter.options, *interpreter.words]
    places = search.library_places(wanted, os.environ, program) or ("", "", "")
    name = program_name(program).removeprefix("-m ")
    chosen = collecting.choose(collecting.candidates(*places), wanted.collectors, name)
    return ["  ".join(_told_of_collector(each)) for each in chosen]


def _told_of_collector(found: libraries.Candidate) -> Iterator[str]:
    yield found.name
    if found.path:
        yield found.path
    if why := found.why_not or distrust(found.path):
        yield f"not used: {why}"


def examine_settings() -> tuple[dict[str, str], list[dict[str, str]], list[str]]:
    """The variables for a trial that is like a run here; each setting with its origin; what is wrong with them."""
    try:
        found = precedence.in_force(os.environ)
    except SettingError as error:
        return {}, [], [in_words(error)]
    shown = [
        {"variable": variable, "value": value, "origin": found.origins[variable]}
        for variable, value in found.environment().items()
    ]
    wrong = []
    if not found.record and found.origins["INTERPOSE"] != "default":
        text, origin = found.texts["INTERPOSE"], found.origins["INTERPOSE"]
        wrong.append(f"INTERPOSE is {text} ({origin}): nothing is recorded")
    return found.environment(), shown, [*wrong, *found.warnings, *examine_directory(found.dir)]


def examine_directory(directory: str) -> list[str]:
    """What keeps experiments from being made in the directory."""
    there = directory if os.path.isdir(directory) else os.path.dirname(directory)
    if (there == directory or not os.path.lexists(directory)) and os.access(there, os.W_OK | os.X_OK):
        return []
    elsewhere = state.experiments_directory()
    return [f"{directory} is not writable; experiments go to {elsewhere or 'no place'}"]


def find_interpreter(words: list[str]) -> tuple[Interpreter | None, str]:
    """The interpreter that the words start; or None and why there is none."""
    if not words:
        return Interpreter(sys.executable), ""
    try:
        return interpreters.interpreter_of(words), ""
    except interpreters.NotPython as error:
        return None, f"{error}: interpose run --native records its native calls, and Python programs that it starts"
    except FileNotFoundError as error:
        return None, f"{error}: command not found"


def examine_program(interpreter: Interpreter) -> Iterator[str]:
    """What keeps just this program from being recorded."""
    mode = os.stat(interpreter.path).st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) or os.geteuid() != os.getuid():
        yield f"{interpreter.path} runs with another user's rights: never recorded"
    program = [interpreter.path, *interpreter.options, *interpreter.words]
    try:
        if forbidden := policy.read(session.POLICY):  # type: ignore[no-untyped-call]  # the program imports it
            policy.check(forbidden, program)  # type: ignore[no-untyped-call]
    except policy.Forbidden as why:
        yield str(why)
    if is_exempt(program):
        exempt = ", ".join(EXEMPT_PROGRAMS)
        yield f"{exempt} are not recorded, except by `interpose run` itself"


def notes(answer: interpreters.Answer | None) -> list[str]:
    """What is in order but may surprise."""
    found = []
    if answer and answer.is_free_threaded:
        left_out = ", ".join(free_threads.LEFT_OUT)
        found.append(f"only calls and transactions are recorded; {left_out}: {free_threads.WHY}")
    if not os.environ.get("INTERPOSE"):
        found.append("INTERPOSE is not set: only what `interpose run` starts is recorded")
    return [*found, *unknown_variables()]


def as_json(found: Findings) -> dict[str, object]:
    """The findings by name."""
    answer = found.interpreter._asdict() if found.interpreter else None
    return {**dataclasses.asdict(found), "interpreter": answer}


def as_text(found: Findings) -> Iterator[str]:
    """The findings as sections of lines."""
    for label, lines in sections(found):
        for place, line in enumerate(lines):
            yield clean(f"{label if place == 0 else '':<14}{line}".rstrip())


def sections(found: Findings) -> Iterator[tuple[str, list[str]]]:
    """The sections: a label, and its lines."""
    yield "interpose", [found.version]
    if answer := found.interpreter:
        yield "interpreter", [interpreter_line(answer)]
        read = "read at start" if answer.site else "not read: -S"
        files = [f"{path}  {read}" for path in answer.startup_files] or ["no start-up files"]
        yield "start-up", [*files, *([PRELOADED] if answer.preloaded else [])]
    if clock := found.clock:
        read = f"a reading costs {clock.get('read_ns')} ns"
        yield "clock", [f"{clock.get('kind')}: {clock.get('why')}", read]
    if cost := found.cost:
        inside = f"{cost['inside_ns']} ns of it lie between its own two readings"
        yield "shim", [f"a recorded call costs {cost['call_ns']} ns; {inside}"]
    yield "sampling", [found.sampling]
    counted = [name for name, why in found.counters.items() if not why]
    yield "counters", [f"{', '.join(counted)}: can be read", *reasons(found.counters)]
    yield "system calls", [found.system_calls]
    if found.intrinsics:
        yield "interposed", [interposed_line(found)]
        yield "except", [f"{name}: {why}" for name, why in sorted(found.not_interposed.items())]
    yield "libraries", found.libraries
    yield "collectors", found.collectors
    yield "settings", [f"{row['variable']:<23}{row['value']:<10}  {row['origin']}" for row in found.settings]
    yield "not recorded", [each.replace(": not recorded: ", ": ", 1) for each in found.not_recorded]
    yield "elsewhere", found.elsewhere
    yield "note", found.notes
    yield "in the way", found.obstacles or ["nothing: programs are recorded"]


def interposed_line(found: Findings) -> str:
    """How many intrinsics are interposed, and in what way."""
    by, why = found.interposed.get("by", ""), found.interposed.get("why", "")
    return f"{found.intrinsics} intrinsics, {'in place' if by == 'place' else f'by {by}: {why}'}"


def interpreter_line(answer: interpreters.Answer) -> str:
    """Which interpreter it is, and which interpose it has."""
    there = f"interpose {answer.version}" if answer.version else "no interpose"
    sort = " free-threaded" if answer.is_free_threaded else ""
    return f"{answer.executable}, {answer.implementation} {answer.python_version}{sort}, {there}"
