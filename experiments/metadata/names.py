"""The names and directories of experiments: making them, listing them, finding their descendants."""

import os

from interpose.errors import ExperimentError

SUFFIX = ".er"
LOG = "log.xml"
MAP = "map.xml"
EXCLUDED = "excluded"  # the processes that are not to be recorded, a line with the number of each
PROGRAMS = "programs"  # how programs that are not Python are recorded
LINEAGE_LETTERS = "fxc"
RANKS = "M"  # what the lineage of a rank of MPI begins with


def why_not(name: str) -> str | None:
    """Why an experiment cannot be called `name`; None if it can."""
    if not name or name == SUFFIX:
        return "a name is needed"
    if "/" in name:
        return "a name cannot contain a slash; INTERPOSE_DIR, or --dir, is the directory"
    if not name.isprintable():
        return "a name has no characters that cannot be printed"
    return None


def create(directory: str, name: str, group_reads: bool = False) -> str:
    """Make an experiment's directory with mode 0700, and return its absolute path. If the group of `directory` may read
    it, the mode is 02750.

    `NAME.er` is used unchanged. Any other name becomes `name.1.er`, or the number after the highest; each process gets
    its own, however many ask at once. A missing `directory` is made, its parent is not. Raises ExperimentError for an
    invalid name, OSError if the directory cannot be made.
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
    if group_reads:
        _let_group_read(path, directory)
    return path


def make_private(path: str) -> None:
    """Make a directory for its owner alone, whatever the umask. Raises OSError."""
    os.mkdir(path, 0o700)
    os.chmod(path, 0o700)


def make_like_above(path: str) -> None:
    """Make a directory in an experiment's, which the same may read. Raises OSError."""
    make_private(path)
    if does_group_read(os.path.dirname(path)):
        os.chmod(path, 0o2750)


def does_group_read(directory: str) -> bool:
    """Whether the experiment's directory was made for a group to read. Raises OSError."""
    return os.stat(directory).st_mode & 0o2040 == 0o2040


def file_mode(directory: str) -> int:
    """The mode for files that everyone who may read the experiment's directory may read. Raises OSError."""
    return 0o640 if does_group_read(directory) else 0o600


def write_programs(founder: str, plan: bytes) -> None:
    """Write how programs that are not Python are recorded, for those who may read the experiment. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(founder, PROGRAMS), flags, 0o600)
    try:
        os.fchmod(descriptor, file_mode(founder))
        os.write(descriptor, plan)
    finally:
        os.close(descriptor)


def _let_group_read(path: str, directory: str) -> None:
    """Let the directory's group read it, if it is one of the user's. Any other group may have other members."""
    try:
        os.chown(path, -1, os.stat(directory).st_gid)
        os.chmod(path, 0o2750)
    except OSError:
        pass


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


def split_numbered(name: str) -> tuple[str, int]:
    """Stem and number of `stem.12.er`; the number is 0 for any other name."""
    stem = name.removesuffix(SUFFIX).rpartition(".")[0]
    return stem, _number(name, stem)


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
    """Remove an experiment's directory in which nothing was recorded; return whether it is gone."""
    try:
        found = os.listdir(path)
        if set(found) <= {".gitignore", LOG, PROGRAMS, "notes"} and not is_recorded(path):
            for name in found:
                os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return False
    return True


def is_recorded(path: str) -> bool:
    """Whether a process was recorded there: it claims an experiment with an empty log, then describes itself. With MPI
    ranks alone, the log stays empty."""
    try:
        if os.stat(os.path.join(path, LOG)).st_size > 0:
            return True
        return any(name.startswith(f"{RANKS}_r") and name.endswith(SUFFIX) for name in os.listdir(path))
    except OSError:
        return False


def list_experiments(directory: str) -> list[str]:
    """The paths of the experiments in `directory`, oldest first.

    The age is that of log.xml, which is written when the program begins and when it ends, so the newest is the one that
    began or ended last. Of two with the same age, the one that was made later comes first, because a copy is as old as
    its original. Raises OSError if the directory cannot be read.
    """
    found = []
    for name in os.listdir(directory):
        if not name.endswith(SUFFIX):
            continue
        path = os.path.join(directory, name)
        try:
            log = os.stat(os.path.join(path, LOG))
        except OSError:
            continue
        found.append((log.st_mtime_ns, -log.st_ctime_ns, *split_numbered(name), path))
    return [path for *_, path in sorted(found)]


def hint_if_empty(directory: str) -> str:
    """Where else to look if `directory` is empty and not the current one: to be added to a message; or nothing."""
    try:
        is_empty = not os.listdir(directory) and not os.path.samefile(directory, os.curdir)
    except OSError:
        return ""
    where = "~/.local/state/interpose/experiments of its user (in its container, if it has one)"
    return f"; it is empty: a program that may not write there records into {where}" if is_empty else ""


def list_unreadable(directory: str) -> list[str]:
    """The paths of what is called like an experiment in `directory`, and may not be looked into."""
    named = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    return [path for name in named if not _may_look_into(path := os.path.join(directory, name))]


def _may_look_into(path: str) -> bool:
    try:
        os.stat(os.path.join(path, LOG))
    except PermissionError:
        return False
    except OSError:
        pass  # it is none
    return True


def age_as_copy(copy: str, source: str) -> None:
    """Have the experiment `copy` be as old as the one it was made from, so that this one is taken for the newer.

    Raises OSError.
    """
    found = os.stat(os.path.join(source, LOG))
    os.utime(os.path.join(copy, LOG), ns=(found.st_atime_ns, found.st_mtime_ns))


def newest(directory: str) -> str | None:
    """The path of the newest experiment in `directory`; None if there is none or none can be seen."""
    try:
        experiments = list_experiments(directory)
    except OSError:
        return None
    return experiments[-1] if experiments else None


def is_lineage(text: str) -> bool:
    """Whether a text is a lineage: empty for the founder, else steps like `_f1_x2`; `M_r3` for a rank of MPI, and
    steps after it."""
    start, *steps = text.split("_")
    if start == RANKS:
        rank, steps = steps[:1], steps[1:]
        return bool(rank) and _is_step(rank[0], "r") and all(_is_step(step, LINEAGE_LETTERS) for step in steps)
    return not start and all(_is_step(step, LINEAGE_LETTERS) for step in steps)


def _is_step(step: str, letters: str) -> bool:
    return step[:1] in tuple(letters) and step[1:].isascii() and step[1:].isdecimal()


def lineage_path(founder: str, lineage: str) -> str:
    """The directory of a descendant's experiment. Raises ExperimentError for an invalid lineage."""
    if not is_lineage(lineage):
        raise ExperimentError(f"{lineage!r}: not a lineage like _f1_x2")
    return os.path.join(founder, lineage + SUFFIX) if lineage else founder
