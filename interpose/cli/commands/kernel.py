"""`interpose kernel`: record the system calls of processes in any language, from outside, with perf events."""

from __future__ import annotations

import argparse
import errno
import os
import resource
import shlex
import shutil
import signal
import time
from typing import TYPE_CHECKING

from interpose.cli.commands.run import check_patterns
from interpose.cli.messages import say
from interpose.cli.output import positive
from interpose.cli.running import child, starting, watched_processes
from interpose.cli.running.experiment import add_place_argument, make_experiment, place_of
from interpose.cli.running.watched_processes import NO_PROCESS, Permitted, why_not_watched
from interpose.cli.times import duration_ns
from interpose.config import levels, policy, precedence, schema
from interpose.config.schema import Settings
from interpose.errors import InterposeError, UsageError
from interpose.experiments.metadata import names
from interpose.kinds import EVERY, IDLE

if TYPE_CHECKING:
    from interpose.kernel_view import KernelView, Wanted

NAME = "kernel"
HELP = "record the system calls of processes in any language (root)"
EXAMPLE = "interpose kernel -p 4711 --for 10s"
USAGE = "interpose kernel [options] (-p PID [-p PID ...] | [--] COMMAND [arguments of the program])"
DESCRIPTION = """\
Record the system calls of a command or of running processes, in any language, from outside. Nothing is loaded into
them, and they need not be restarted. Child processes are recorded as well. The experiment is called ktest.1.er; with
-p there is one for each PID. It needs root, or capabilities (docs/kernel.md). Ctrl-C ends the recording; the processes
go on."""
NAMED = "ktest"
LOOK_EVERY_S = 0.01
USED = ("dir", "name", "kinds", "arguments", "redact", "group_reads", "follow")


class CannotWatch(InterposeError):
    """The kernel does not let us watch, or a process cannot be watched."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options and the program."""
    parser.usage = USAGE
    parser.description = DESCRIPTION
    parser.allow_abbrev = False
    parser.add_argument(
        "-p", dest="pids", metavar="PID", type=positive, action="append", default=[], help="record this running process"
    )
    parser.add_argument("--for", dest="duration", metavar="DURATION", help="record this long (30s, 10m, 1h)")
    add_place_argument(parser)
    parser.add_argument(
        "--stacks",
        action="store_true",
        help="also record the functions that led to each call (needs code compiled with frame pointers)",
    )
    group = parser.add_argument_group("settings", "Each of them is also an environment variable: docs/settings.md.")
    for setting in schema.SETTINGS:
        if setting.name in USED:
            meaning = setting.meaning.replace("%", "%%")
            group.add_argument(*setting.options, dest=setting.name, metavar=setting.form, default=None, help=meaning)
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Record until the command or all given processes have ended, the time is over, or Ctrl-C."""
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if bool(words) == bool(arguments.pids):
        raise UsageError(f"a command or -p PID is needed, and not both: {USAGE}")
    for_ns = _duration_ns(arguments.duration)
    in_force = settings_in_force(arguments)
    try:
        permitted = Permitted()
    except policy.Forbidden as why:
        raise CannotWatch(str(why)) from None
    if words and (forbidden := permitted.why_not_command(words)):
        raise CannotWatch(f"{words[0]}: {forbidden}")
    try:
        view = _view(_wanted(in_force, permitted, arguments.stacks))
    except ImportError as error:  # nothing is compiled for this Python
        raise CannotWatch(str(error)) from None
    recording = _Recording(view, for_ns)
    return (
        _run_program(recording, words, in_force)
        if words
        else _watch_all(recording, arguments.pids, in_force, permitted)
    )


def settings_in_force(arguments: argparse.Namespace) -> Settings:
    """The settings that are used. Raises SettingError."""
    options = {setting.key: getattr(arguments, setting.name, None) for setting in schema.SETTINGS}
    if arguments.experiment is not None:
        options.update(place_of(arguments.experiment, "-o"))
    found = precedence.in_force(os.environ, options)
    if found.origins["INTERPOSE_NAME"] == "default":
        found = precedence.in_force(os.environ, options | {"name": NAMED})
    if found.follow not in ("on", "off"):
        raise UsageError(f"{found.said['INTERPOSE_FOLLOW']}: the kernel's view follows all (on) or none (off)")
    check_patterns(found)
    return found


def _duration_ns(duration: str | None) -> int | None:
    for_ns = None if duration is None else duration_ns(duration)
    if duration is not None and not for_ns:
        raise UsageError(f"--for {duration}: is not a duration like 30s, 10m or 1h")
    return for_ns


def _wanted(in_force: Settings, permitted: Permitted, has_stacks: bool) -> Wanted:
    from interpose.kernel_view import Wanted
    from interpose.timing import shims

    def redacted(text: str) -> str:
        return os.fsdecode(shims.redacted(os.fsencode(text)))

    off = {kind for kind, level in (in_force.kinds or {}).items() if level == levels.OFF}
    kinds = [kind for kind in EVERY if kind not in off | permitted.forbidden_kinds]
    used = {setting.variable for setting in schema.SETTINGS if setting.name in USED}
    texts = {variable: text for variable, text in in_force.texts.items() if variable in used}
    return Wanted(
        settings={**texts, "INTERPOSE": "calls", "INTERPOSE_REDACT": "on" if in_force.redact else "off"},
        kinds=[kind for kind in kinds if kind != IDLE or "net" in kinds],
        follows=in_force.follow == "on",
        has_stacks=has_stacks,
        keeps_paths=in_force.arguments.get("file", 0) in (0, levels.KEPT.index("whole")),
        redacted=redacted if in_force.redact else str,
        why_not=permitted.why_not,
    )


def _view(wanted: Wanted) -> KernelView:
    from interpose.kernel_view import KernelView

    try:
        return KernelView(wanted)
    except OSError as error:
        raise CannotWatch(why_not_watched(error.errno or 0)) from None


class _Recording:
    """Reads perf records at intervals until the recording ends. Its time begins when everything is watched."""

    signals: frozenset[signal.Signals] = frozenset()

    def __init__(self, view: KernelView, for_ns: int | None) -> None:
        self.view = view
        self._for_ns = for_ns
        self._end_ns: int | None = None
        self._is_closed = False
        self._has_room = False

    @property
    def is_over(self) -> bool:
        """Whether the time is over, or no process is left."""
        return self.view.has_nobody or (self._end_ns is not None and time.monotonic_ns() >= self._end_ns)

    def begin(self) -> None:
        """Count the time from now on, unless it counts already."""
        if self._for_ns is not None and self._end_ns is None:
            self._end_ns = time.monotonic_ns() + self._for_ns

    def signalled(self, number: signal.Signals) -> None:
        """Ignores all signals."""

    def attend(self) -> float | None:
        """Read new records; returns the seconds until the next call, or None when closed."""
        if self._is_closed:
            return None
        self.begin()
        if not self._has_room:  # only now: the program has started, and keeps the old limit
            _raise_limit_of_files()
            self._has_room = True
        self.view.look()
        if self._end_ns is not None and time.monotonic_ns() >= self._end_ns:
            self.close()
        return LOOK_EVERY_S

    def close(self, ended: child.Ended | None = None) -> None:
        """Stop watching, write what is left, and print what failed."""
        if self._is_closed:
            return
        self._is_closed = True
        self.view.close({ended.pid: ended.returncode} if ended else {})
        for failure in self.view.failures:
            say(failure)


def _run_program(recording: _Recording, words: list[str], in_force: Settings) -> int:
    experiment = make_experiment(in_force)
    try:
        recording.view.watch_child(experiment)
        ended = child.run(words, dict(os.environ), [recording])
    except OSError as error:
        recording.close()
        names.remove_empty(experiment)
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError) and error.filename:
            raise starting.not_started(words, error) from None
        raise CannotWatch(why_not_watched(error.errno or 0)) from None
    recording.close(ended)
    if not names.is_recorded(experiment):
        names.remove_empty(experiment)
    return child.end_as(ended.returncode)


def _raise_limit_of_files() -> None:
    """To the hard limit: two open files are needed for each process, and for each thread on each processor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _watch_all(recording: _Recording, pids: list[int], in_force: Settings, permitted: Permitted) -> int:
    made: list[str] = []
    _raise_limit_of_files()
    try:
        chosen = list(dict.fromkeys(pids))
        for pid in chosen:
            _check(pid, permitted)
        for pid in chosen:
            made.append(_watch(recording.view, pid, in_force))
        recording.begin()
        _look_on(recording)
    finally:
        recording.close()
        kept = [path for path in made if names.is_recorded(path)]
    if kept:
        print(f" next: interpose report {' '.join(shlex.quote(os.path.relpath(path)) for path in kept)}")
    return 0


def _check(pid: int, permitted: Permitted) -> None:
    if pid == os.getpid():
        raise UsageError(f"-p {pid}: that is this command itself")
    if why := watched_processes.why_not(pid) or permitted.why_not(pid):
        raise CannotWatch(f"-p {pid}: {why}")


def _watch(view: KernelView, pid: int, in_force: Settings) -> str:
    experiment = make_experiment(in_force)
    try:
        view.watch(pid, experiment)
    except OSError as error:
        shutil.rmtree(experiment, ignore_errors=True)
        if error.filename:  # its files failed, not the permission to watch
            why = f"{error.filename}: {error.strerror}; INTERPOSE_DIR or --dir names another directory"
            raise CannotWatch(why) from None
        gone = error.errno == errno.ESRCH
        raise CannotWatch(f"-p {pid}: {NO_PROCESS}" if gone else why_not_watched(error.errno or 0)) from None
    print(f"{experiment}   the system calls of process {pid} are recorded (Ctrl-C ends it)")
    return experiment


def _look_on(recording: _Recording) -> None:
    """Record until the recording is over, or a signal ends it."""
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        while not recording.is_over and child.next_signal(ends, [LOOK_EVERY_S]) is None:
            recording.attend()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
