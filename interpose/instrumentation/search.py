"""Where libraries besides ours may be: the group's, the account's, those that commands resolved before.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os
import sys

from interpose.config import settings_file
from interpose.config.program import split_command
from interpose.config.trust import is_of_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interpose.config.schema import Settings

LIBRARY_DIRECTORY = "interpose.d"


def library_places(
    wanted: "Settings", environment: "Mapping[str, str]", arguments: "Sequence[str]"
) -> tuple[str, str, str] | None:
    """Where to look for libraries: the group's directory, the account's, the file of resolved ones, each empty if there
    is none. None if only the system library exists or is requested, and nothing is named that libraries or data
    collectors may have."""
    if wanted.lib == "S" and not wanted.xl:
        return None
    home = environment.get("HOME", "")
    group = "" if wanted.lib == "P" and not wanted.xl else wanted.group
    if group == "auto":
        group = find_group(library_start(arguments, home), home)
    account = _base(environment, "XDG_CONFIG_HOME", home, ".config")
    account = account and f"{account}/{LIBRARY_DIRECTORY}"
    resolved = resolved_file(environment)
    account = account if account and os.path.isdir(account) else ""
    resolved = resolved if resolved and os.path.isfile(resolved) else ""
    is_named = wanted.xl or wanted.collectors or wanted.unsat not in ("off", "skip")
    return (group, account, resolved) if group or account or resolved or is_named else None


def resolved_file(environment: "Mapping[str, str]") -> str:
    """Where commands write down which libraries projects and packages name; empty if there is no such place."""
    base = _base(environment, "XDG_STATE_HOME", environment.get("HOME", ""), ".local/state")
    return base and f"{base}/libraries"


def _base(environment: "Mapping[str, str]", variable: str, home: str, below: str) -> str:
    """interpose's directory among the user's; the XDG specification says that relative paths are ignored."""
    base = environment.get(variable, "")
    if not base.startswith("/"):
        base = f"{home}/{below}" if home.startswith("/") else ""
    return base and f"{base}/interpose"


def library_start(arguments: "Sequence[str]", home: str) -> str:
    """Where the upward search for the group's libraries begins: the main script's directory; the working directory for
    a module, for code from the command line, and for a command that was installed with an interpreter."""
    how, what = split_command(arguments)
    try:
        here = os.getcwd()
        if how != "script" or what == "-":
            return here
        path = os.path.join(here, what)
        if os.path.islink(path):
            path = os.path.realpath(path)
        if not what.endswith(".py") and os.path.isdir(path):
            return os.path.normpath(path)
    except OSError:
        return ""
    directory = os.path.normpath(os.path.dirname(path))
    interpreters = [os.path.dirname(sys.executable or ""), os.path.dirname(arguments[0])]
    installed = [*interpreters, f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", f"{home}/.local/bin"]
    return here if directory in installed and not what.endswith(".py") else directory


def find_group(directory: str, home: str) -> str:
    """The nearest directory, from this one upward, that has libraries; never above the home directory, the repository,
    or a directory that somebody else can write to."""
    while directory:
        if os.path.isdir(f"{directory}/{LIBRARY_DIRECTORY}") or _names_libraries(directory):
            return directory
        above = os.path.dirname(directory)
        if above == directory or directory == home or is_of_others(directory) or os.path.lexists(f"{directory}/.git"):
            break
        directory = above
    return ""


def _names_libraries(directory: str) -> bool:
    data = settings_file.read_plain(f"{directory}/{settings_file.FILE}")
    if data is None or b"interpose" not in data:
        return False
    from interpose.config import project_file

    return project_file.names_libraries(data)
