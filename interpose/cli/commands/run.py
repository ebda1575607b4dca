"""`interpose run`: starts a program with recording switched on, waits for it, and ends in the same way."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Container
from datetime import datetime

from interpose.cli.messages import say, show
from interpose.cli.running import child, programs, starting
from interpose.cli.running.counting import reasons, why_not_read
from interpose.cli.running.experiment import (
    add_notes,
    add_place_argument,
    make_experiment_or_go_without,
    overwrite,
    place_of,
    program_environment,
)
from interpose.cli.running.pausing import Toggle
from interpose.cli.running.sampling import Sampler
from interpose.cli.running.saving import Saver
from interpose.cli.running.schedule import Clockwork, add_schedule_arguments, schedule_of
from interpose.cli.running.signals import Asked, add_signal_arguments, signals_of
from interpose.cli.running.watching import Watching
from interpose.cli.suggestions import did_you_mean, unknown_variables
from interpose.config import precedence, schema, state
from interpose.config.schema import Settings
from interpose.errors import InterposeError, SettingError, UsageError
from interpose.experiments.metadata import endings, names
from interpose.instrumentation import interpreters, search
from interpose.library import SYSTEM

NAME = "run"
HELP = "run a program and record it"
EXAMPLE = "interpose run app.py"
USAGE = "interpose run [options] [--] (-m MODULE | SCRIPT.py | COMMAND) [arguments of the program]"
DESCRIPTION = """\
Everything after the program belongs to the program. Its exit code is passed through. Scripts, modules and
directories run with the interpreter that interpose is installed for; other commands are looked up in PATH."""
NOTES_AT_MOST = 10


def add_settings(parser: argparse.ArgumentParser, refused: Container[str] = ()) -> None:
    """An option for each setting; the help leaves out those that the command refuses."""
    group = parser.add_argument_group("settings", "Each of them is also an environment variable: docs/settings.md.")
    for setting in schema.SETTINGS:
        group.add_argument(
            *setting.options,
            dest=setting.name,
            metavar=setting.form,
            default=None,
            help=argparse.SUPPRESS if setting.name in refused else setting.meaning.replace("%", "%%"),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, made from the table of settings, and the program."""
    parser.usage = USAGE
    parser.description = DESCRIPTION
    parser.allow_abbrev = False
    add_settings(parser)
    place = parser.add_mutually_exclusive_group()
    add_place_argument(place)
    place.add_argument(
        "-O", dest="overwritten", metavar="PATH.er", help="the same, but replace an existing experiment"
    )
    parser.add_argument(
        "-C",
        dest="notes",
        metavar="TEXT",
        action="append",
        default=[],
        help=f"a note to keep with the experiment; up to {NOTES_AT_MOST}",
    )
    add_schedule_arguments(parser)
    add_signal_arguments(parser)
    parser.add_argument(
        "--native",
        action="store_true",
        help="also record calls that C code makes, and programs that are not Python (docs/native.md)",
    )
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="show what would be run and recorded, without running it"
    )
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=argparse.SUPPRESS
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run the program; returns its exit code. Where a signal killed it, the same signal kills this process."""
    words = program_words(arguments)
    schedule = schedule_of(arguments, datetime.now())
    asked = signals_of(arguments)
    if schedule and asked.toggle:
        raise UsageError("-y excludes -t, --at, --for and --every")
    if (schedule and not schedule.is_open(time.time())) or (asked.toggle and not asked.recording):
        arguments.paused = "1"
    in_force = settings_in_force(arguments)
    if len(arguments.notes) > NOTES_AT_MOST:
        raise UsageError(f"-C: more than {NOTES_AT_MOST} notes")
    for line in [*unknown_variables(), *doubts(in_force), *unknown_levels(words, in_force)]:
        say(line)
    if arguments.dry_run:
        return show_settings(words, in_force)
    starting.refuse(words)
    if in_force.record and (code := check_libraries(words, in_force)):
        return code
    if in_force.record and arguments.overwritten is not None:
        overwrite(arguments.overwritten)
    is_wanted = bool(in_force.record)
    experiment = make_experiment_or_go_without(in_force) if is_wanted else None
    if experiment is None:
        in_force.record = ()
    if experiment and arguments.notes:
        add_notes(experiment, arguments.notes)
    if line := other_environment(words):
        say(line)
    began_s = int(time.time())
    for line in reasons(why_not_read(in_force.counters if experiment else ())):
        say(line)
    watching = Watching(experiment, in_force.profile_hz, in_force.counters)
    attendants: list[child.Attendant] = [watching]
    if experiment and schedule:
        attendants.append(Clockwork(experiment, schedule, in_force.paused))
    command = interpreters.command_words(words)
    environment = program_environment(in_force, experiment)
    if experiment and programs.records_itself(command, in_force):
        programs.plan(experiment, in_force, command)
    if in_force.record:
        environment = interpreters.preload(environment, command)
    try:
        ended = child.run(command, environment, [*attendants, *on_demand(in_force, experiment, asked)])
    except OSError as error:
        if experiment is not None:
            names.remove_empty(experiment)
        raise starting.not_started(words, error) from None
    if experiment is None:
        if not is_wanted:
            say("not recorded: INTERPOSE is 0")
    elif names.is_recorded(experiment):
        endings.complete(experiment, ended.pid, ended.returncode, ended.time_ns)
        watching.end()
        show_summary(experiment)
        archive(experiment, in_force)
    else:
        names.remove_empty(experiment)
        say(why_not_recorded(words, in_force, ended, began_s))
    return child.end_as(ended.returncode)


def other_environment(words: list[str]) -> str:
    """A line where a script or module does not run in the virtual environment that is active; else empty."""
    active = os.environ.get("VIRTUAL_ENV", "")
    is_ours = not active or os.path.realpath(active) == os.path.realpath(sys.prefix)
    if is_ours or interpreters.command_words(words) == words:
        return ""
    given = shlex.join(words[:2] if words[0] == "-m" else words[:1])
    return f"{given} runs with {sys.executable}; to run it in {active}: interpose run python {given}"


def on_demand(in_force: Settings, experiment: str | None, asked: Asked) -> list[child.Attendant]:
    """Who does what signals and triggers ask for while the program runs."""
    found: list[child.Attendant] = []
    if experiment and (asked.save or in_force.trigger):
        found.append(Saver(experiment, asked.save, in_force.saves if in_force.trigger else 0))
    if experiment and asked.toggle:
        found.append(Toggle(experiment, asked.toggle, in_force.paused))
    if experiment and asked.sample:
        found.append(Sampler(experiment, asked.sample))
    return found


def program_words(arguments: argparse.Namespace) -> list[str]:
    """The words of the program and its arguments. Raises UsageError if there are none."""
    words = list(arguments.program)
    if arguments.module is not None:
        words = ["-m", *arguments.module, *words]
    elif words[:1] == ["--"]:
        del words[0]
    if words in ([], ["-m"]):
        raise UsageError(_taken_for_a_value(arguments) or f"a program is needed: {USAGE}")
    return words


def _taken_for_a_value(arguments: argparse.Namespace) -> str:
    """What to say where an option without its value took the program for it; empty if none did."""
    for setting in schema.SETTINGS:
        value = getattr(arguments, setting.name)
        if value is not None and (value.endswith(".py") or _is_program_in_a_directory(value)):
            option = setting.options[-1]
            return f"{option} needs a value before the program: interpose run {option} VALUE {value}"
    return ""


def _is_program_in_a_directory(value: str) -> bool:
    return "/" in value and os.path.isfile(value) and os.access(value, os.X_OK)


def settings_in_force(arguments: argparse.Namespace) -> Settings:
    """The settings of the run; where nothing says what to record, calls are, and lines and statements where it is said
    of which functions, or that lines are events. Raises SettingError."""
    options = {setting.key: getattr(arguments, setting.name) for setting in schema.SETTINGS}
    for letter, path in (("-o", arguments.experiment), ("-O", arguments.overwritten)):
        if path is not None:
            options.update(place_of(path, letter))
    of_lines = ("lines", "statements") if options["statements"] != "0" else ("lines",)
    wanted = {"lines": of_lines, "coverage": ("coverage",)}
    chosen = [word for word, keys in wanted.items() if any(options[key] is not None for key in keys)]
    if arguments.native:
        chosen.append("native")
    if chosen and options["record"] is None:
        options["record"] = ",".join(["calls", *chosen])
    elif arguments.native:
        options["record"] += ",native"
    is_default = precedence.in_force(os.environ, options).origins["INTERPOSE"] == "default"
    if is_default:
        options["record"] = "1"
    found = precedence.in_force(os.environ, options)
    if is_default:
        found.origins["INTERPOSE"] = "default"
    check_patterns(found)
    return found


def check_libraries(words: list[str], in_force: Settings) -> int:
    """Print what is wrong with the program's libraries; return 2 if they declare names that do not exist, without a
    catch-all. If the program is not Python, the experiments of its descendants report it."""
    from interpose.cli.commands.map import complain
    from interpose.instrumentation import mapping

    try:
        interpreter = interpreters.interpreter_of(words)
    except (interpreters.NotPython, FileNotFoundError):
        return 0
    if mapping.places_of(in_force, [interpreter.path, *interpreter.options, *interpreter.words]) is None:
        return 0
    try:
        found = mapping.map_program(interpreter, in_force, every=False)
    except SettingError:
        raise
    except InterposeError:
        return 0  # why nothing can be recorded is reported afterwards
    return complain(found, in_force.unsat)


def check_patterns(found: Settings) -> None:
    """Raise SettingError for an invalid pattern of descendants or of what is redacted."""
    try:
        from interpose.timing import shims
    except ImportError:  # nothing is compiled for this Python; another may run the program
        return
    if wrong := shims.choose_descendants(os.fsencode(found.follow)):
        raise SettingError(f"{found.said['INTERPOSE_FOLLOW']}: {wrong}")
    if wrong := shims.choose_redacted(os.fsencode(found.redact)):
        raise SettingError(f"{found.said['INTERPOSE_REDACT']}: {wrong}")


def doubts(in_force: Settings) -> list[str]:
    """Mistakes in settings that are only warnings of the report, and a missing group directory."""
    found = list(in_force.warnings)
    if in_force.group != "auto" and not os.path.isdir(in_force.group):
        found.append(f"{in_force.said['INTERPOSE_GROUP']}: no such directory")
    return found


def unknown_levels(words: list[str], in_force: Settings) -> list[str]:
    """A line for each name in INTERPOSE_LEVELS that means nothing; none if libraries of your own may declare it."""
    if not in_force.levels or search.library_places(in_force, os.environ, [sys.executable, *words]) is not None:
        return []
    try:
        from interpose.instrumentation import native, system_library
    except ImportError:  # nothing is compiled for this Python; another may run the program
        return []
    from interpose.instrumentation.system_library import statements

    known = {SYSTEM}
    for intrinsic in (*system_library.every(), *statements.INTRINSICS, *native.intrinsics()):
        parts = intrinsic.name.split(".")
        known.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    unknown = [name for name in in_force.levels if name not in known]
    said = in_force.said["INTERPOSE_LEVELS"]
    return [f"{said}: no intrinsic is called {name}{did_you_mean(name, known)}" for name in unknown]


def show_settings(words: list[str], in_force: Settings) -> int:
    """Print the command, and every setting with its origin."""
    print(" ".join(map(shlex.quote, interpreters.command_words(words))))
    for variable, value in in_force.environment().items():
        print(f"{variable:<22} {value:<10} {in_force.origins[variable]}")
    return 0


def why_not_recorded(words: list[str], in_force: Settings, ended: child.Ended, began_s: int) -> str:
    """Why there is no experiment after the program has ended."""
    noted = [note for note in state.not_recorded_in(in_force.dir) if note.time_s >= began_s]
    for note in sorted(noted, key=lambda note: note.pid == ended.pid, reverse=True):
        return str(note)
    try:
        interpreter = interpreters.interpreter_of(words)
    except interpreters.NotPython as error:
        why = programs.why_not(words) or programs.why_not_itself(in_force) or str(error)
        return f"nothing was recorded: {why}, and it started no Python that records; {programs.used(ended)}"
    except FileNotFoundError as error:
        return f"nothing was recorded: {error}"
    answer = interpreters.ask(interpreter)
    if answer is None:
        install = f"install it there: {interpreter.path} -m pip install interpose"
        return f"nothing was recorded: {interpreter.path} does not say whether it has interpose; {install}"
    for obstacle in interpreters.obstacles(answer):
        return obstacle
    return "nothing was recorded: the program ended before recording began"


def show_summary(experiment: str) -> None:
    """Print the beginning of the report and the next commands, for a user at a terminal."""
    if not sys.stderr.isatty():
        return
    from interpose.analysis.analysis import Analysis
    from interpose.cli.first_screen import screen_for
    from interpose.experiments.model.experiment import Experiment
    from interpose.reports.screen import remarks, summary

    try:
        screen = screen_for(sys.stderr, Analysis(Experiment(experiment)))
    except InterposeError as error:
        return say(str(error))
    lines = [*summary.notes(screen), *summary.first_lines(screen), *summary.totals(screen)]
    lines += remarks.triggers(screen)
    lines.append(summary.next_commands(screen))
    show(lines)


def archive(experiment: str, in_force: Settings) -> None:
    """Archive as requested after the program has ended. Failures do not affect the program's result."""
    if in_force.archive == "off":
        return
    from interpose.cli.archiving import archive_at_once
    from interpose.experiments.model.experiment import Experiment

    try:
        archive_at_once(Experiment(experiment))
    except InterposeError as error:
        say(str(error))
