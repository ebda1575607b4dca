"""The settings file of a project: finds and reads it.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os

from interpose.config.trust import distrust, is_of_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # What a file says: the text for each key, and the place (`pyproject.toml:12`) that says so.
    FileSettings = Mapping[str, tuple[str, str]]


FILE = "pyproject.toml"
LARGEST_FILE_BYTES = 1 << 20


def read_file(directory: str, load: "Callable[[], object]" = list) -> "tuple[FileSettings, list[str]]":
    """The section in the nearest pyproject.toml, from `directory` upward, empty if there is none; and why a file is
    ignored, if somebody else could have written it. The search ends at a directory that somebody else can write to.

    Reads flat lines `key = "text"`, a number, true or false, because a whole TOML reader takes 15 ms to import. Raises
    SettingError, with file and line, for any other line in the section. `load` is called before the modules that
    parse the section are imported.
    """
    try:
        directory = os.path.abspath(directory)
    except FileNotFoundError:
        return {}, []
    while True:
        path = os.path.join(directory, FILE)
        data = read_plain(path)
        if data is not None:
            return _trusted(path, data, load) if b"interpose" in data else ({}, [])
        parent = os.path.dirname(directory)
        if parent == directory or is_of_others(directory):
            return {}, []
        directory = parent


def read_plain(path: str) -> bytes | None:
    """The bytes of a file; None if it is missing or unreadable. Never waits, for example for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, LARGEST_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _trusted(path: str, data: bytes, load: "Callable[[], object]") -> "tuple[FileSettings, list[str]]":
    if why := distrust(path):
        return {}, [f"{path} is ignored: {why}"]
    load()
    from interpose.config import project_file

    return dict(project_file.parse_lines(path, data)), []


def absolute(directory: str, origin: str = "") -> str:
    """The absolute path of a directory; in a settings file, it is relative to that file's directory."""
    path, _, line = origin.rpartition(":")
    try:
        base = os.path.dirname(path) if line.isdecimal() else os.getcwd()
    except FileNotFoundError:
        return directory
    return os.path.normpath(os.path.join(base, directory))
