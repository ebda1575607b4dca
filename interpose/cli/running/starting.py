"""Programs that cannot start: why, in one line, with the exit code that Python or a shell gives."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec

from interpose.errors import InterposeError
from interpose.instrumentation import interpreters

NO_FILE, NOTHING_TO_RUN = 2, 1  # as Python ends
NO_COMMAND, NOT_STARTED = 127, 126  # as a shell says it


class CannotStart(InterposeError):
    """The program that was to run cannot be started."""

    def __init__(self, what: str, exit_code: int, mistaken: str = "", known: Sequence[str] = ()) -> None:
        super().__init__(what, mistaken, known)
        self.exit_code = exit_code


def refuse(words: Sequence[str]) -> None:
    """Raise CannotStart for a script, a directory or a module that our own interpreter could not run."""
    if interpreters.command_words(words) == list(words):
        return
    if words[0] == "-m":
        _refuse_module(words[1])
    elif os.path.isdir(words[0]):
        if not os.path.exists(os.path.join(words[0], "__main__.py")):
            raise CannotStart(f"{words[0]}: a directory without __main__.py", NOTHING_TO_RUN)
    else:
        _refuse_script(words[0])


def _refuse_script(path: str) -> None:
    directory = os.path.dirname(path)
    if not os.path.exists(path):
        raise CannotStart(f"{path}: no such file", NO_FILE, path, _scripts_in(directory))
    if not os.access(path, os.R_OK):
        raise CannotStart(f"{path}: is not readable", NO_FILE)


def _scripts_in(directory: str) -> list[str]:
    try:
        found = os.listdir(directory or ".")
    except OSError:
        return []
    return [os.path.join(directory, name) for name in found if name.endswith(".py")]


def _refuse_module(name: str) -> None:
    top = name.partition(".")[0]
    if name.endswith(".py") and os.path.isfile(name):
        raise CannotStart(f"-m {name}: no such module. Did you mean interpose run {name}?", NOTHING_TO_RUN)
    try:
        is_there = PathFinder.find_spec(top, [os.getcwd()]) or find_spec(top)
    except (ImportError, ValueError, OSError):  # Python itself says what is wrong
        return
    if not is_there:
        raise CannotStart(f"-m {name}: no such module in {sys.executable}", NOTHING_TO_RUN)


def not_started(words: Sequence[str], error: OSError) -> CannotStart:
    """Why the program did not start, as a shell says it."""
    is_missing = error.errno == errno.ENOENT
    is_command = is_missing and "/" not in words[0]
    why = "command not found" if is_command else error.strerror or str(error)
    if os.path.isfile(words[0]) and (is_command or error.errno in (errno.ENOEXEC, errno.EACCES)):
        why += f"; if it is Python: interpose run python {words[0]}"
    return CannotStart(f"{words[0]}: {why}", NO_COMMAND if is_missing else NOT_STARTED)
