"""Groups of experiments: a file `NAME.erg` that names them, one path a line."""

from __future__ import annotations

import os

from interpose.errors import ExperimentError
from interpose.experiments.model.files import open_plain

SUFFIX = ".erg"
FIRST_LINES = ("#interpose experiment group", "#analyzer experiment group")
LARGEST_GROUP_BYTES = 1 << 20
LONGEST_PATH = 4096
MEMBERS_AT_MOST = 10_000
DEEPEST = 8


def is_group(path: str) -> bool:
    """Whether `path` is called as a group is."""
    return path.endswith(SUFFIX)


def members(path: str) -> list[str]:
    """The paths of the experiments in the group at `path`, and in the groups that it names.

    Relative paths start from the group's directory. Raises ExperimentError for a file that is not a group, and for a
    group that contains itself.
    """
    found = _members(path, ())
    if not found:
        raise ExperimentError(f"{path}: names no experiment")
    return list(dict.fromkeys(found))


def _members(path: str, above: tuple[str, ...]) -> list[str]:
    real = os.path.realpath(path)
    if real in above:
        raise ExperimentError(f"{path}: the group contains itself")
    if len(above) >= DEEPEST:
        raise ExperimentError(f"{path}: groups are nested more than {DEEPEST} deep")
    found: list[str] = []
    for line in _lines(path):
        member = os.path.join(os.path.dirname(path), line)
        found += _members(member, (*above, real)) if is_group(member) else [member]
        if len(found) > MEMBERS_AT_MOST:
            raise ExperimentError(f"{path}: more than {MEMBERS_AT_MOST:,} experiments")
    return found


def _lines(path: str) -> list[str]:
    try:
        with open(open_plain(os.path.realpath(path)), "rb") as file:
            data = file.read(LARGEST_GROUP_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST_GROUP_BYTES:
        raise ExperimentError(f"{path}: longer than {LARGEST_GROUP_BYTES >> 20} MiB")
    first, *lines = [line.strip() for line in data.decode("utf-8", "surrogateescape").split("\n")]
    if first not in FIRST_LINES:
        raise ExperimentError(f"{path}: not a group; its first line is {FIRST_LINES[0]!r}")
    for number, line in enumerate(lines, 2):
        if len(line) > LONGEST_PATH or "\0" in line:
            raise ExperimentError(f"{path}:{number}: is not a path")
    return [line for line in lines if line and not line.startswith("#")]
