"""`interpose attach`: begin recording a Python program that runs already."""

from __future__ import annotations

import argparse
import os
import shlex

from interpose.attach.reach import reach
from interpose.attach.tracee import CannotAttach
from interpose.cli.commands.run import add_settings, check_patterns
from interpose.cli.messages import say
from interpose.cli.output import only_seconds, positive
from interpose.cli.running.experiment import add_place_argument, place_of
from interpose.cli.target import founder_of
from interpose.config import precedence, schema
from interpose.errors import UsageError
from interpose.reports.formats.units import duration

NAME = "attach"
HELP = "record a running program (experimental before Python 3.14)"
EXAMPLE = "interpose attach 4711"
DESCRIPTION = """\
Start to record the running program PID, with the settings given here. `interpose detach PID` ends the recording, and
the program continues as before. From Python 3.14 on, the program itself starts the recording (sys.remote_exec). Before,
interpose stops the program for a moment (ptrace), which is experimental. If the
program's user may not write into --dir, the experiment goes to that user's state
directory, and a line says so."""
WAIT_S = 10.0
OF_LINES = ("lines", "lines_depth", "lines_system", "statements", "coverage", "branches", "contexts", "probes")
BESIDE_CALLS = {"native", "profile", "heap"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, made from the table of settings, and the process."""
    parser.usage = "interpose attach [options] PID"
    parser.description = DESCRIPTION
    parser.allow_abbrev = False
    add_process_arguments(parser)
    add_place_argument(parser)
    add_settings(parser, refused=OF_LINES)


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """Add PID, and how long to wait for it."""
    parser.add_argument("pid", metavar="PID", type=positive, help="the process id")
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=only_seconds,
        default=WAIT_S,
        help="give up after this long if no thread can be interrupted (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Attach, and say what came of it."""
    settings = settings_of(arguments)
    if founder_of(arguments.pid):
        raise CannotAttach(f"{arguments.pid}: is recorded already")
    done = reach(arguments.pid, "begin", settings, timeout_s=arguments.wait)
    experiment, bound = done.answer.get("experiment"), done.answer.get("bound", [])
    if not isinstance(experiment, str) or not isinstance(bound, list):
        raise CannotAttach(f"{arguments.pid}: it gave no answer")
    stood = "" if done.still_ns is None else f"; the program stood still for {duration(done.still_ns)} of it"
    print(f"{experiment}   process {arguments.pid} is now recorded")
    directory, wanted = os.path.dirname(experiment), os.path.abspath(settings["INTERPOSE_DIR"])
    if directory != wanted:
        say(f"{arguments.pid}: the program could not create an experiment in {wanted}; it created one in {directory}")
    print(f"attaching took {duration(done.took_ns)}{stood}")
    if raised := done.answer.get("raised"):
        print(f"a signal handler raised {raised} meanwhile; the program gets it, and earlier references are not listed")
    for each in bound:
        print(f"not traced: {each}, a reference bound earlier")
    if more := done.answer.get("more"):
        print(f"not traced: {more} more")
    shown = shlex.quote(os.path.relpath(experiment) if experiment.startswith(os.getcwd() + "/") else experiment)
    print(f" next: interpose report {shown} · interpose detach {arguments.pid}")
    return 0


def settings_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The variables for the settings given here or by options. Raises SettingError, UsageError."""
    options = {setting.key: getattr(arguments, setting.name) for setting in schema.SETTINGS}
    if arguments.experiment is not None:
        options.update(place_of(arguments.experiment, "-o"))
    if precedence.in_force(os.environ, options).origins["INTERPOSE"] == "default":
        options["record"] = "1"
    wanted = precedence.in_force(os.environ, options)
    if wanted.profile_hz and wanted.origins["INTERPOSE_PROFILE"] != "default":
        precedence.record_profile(wanted)
    given = [each for each in schema.SETTINGS if options[each.key] is not None]
    of_lines = [each.options[-1] for each in given if each.name in OF_LINES]
    if "calls" not in wanted.record and BESIDE_CALLS.issuperset(wanted.record):
        raise UsageError(f"attach always records calls: use --record calls,{','.join(wanted.record)}")
    if not {"calls", *BESIDE_CALLS}.issuperset(wanted.record) or of_lines:
        why = (
            "attach records calls, native calls, the profile and the heap; lines and coverage need interpose run from"
            " the program's start"
        )
        raise UsageError(f"{of_lines[0]}: {why}" if of_lines else why)
    check_patterns(wanted)
    texts = wanted.environment()
    always = ("INTERPOSE", "INTERPOSE_DIR")
    return {name: texts[name] for name in texts if name in always or wanted.origins[name] != "default"}
