"""Rules about files and what else is read: tiny reads and writes, forced writes, the same work again and again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from interpose.analysis.findings.busy_polls import asks_in_vain
from interpose.analysis.findings.failures import mostly_failed
from interpose.analysis.findings.finding import Calls, Finding, Floor, found, largest_line, spared_ns
from interpose.analysis.findings.statements import goes_on
from interpose.analysis.findings.survey import Survey, grouped, processes_of, total_of

# Half a kilobyte is what a disk moves at least; Python's own buffer holds eight.
TINY_BYTES = 512
BUFFER_BYTES = 8192
# Fewer calls on one file are a head, a line, a beginning.
TRANSFERS_AT_LEAST = 100
# A program may force data to the disk at each of a few important moments.
FORCED_AT_LEAST = 20
FORCED_IN_ONE = 2
FORCING = frozenset(("fsync", "fdatasync", "sync", "flush"))
# Reading the same a few times is no pattern yet.
REPEATED_AT_LEAST = 10
OPENING = frozenset(("open", "FileIO"))
ASKING = OPENING | frozenset(("stat", "lstat", "listdir", "scandir", "access", "readlink"))
# What a file's content is read with, once it is open.
READING = frozenset(
    (
        *("read", "read1", "readall", "readinto", "readinto1", "readline", "__next__", "peek"),
        *("readv", "pread", "preadv", "seek", "tell", "lseek", "fstat"),
    )
)
WRITING = frozenset(("write", "writev", "pwrite", "pwritev", "sendfile", "copy_file_range"))
REMOVING = frozenset(("unlink", "remove"))
MOVING = frozenset(("rename", "replace", "link"))
CHANGING = WRITING | REMOVING | MOVING | {"truncate", "ftruncate", "symlink"}
# Standard streams, and files of the kernel, which change by themselves.
_NO_FILES = ("<", "/proc/", "/sys/", "/dev/")
_QUERY = re.compile(r"\s*(select|with|show)\b", re.IGNORECASE)
_PARAMETER = re.compile(r"\?|%s|%\(|\$\d|:\w|@\w")
_DISTINCT_REQUEST = re.compile(r"(GET |HEAD )?https?://\S+")


def tiny_transfers(survey: Survey) -> Iterator[Finding]:
    """Many reads or writes of few bytes on one file."""
    moving = [each for each in survey.of_kind("file") if each.bytes and _is_of_one_file(each)]
    for (detail, _), rows in grouped(moving, lambda each: (each.detail, each.intrinsic)):
        calls, wall_ns = total_of(rows)
        moved = sum(each.bytes for each in rows)
        if moved < TINY_BYTES * calls:
            units, floor = -(-moved // BUFFER_BYTES), Floor(TRANSFERS_AT_LEAST)
            bound_ns = spared_ns(wall_ns, calls, units)
            yield found("tiny reads and writes", rows, bound_ns, units=units, unit="buffer", about=detail, floor=floor)


def _is_of_one_file(each: Calls) -> bool:
    """Whether the file is known. A `*` stands for the numbers in the names of many."""
    return bool(each.detail) and not each.is_of_many and "*" not in each.detail


def forced_writes(survey: Survey) -> Iterator[Finding]:
    """Files forced to the disk more often than once a transaction or, without these, once a file."""
    of_files = survey.of_kind("file")
    forcing = [each for each in of_files if each.verb in FORCING and not each.is_of_many]
    for (_, transaction), rows in grouped(forcing, lambda each: (each.site, each.transaction)):
        calls, wall_ns = total_of(rows)
        files = sum(_files_of(each, of_files) for each in {each.detail for each in rows})
        units, unit = (survey.transactions_of(rows), "transaction") if transaction else (files, "file")
        floor = Floor(FORCED_AT_LEAST, FORCED_IN_ONE, apart=transaction)
        yield found("fsync storm", rows, spared_ns(wall_ns, calls, units), units=units, unit=unit, floor=floor)


def _files_of(path: str, of_files: Iterable[Calls]) -> int:
    """How many files had the name `path` at most, one after another: it was opened, and then removed, or something was
    moved within its directory. A directory counts as new with each name that was moved into it."""
    same = [each for each in of_files if each.detail == path]
    opened, _ = total_of(each for each in same if each.verb in OPENING)
    removed, _ = total_of(each for each in same if each.verb in REMOVING)
    moves = [each for each in of_files if each.verb in MOVING]
    beside, _ = total_of(each for each in moves if _directory_of(each.detail) == _directory_of(path))
    inside, _ = total_of(each for each in moves if _directory_of(each.detail) == os.path.normpath(path))
    return max(min(opened, removed + beside), inside, 1)


def _directory_of(path: str) -> str:
    return os.path.normpath(os.path.dirname(path))


def work_repeated(survey: Survey) -> Iterator[Finding]:
    """The same file, address or statement without parameters read again and again."""
    yield from _files_again(survey)
    read = [each for each in survey.of_kind("db", "net") if not each.among and _is_the_same_each_time(each)]
    read = [each for each in read if not mostly_failed([each])]  # nobody can cache what did not come
    for (_, detail), same in grouped(read, lambda each: (each.kind, each.detail)):
        calls, wall_ns = total_of(same)
        units = processes_of(same)
        named: dict[str, Any] = {"about": detail, "floor": Floor(REPEATED_AT_LEAST, 2, counted=calls)}
        bound_ns = spared_ns(wall_ns, calls, units)
        yield found("repeated work", same, bound_ns, units=units, unit="process", **named, **largest_line(same))


def _files_again(survey: Survey) -> Iterator[Finding]:
    """Files that are opened, or asked for, again and again, ten times for each time that they are changed."""
    of_paths = [each for each in survey.of_kind("file") if _is_of_one_file(each) and not each.detail.startswith("<")]
    of_paths = [each for each in of_paths if not asks_in_vain(each)]  # who polls needs the next answer
    for detail, rows in grouped(of_paths, lambda each: each.detail):
        changes, _ = total_of(each for each in rows if each.verb in CHANGING)
        units = processes_of(rows)
        if again := list(_made_again(rows, max(units, changes))):
            times, told = max(number for number, _ in again), [each for _, same in again for each in same]
            bound_ns = sum(spared_ns(total_of(same)[1], number, max(units, changes)) for number, same in again)
            floor = Floor(REPEATED_AT_LEAST, 2, counted=times, changes=changes)
            named: dict[str, Any] = {"about": detail, **_most_asked(told)}
            yield found("repeated work", told, bound_ns, units=units, unit="process", floor=floor, **named)


def _made_again(rows: Iterable[Calls], enough: int) -> Iterator[tuple[int, list[Calls]]]:
    """The calls on one file that a cache would save, and how often they were made: each of a kind more often than
    `enough`, and what reads the file if it is opened more often. Nobody can cache writes, nor the end of a use."""
    openings, reading = 0, []
    for intrinsic, same in grouped(rows, lambda each: each.intrinsic):
        number, _ = total_of(same)
        openings = max(openings, number if same[0].verb in OPENING else 0)
        if same[0].verb in READING:
            reading += same
        elif _asks(intrinsic) and number > enough:
            yield number, same
    if openings > enough and reading:
        yield openings, reading


def reopened(survey: Survey, function: tuple[str, str]) -> tuple[str, int]:
    """The file that a line of `function` of the application opened most often while no recorded call changed it, and
    how often: at least ten times in each process, or none."""
    of_files = [each for each in survey.of_kind("file") if _is_of_one_file(each)]
    of_files = [each for each in of_files if not each.detail.startswith(_NO_FILES)]
    opening = [each for each in of_files if each.verb in OPENING]
    mine = [each for each in opening if each.site and (each.site.function, each.site.file) == function]
    found = ("", 0)
    for (path, _), rows in grouped(mine, lambda each: (each.detail, each.site)):
        changes = [each for each in of_files if each.detail == path and each.verb in CHANGING]
        times, _ = total_of(rows)
        is_enough = times >= REPEATED_AT_LEAST * processes_of(rows)
        if is_enough and times > found[1] and not any(map(_at_once, product(rows, changes))):
            found = path, times
    return found


def _at_once(rows: tuple[Calls, Calls]) -> bool:
    """Whether some calls of one row were made between the first and the last of the other, in whichever process."""
    one, other = rows
    return any(
        first_ns <= end_ns and begin_ns <= last_ns
        for first_ns, last_ns in one.seen_ns.values()
        for begin_ns, end_ns in other.seen_ns.values()
    )


def _most_asked(rows: Iterable[Calls]) -> dict[str, Any]:
    """What asked most often for a file, from which line, and how often; what then was read is not counted."""
    asking = grouped([each for each in rows if _asks(each.intrinsic)], lambda each: (each.intrinsic, each.site))
    (intrinsic, site), most = max(asking, key=lambda each: total_of(each[1])[0])
    return {"intrinsic": intrinsic, "site": site, "made": total_of(most)[0]}


def _asks(intrinsic: str) -> bool:
    return intrinsic.rpartition(".")[2] in ASKING


def _is_the_same_each_time(each: Calls) -> bool:
    """Whether the detail identifies what was requested."""
    if goes_on(each.intrinsic):
        return False
    if each.kind == "net":
        return _DISTINCT_REQUEST.fullmatch(each.detail) is not None
    return _QUERY.match(each.detail) is not None and not _PARAMETER.search(each.detail)
