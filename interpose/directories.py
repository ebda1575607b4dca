"""The directories that a program imports from, and which of them are not its own.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os
import sys

from interpose.command_line import split_command


def import_roots() -> list[str]:
    """The directories that the program imports from, as far as is known before its first line."""
    how, what = split_command(sys.orig_argv)
    try:
        own = os.path.dirname(os.path.realpath(what)) if how == "script" and what != "-" else os.getcwd()
    except OSError:
        own = ""
    found = [own, *sys.path]
    return [path for path in dict.fromkeys(found) if path.startswith("/")][:64]


def import_directories() -> list[bytes]:
    """Where the monitor finds what it imports, as bytes: first where we lie, then what is installed beside."""
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *installed]
    return [os.fsencode(path) for path in dict.fromkeys(found) if ":" not in path]


def library_directories() -> list[bytes]:
    """Where code lies that is not the program's own, as bytes that end with a slash."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)) + "/interpose"]
    found += [f"{prefix}/lib/{version}" for prefix in (sys.prefix, sys.base_prefix)]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages", ".zip"))]
    return [os.fsencode(path) + b"/" for path in dict.fromkeys(found)][:16]
