"""What experiments are called and where they lie: made, listed, and their descendants found."""

from __future__ import annotations

import os

from interpose.errors import ExperimentError

SUFFIX = ".er"
LOG = "log.xml"
LINEAGE_LETTERS = "fxc"


def why_not(name: str) -> str | None:
    """Why an experiment cannot be called `name`, or None where it can."""
    if not name or name == SUFFIX:
        return "a name is needed"
    if "/" in name:
        return "a name has no slash; the directory is a setting of its own"
    if not name.isprintable():
        return "a name has no characters that cannot be printed"
    return None


def create(directory: str, name: str) -> str:
    """Make an experiment's directory, 0700, and give its path from the root on.

    `NAME.er` is taken as it is; from any other name comes `name.1.er`, or the number after the highest there
    is, one for each process that asks, however many ask at once. A `directory` that is not there is made, its
    parent is not. Raises ExperimentError for a name that cannot be, OSError where there is no making it.
    """
    if why := why_not(name):
        raise ExperimentError(f"{name!r}: {why}")
    directory = os.path.abspath(directory)
    try:
        make_private(directory)
    except FileExistsError:
        pass
    path = _make(os.path.join(directory, name)) if name.endswith(SUFFIX) else _make_numbered(directory, name)
    _ignore_for_git(path)
    return path


def make_private(path: str) -> None:
    """Make a directory that is its owner's alone, whatever the umask. Raises OSError."""
    os.mkdir(path, 0o700)
    os.chmod(path, 0o700)


def _make(path: str) -> str:
    make_private(path)
    return path


def _make_numbered(directory: str, stem: str) -> str:
    number = 1 + max((_number(name, stem) for name in os.listdir(directory)), default=0)
    while True:
        try:
            return _make(os.path.join(directory, f"{stem}.{number}{SUFFIX}"))
        except FileExistsError:  # another process was faster
            number += 1


def _number(name: str, stem: str) -> int:
    """The number in `stem.12.er`; 0 for any other name."""
    digits = name[len(stem) + 1 : -len(SUFFIX)]
    numbered = digits.isascii() and digits.isdecimal() and name == f"{stem}.{digits}{SUFFIX}"
    return int(digits) if numbered else 0


def _ignore_for_git(path: str) -> None:
    """An experiment is never committed by mistake."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.join(path, ".gitignore"), flags, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, b"*\n")
        finally:
            os.close(descriptor)
    except OSError:
        remove_empty(path)
        raise


def remove_empty(path: str) -> bool:
    """Remove an experiment's directory in which nothing was recorded; gives whether it is gone."""
    try:
        found = os.listdir(path)
        if set(found) <= {".gitignore", LOG} and not is_recorded(path):
            for name in found:
                os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return False
    return True


def is_recorded(path: str) -> bool:
    """Whether a process was recorded there: it takes an experiment by an empty log, then describes itself."""
    try:
        return os.stat(os.path.join(path, LOG)).st_size > 0
    except OSError:
        return False


def list_experiments(directory: str) -> list[str]:
    """The paths of the experiments in `directory`, oldest first.

    The age is that of log.xml, which is written when the program begins and again when it ends: the newest is
    the one that was begun or ended last. Raises OSError where the directory cannot be read.
    """
    found = []
    for name in os.listdir(directory):
        if not name.endswith(SUFFIX):
            continue
        path = os.path.join(directory, name)
        try:
            written_ns = os.stat(os.path.join(path, LOG)).st_mtime_ns
        except OSError:
            continue
        stem = name[: -len(SUFFIX)].rpartition(".")[0]
        found.append((written_ns, stem, _number(name, stem), path))
    return [path for *_, path in sorted(found)]


def newest(directory: str) -> str | None:
    """The path of the newest experiment in `directory`; None where there is none, or none can be seen."""
    try:
        experiments = list_experiments(directory)
    except OSError:
        return None
    return experiments[-1] if experiments else None


def is_lineage(text: str) -> bool:
    """Whether a text is a lineage: empty for the founder, else steps like `_f1_x2`."""
    start, *steps = text.split("_")
    return not start and all(
        step[:1] in LINEAGE_LETTERS and step[1:].isascii() and step[1:].isdecimal() for step in steps
    )


def lineage_path(founder: str, lineage: str) -> str:
    """Where the experiment of a descendant lies. Raises ExperimentError for what is not a lineage."""
    if not is_lineage(lineage):
        raise ExperimentError(f"{lineage!r}: not a lineage like _f1_x2")
    return os.path.join(founder, lineage + SUFFIX) if lineage else founder
