"""Where a process is recorded: as a founder, or as a descendant of which process.

The traced program imports this module when it starts, so it imports next to nothing.
"""

import os

from interpose.errors import Caught
from interpose.experiments.metadata import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from interpose.config.schema import Settings

# The variables by which launchers tell a rank of MPI its number, and one without which each does not mean that.
RANKS = {
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK": "PMIX_RANK",
    "PMI_RANK": "PMI_RANK",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID": "SLURM_STEP_ID",
}
PIECE_BYTES = 8192
ANCESTORS = 4  # a shell or two may stand between a program and its child


class NotRecorded(Caught):
    """Why nothing is recorded of this process; without a text where that is as it should be."""


def find_ancestor() -> str:
    """The nearest recorded ancestor, from INTERPOSE_LINEAGE; empty if there is none.

    A program may start its children with a copy of its own environment, without the recorder's additions to the real
    one. Then the mapped files of their parents show the ancestor.
    """
    pid = 0
    for _ in range(ANCESTORS):
        pid = _parent_of(pid) if pid else os.getppid()
        if pid <= 1:
            break
        if found := recorded_in(pid):
            return f"{pid} {found[0]} {found[1]}"
    return ""


def recorded_in(pid: int) -> tuple[str, str] | None:
    """The founder's directory and the lineage of the process `pid`, of this user's, which is recorded; None if it is
    not."""
    for directory in mapped_experiments(pid):
        if _is_of(directory, pid):
            return _founder_and_lineage(directory)
    return None


def _read(path: str) -> bytes:
    parts = []
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while part := os.read(descriptor, PIECE_BYTES):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _maps_of(pid: int) -> bytes:
    """What the process has mapped, as a thread that has not ended has it; empty if unknown."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return b""
    return next(filter(None, (_read(f"/proc/{pid}/task/{thread}/maps") for thread in threads)), b"")


def mapped_experiments(pid: int, user: "int | None" = None) -> "Iterable[str]":
    """The directories of this user's experiments, or those of `user`, with threads files that the process has mapped:
    its own, and a forked child has its parent's mapped as well."""
    from interpose.timing import shims

    end = b".er/threads"
    files = shims.shared_files(pid)
    if files is None:  # Linux before 6.11, or its first thread has ended
        maps = _maps_of(pid)
        lines = maps.split(b"\n") if end in maps else []
        files = [line[line.index(b"/") :] for line in lines if line.endswith(end)]
    found = dict.fromkeys([os.fsdecode(path.removesuffix(b"/threads")) for path in files if path.endswith(end)])
    return [path for path in found if _is_own_directory(path, user)]


def _founder_and_lineage(directory: str) -> tuple[str, str]:
    above, name = os.path.split(directory)
    lineage = name.removesuffix(names.SUFFIX)
    return (above, lineage) if above.endswith(names.SUFFIX) and names.is_lineage(lineage) else (directory, "")


def _is_of(directory: str, pid: int) -> bool:
    """Whether the experiment is the process's own."""
    return b'<process pid="%d" ' % pid in _read(os.path.join(directory, names.LOG))


def _parent_of(pid: int) -> int:
    """The process's parent; 0 if unknown."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def find_place(parent: str, wanted: "Settings") -> tuple[str, str, str]:
    """The founder's directory, this process's lineage, and the directory of its own experiment. Raises NotRecorded."""
    pid, _, rest = parent.partition(" ")
    founder, _, lineage = rest.rpartition(" ")
    if founder.startswith("/") and names.is_lineage(lineage) and _is_own_directory(founder):
        rank = find_rank(pid)
        if not lineage and _may_be_founder(parent, wanted) and _claim(founder) and not rank:
            return founder, "", founder
        if wanted.follow == "off" or not os.path.exists(os.path.join(founder, names.LOG)):
            raise NotRecorded
        if rank and (directory := _make_followed(founder, rank)):
            return founder, rank, directory
        return founder, *_make_descendant(founder, lineage + ("_x" if pid == str(os.getpid()) else "_c"))
    founder = _create(wanted)
    _claim(founder)
    return founder, "", founder


def starter_directory(parent: str) -> str:
    """The experiment of the process that started this one, as its variable says; empty if it is not this user's."""
    founder, _, lineage = parent.partition(" ")[2].rpartition(" ")
    is_known = founder.startswith("/") and names.is_lineage(lineage) and _is_own_directory(founder)
    return names.lineage_path(founder, lineage) if is_known else ""


def _is_own_directory(path: str, user: "int | None" = None) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid in (os.getuid(), user) and found.st_mode & 0o170022 == 0o040000


def _claim(founder: str) -> bool:
    """Of all the processes that `interpose run` started, the first to come here is the founder."""
    try:
        _make_empty(os.path.join(founder, names.LOG))
    except FileExistsError:
        return False
    return True


def _make_empty(path: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(path, flags, 0o600))


def _may_be_founder(parent: str, wanted: "Settings") -> bool:
    """Whether this can be the founder: `interpose run` started it, or a program that `interpose run` started."""
    from interpose.timing import shims

    return wanted.follow == "off" or is_chosen(parent) or shims.is_followed(b"")


def is_chosen(parent: str) -> bool:
    """Whether this is the program given to `interpose run`."""
    pid, _, rest = parent.partition(" ")
    return pid == str(os.getppid()) and rest.endswith(" ")


def find_rank(pid: str) -> str:
    """The lineage of an MPI rank, from the variables of its launcher, which the process that started us, `pid`, did not
    have; empty if this is not a rank. A forked child of a launcher is started by itself."""
    launcher = os.getppid() if pid == str(os.getpid()) else pid
    texts = _read(f"/proc/{launcher}/environ").split(b"\0") if any(name in os.environ for name in RANKS) else []
    for name, needed in RANKS.items():
        rank = os.environ.get(name, "")
        plain = rank.isascii() and rank.isdecimal() and len(rank) < 10
        if plain and needed in os.environ and os.fsencode(f"{name}={rank}") not in texts:
            return f"M_r{int(rank)}"
    return ""


def _make_descendant(founder: str, step: str) -> tuple[str, str]:
    number = 1
    while not (directory := _make_followed(founder, f"{step}{number}")):
        number += 1
    return f"{step}{number}", directory


def _make_followed(founder: str, lineage: str) -> str:
    """The directory made for a lineage; empty if that is taken. Raises NotRecorded if it is not to be recorded:
    then a file has the name, so that the next lineage has the next number."""
    from interpose.timing import shims

    directory = names.lineage_path(founder, lineage)
    followed = shims.is_followed(lineage.encode())
    try:
        if followed:
            names.make_like_above(directory)
        else:
            _make_empty(directory)
    except FileExistsError:
        return ""
    if not followed:
        _note_excluded(founder)
        raise NotRecorded
    return directory


def _note_excluded(founder: str) -> None:
    """Have reports say why this process has no experiment."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(os.path.join(founder, names.EXCLUDED), flags, 0o600)
    except OSError:
        return
    with open(descriptor, "ab", buffering=0) as file:
        os.fchmod(descriptor, names.file_mode(founder))
        file.write(b"%d\n" % os.getpid())


def _create(wanted: "Settings") -> str:
    try:
        return names.create(wanted.dir, wanted.name, wanted.group_reads)
    except FileExistsError:
        raise
    except OSError:
        from interpose.config import state

        elsewhere = state.experiments_directory()
        if elsewhere is None:
            raise
        return names.create(elsewhere, wanted.name)
