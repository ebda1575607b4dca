"""Commands of `interpose display` one after the other: from a script, from the defaults, or as they are typed."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TextIO

from interpose.cli.er_print.commands import VERBS, Ended, Verb, find, found
from interpose.cli.er_print.views import Session
from interpose.cli.messages import say, tell
from interpose.config import state
from interpose.errors import ExpressionError, InterposeError, UsageError

PROMPT = "(display) "
LONGEST_SCRIPT_BYTES = 1 << 20
HISTORY = "display-history"
HISTORY_LINES = 1000
DEFAULTS = os.path.join("interpose", "displayrc")


class Step(NamedTuple):
    """A command with its words."""

    verb: Verb
    words: Sequence[str]

    def run(self, session: Session) -> None:
        """Do it. Raises InterposeError."""
        self.verb.run(session, self.words)


def parse_line(line: str) -> Step | None:
    """The command in a line; None if there is none. Raises UsageError."""
    name, _, rest = line.strip().partition(" ")
    if not name or name.startswith("#"):
        return None
    verb = found(name.lstrip("-"))
    if verb.takes_line:
        return Step(verb, [_unquoted(rest.strip())] if rest.strip() else [])
    try:
        return Step(verb, shlex.split(rest, comments=True))
    except ValueError as error:
        raise UsageError(f"{verb.name}: {error}".lower()) from error


def _unquoted(text: str) -> str:
    """An expression without the quotes around all of it, as one writes them in er_print."""
    inner = text[1:-1]
    return inner if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inner else text


def run_script(session: Session, lines: Iterable[str], place: str) -> None:
    """Do what the lines say, until one is wrong. Raises UsageError or InterposeError that name the line."""
    for number, line in enumerate(lines, 1):
        try:
            if step := parse_line(line):
                step.run(session)
        except Ended:
            return
        except InterposeError as error:
            raise _at(f"{place}:{number}", error) from error


def _at(place: str, error: InterposeError) -> InterposeError:
    """The same error, with the place where the command stands."""
    what = f"{place}: {error}"
    if isinstance(error, ExpressionError):
        return ExpressionError(what, error.text, error.place)
    return UsageError(what) if isinstance(error, UsageError) else InterposeError(what)


def read_script(path: str) -> list[str]:
    """The lines of a script. Raises InterposeError."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST_SCRIPT_BYTES + 1)
    except OSError as error:
        raise InterposeError(f"{path}: {error.strerror}") from error
    if len(text) > LONGEST_SCRIPT_BYTES:
        raise UsageError(f"{path}: the script is too long")
    return text.splitlines()


_WRONG_AT_MOST = 3  # mistakes after which a file of defaults is given up


def read_defaults(session: Session) -> None:
    """Run the user's file of defaults; mistakes in it, or a wrong owner, are reported."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    home = os.path.expanduser("~")
    path = os.path.join(base if base.startswith("/") else os.path.join(home, ".config"), DEFAULTS)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        return say(f"{path}: ignored: {error.strerror}")
    if why := _why_not_trusted(os.fstat(descriptor)):
        os.close(descriptor)
        return say(f"{path}: ignored: {why}")
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        lines = file.read(LONGEST_SCRIPT_BYTES).splitlines()
    wrong = 0
    for number, line in enumerate(lines, 1):
        try:
            _run_default(session, parse_line(line))
        except InterposeError as error:
            say(f"{path}:{number}: {error}")
            wrong += 1
        if wrong == _WRONG_AT_MOST:
            return say(f"{path}: the rest of the file is ignored")


def _run_default(session: Session, step: Step | None) -> None:
    if step is None:
        return
    if not step.verb.sets:
        raise UsageError(f"{step.verb.name}: has no default")
    step.run(session)


def _why_not_trusted(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "not a plain file"
    if found.st_uid != os.geteuid():
        return "somebody else's"
    return "others may write to it" if found.st_mode & 0o022 else ""


def converse(session: Session) -> None:
    """Run commands until `quit` or the end of the file; mistakes are reported, and it continues."""
    history = _history()
    _prepare(session, history)
    try:
        while (line := _typed()) is not None:
            try:
                if step := parse_line(line):
                    step.run(session)
            except Ended:
                return
            except InterposeError as error:
                tell(error)
            except KeyboardInterrupt:
                _end_line(sys.stdout)  # what took too long was given up
    finally:
        _keep(history)


def _typed() -> str | None:
    """A line; empty if the user interrupted it, None at the end of the file."""
    try:
        return input(PROMPT)
    except KeyboardInterrupt:
        _end_line(sys.stdout)
        return ""
    except EOFError:
        _end_line(sys.stdout)
        return None


def _end_line(out: TextIO) -> None:
    out.write("\n")


def _history() -> str | None:
    """The file for the history; None if it has no place."""
    directory = state.directory()
    return os.path.join(directory, HISTORY) if directory else None


def _prepare(session: Session, history: str | None) -> None:
    """History and completion, where this Python has them."""
    try:
        import readline
    except ImportError:
        return
    readline.set_completer_delims(" \t\n,:")
    readline.set_completer(Completer(session).complete)
    readline.parse_and_bind("tab: complete")
    readline.clear_history()
    if history:
        with suppress(OSError):
            readline.read_history_file(history)


def _keep(history: str | None) -> None:
    try:
        import readline
    except ImportError:
        return
    readline.set_history_length(HISTORY_LINES)
    if history:
        with suppress(OSError):
            os.close(os.open(history, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            readline.write_history_file(history)


class Completer:
    """Returns what a word can become: commands, then what the command takes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: list[str] = []

    def complete(self, text: str, number: int) -> str | None:
        """The completion `number`, as readline asks for it."""
        import readline

        if number == 0:
            line = readline.get_line_buffer()[: readline.get_begidx()]
            self._found = self.possible(line, text)
        return self._found[number] if number < len(self._found) else None

    def possible(self, before: str, text: str) -> list[str]:
        """The possible completions of `text`, after `before`."""
        name = before.split()[0] if before.split() else ""
        verb = find(name) if name else None
        known = [each.name for each in VERBS] if not name else self._words(verb) if verb else []
        return sorted({each for each in known if each.startswith(text)})

    def _words(self, verb: Verb) -> list[str]:
        if verb.name == "help":
            return [each.name for each in VERBS]
        taken = verb.words[0].strip("[]") if verb.words else ""
        session = self._session
        if taken.startswith("METRIC"):
            return [*session.metrics, "name", *(f"{each}{name}" for each in ("e.", "i.") for name in session.metrics)]
        if taken.startswith("FUNCTION"):
            files = list(session.calls.files) if "FILE" in taken else []
            return [node.frame.function.name for node in session.tree.nodes] + files
        if taken.startswith("OBJECT"):
            return [*session.all_objects, "all", "library"]
        return ["text", "html", "delimiter"] if taken == "MODE" else []
