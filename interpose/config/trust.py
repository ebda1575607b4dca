"""Which files interpose trusts (only the user and root can have written them, or put them there), and whether the
process has the rights of the user who started it.

The traced program imports this module when it starts, so it imports next to nothing.
"""

import os
import stat
import sys

AT_SECURE = 23  # getauxval(3): set where the kernel gave a program rights that its caller does not have
AUXILIARY_BYTES = 4096  # ten times what it has

LINKS_AT_MOST = 40


def distrust(path: str) -> str:
    """Why a file is not trusted; empty if it is.

    The file, each directory above it, and each link must belong to the user or to root, and nobody else may write to
    them, except directories such as /tmp where everyone can replace only their own files.
    """
    owners = (os.geteuid(), 0)
    words, at, links = path.split("/")[1:], "", 0
    why = _distrust_one("/", os.lstat("/"), owners)
    while words and not why:
        word = words.pop(0)
        if word in ("", "."):
            continue
        if word == "..":
            at = os.path.dirname(at)
            continue
        step = f"{at}/{word}"
        try:
            there = os.lstat(step)
            if not stat.S_ISLNK(there.st_mode):
                at = step
                why = _distrust_one(step, there, owners)
                continue
            target = os.readlink(step)
        except OSError as error:
            return f"{step}: {error.strerror}"
        links += 1
        if there.st_uid not in owners:
            return f"{step} is a link of another user's"
        if links > LINKS_AT_MOST:
            return f"{step}: too many links"
        words = [*target.split("/"), *words]
        at = "" if target.startswith("/") else at
    if why:
        return why
    return "" if stat.S_ISREG(os.lstat(at or "/").st_mode) else f"{path} is not a file"


def _distrust_one(path: str, there: os.stat_result, owners: tuple[int, int]) -> str:
    if there.st_uid not in owners:
        return f"{path} belongs to another user"
    if there.st_mode & 0o022 and not (stat.S_ISDIR(there.st_mode) and there.st_mode & stat.S_ISVTX):
        return f"{path} is writable by {'others' if there.st_mode & 0o002 else 'its group'}"
    return ""


def is_of_others(directory: str) -> bool:
    """Whether somebody else can put files into a directory. Its parents do not matter for a program in it."""
    try:
        there = os.stat(directory)
    except OSError:
        return True
    return there.st_uid not in (os.geteuid(), 0) or bool(there.st_mode & 0o022)


def has_other_rights() -> bool:
    """Whether the program has other rights than the user who started it, by set-user-ID, set-group-ID or capabilities.
    Its environment is then not trusted."""
    if len({*os.getresuid()}) > 1 or len({*os.getresgid()}) > 1:
        return True
    try:
        words = _auxiliary_vector()
    except PermissionError:
        return True  # such a program may not even read of itself
    except OSError:
        return False
    for place in range(0, len(words), 16):
        if int.from_bytes(words[place : place + 8], sys.byteorder) == AT_SECURE:
            return any(words[place + 8 : place + 16])
    return False


def _auxiliary_vector() -> bytes:
    """What the kernel passed to the process at its start. Raises OSError."""
    descriptor = os.open("/proc/self/auxv", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, AUXILIARY_BYTES)
    finally:
        os.close(descriptor)
