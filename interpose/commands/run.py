"""`interpose run`: start a program with recording switched on, wait for it, end as it ended."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time

from interpose import interpreters, settings, state
from interpose.commands import child
from interpose.errors import InterposeError, UsageError
from interpose.experiments import endings, names

NAME = "run"
HELP = "run a program and record where its time goes"
USAGE = "interpose run [options] [--] (-m MODULE | SCRIPT.py | COMMAND) [arguments of the program]"
DESCRIPTION = """\
Everything after the program belongs to the program. Its exit code is passed through. A script and a module
are run with the interpreter that interpose itself is installed for, another command is looked for in PATH."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, made from the table of settings, and the program."""
    parser.usage = USAGE
    parser.description = DESCRIPTION
    parser.allow_abbrev = False
    for setting in settings.SETTINGS:
        parser.add_argument(
            setting.option, dest=setting.name, metavar=setting.form, default=None, help=setting.meaning
        )
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help=argparse.SUPPRESS
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run the program; gives its exit code. Where a signal killed it, the same signal kills this process."""
    words = program_words(arguments)
    in_force = settings_in_force(arguments)
    experiment = make_experiment(in_force) if in_force.record else None
    began_s = int(time.time())
    try:
        ended = child.run(interpreters.command_words(words), program_environment(in_force, experiment))
    except OSError as error:
        return not_started(words, experiment, error)
    if experiment is None:
        tell("not recorded: INTERPOSE is 0")
    elif names.is_recorded(experiment):
        endings.complete(experiment, ended.pid, ended.returncode, ended.time_ns)
        show_summary(experiment)
    else:
        names.remove_empty(experiment)
        tell(why_not_recorded(words, ended.pid, began_s))
    return child.end_as(ended.returncode)


def program_words(arguments: argparse.Namespace) -> list[str]:
    """The words of the program and its arguments. Raises UsageError where there are none."""
    words = list(arguments.program)
    if arguments.module is not None:
        words = ["-m", *arguments.module, *words]
    elif words[:1] == ["--"]:
        del words[0]
    if words in ([], ["-m"]):
        raise UsageError(f"a program is needed: {USAGE}")
    return words


def settings_in_force(arguments: argparse.Namespace) -> settings.Settings:
    """The settings of the run; where nothing says what to record, calls are. Raises SettingError."""
    options = {setting.key: getattr(arguments, setting.name) for setting in settings.SETTINGS}
    file = settings.read_file(".")
    if settings.resolve(options, os.environ, file).origins["INTERPOSE"] == "default":
        options["record"] = "1"
    return settings.resolve(options, os.environ, file)


def make_experiment(in_force: settings.Settings) -> str:
    """The path of a new experiment. Raises InterposeError where it cannot be made."""
    try:
        return names.create(in_force.dir, in_force.name)
    except FileExistsError as error:
        raise InterposeError(f"{error.filename}: is there already") from None
    except OSError as error:
        why = "is not writable" if error.errno in (errno.EACCES, errno.EROFS) else error.strerror
        raise InterposeError(
            f"{in_force.dir}: {why}; INTERPOSE_DIR or --dir names another directory"
        ) from None


def program_environment(in_force: settings.Settings, experiment: str | None) -> dict[str, str]:
    """The environment of the program: ours, the settings, and the experiment of which it is the founder."""
    environment = {**os.environ, **in_force.environment()}
    environment.pop("INTERPOSE_LINEAGE", None)
    if experiment is not None:
        environment["INTERPOSE_LINEAGE"] = f"{os.getpid()} {experiment} "
    return environment


def not_started(words: list[str], experiment: str | None, error: OSError) -> int:
    """Say why the program did not start; gives the exit code that a shell gives."""
    if experiment is not None:
        names.remove_empty(experiment)
    missing = error.errno == errno.ENOENT
    tell(f"{words[0]}: {'command not found' if missing and '/' not in words[0] else error.strerror}")
    return 127 if missing else 126


def why_not_recorded(words: list[str], pid: int, began_s: int) -> str:
    """Why there is no experiment after the program has ended."""
    noted = [note for note in state.not_recorded() if note.time_s >= began_s]
    for note in sorted(noted, key=lambda note: note.pid == pid, reverse=True):
        return str(note)
    try:
        interpreter = interpreters.interpreter_of(words)
    except (interpreters.NotPython, FileNotFoundError) as error:
        return f"nothing was recorded: {error}, and it started no Python that records"
    answer = interpreters.ask(interpreter)
    if answer is None:
        return f"nothing was recorded: {interpreter.path} does not say whether it has interpose"
    for obstacle in interpreters.obstacles(answer):
        return obstacle
    return "nothing was recorded: the program ended before recording began"


def show_summary(experiment: str) -> None:
    """How the report begins, and what to ask next: for somebody who looks at a terminal."""
    if not sys.stderr.isatty():
        return
    from interpose.commands.output import screen_for
    from interpose.experiments.experiment import Experiment
    from interpose.reports import summary

    try:
        screen = screen_for(sys.stderr, Experiment(experiment))
    except InterposeError as error:
        return tell(str(error))
    lines = [*summary.first_lines(screen), *summary.totals(screen), summary.next_commands(screen.width)]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def tell(line: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"interpose: {line}\n")
