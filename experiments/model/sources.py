"""The files that an experiment refers to: which of them may be copied, and the source of a site.

Possible secrets are never copied: private keys, files of passwords, anything outside the directories that the program
imported from, anything but plain files. An experiment may also be forged, to make its reader copy a file for somebody
else; so a file that is neither Python by its name nor a script by its first line is not a source.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import time
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from itertools import dropwhile
from typing import NamedTuple

from interpose.errors import Caught
from interpose.experiments.maintenance.archives import OBJECT, SOURCE, Archive, Entry, hash_of, read_content, read_index
from interpose.experiments.metadata.creating import rights_of_owner
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.stacks import Site
from interpose.experiments.model.zipped import open_source

LARGEST_SOURCE_BYTES = 8 << 20
_PRIVATE_NAME = re.compile(
    r"\.env(\..*)?|.*\.(env|pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(rsa|dsa|ecdsa|ed25519)\b.*"
    r"|[._]netrc|\.pgpass|\.my\.cnf|\.pypirc|\.git-credentials|\.?credentials",
    re.IGNORECASE,
)
_PRIVATE_DIRECTORIES = {".ssh", ".gnupg", ".aws", ".kube", ".docker"}
_SOURCE_NAME = re.compile(r".*\.(py|pyw|pyx|pxd|pxi)", re.IGNORECASE)
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
# Codecs that decode in other than linear time, or take escapes for what they say.
_NO_TEXT = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7"}
_OF_RECORDING = "/interpose/boot.py"  # is at its top


class Refused(Caught):
    """Why a file is not copied, in a few words."""


@dataclass
class Limits:
    """How much may be copied at once: files, bytes of each and of all, and seconds."""

    files: int = 20_000
    file_bytes: dict[str, int] = field(default_factory=lambda: {SOURCE: LARGEST_SOURCE_BYTES, OBJECT: 1 << 30})
    bytes: int = 8 << 30
    seconds: float = float("inf")


class Wanted(NamedTuple):
    """A file to be archived. `ended_ns` is the calendar time after which it was changed; `identity` its device and
    number as they were, where these were recorded."""

    path: str
    kind: str
    ended_ns: int | None
    identity: tuple[int, int] | None = None


@dataclass
class Done:
    """What came of archiving: counts, and why each file that is not there was not copied."""

    copied: int = 0
    had: int = 0
    refused: dict[str, str] = field(default_factory=dict)


def is_dynamic(file: str) -> bool:
    """Whether a site has no file: `<string>`, `<frozen importlib>`."""
    return file == UNKNOWN or (file.startswith("<") and file.endswith(">"))


def path_of(process: Process, file: str) -> str:
    """The path of a site's file, from the root on. `..` behind another part of it stays: a link may be before it, as it
    is where recording has left `..` in a name (cext/core/path_name.c)."""
    path = os.path.join(process.log.cwd or "/", file)
    parts = [each for each in file.split("/") if each not in ("", ".")]
    return path if ".." in dropwhile("..".__eq__, parts) else os.path.normpath(path)


def normal_path_of(process: Process, file: str) -> str:
    """The same without any `..`, as if no part of it were a link."""
    return os.path.normpath(path_of(process, file))


def sources_of(process: Process, ended_ns: int | None) -> Iterator[Wanted]:
    """The sources that the sites of `process` name, without those of interpose."""
    files = list(process.files())
    ours = tuple(os.path.dirname(file) + "/" for file in files if file.endswith(_OF_RECORDING))
    for file in files:
        if not (is_dynamic(file) or file.startswith(ours)):
            yield Wanted(path_of(process, file), SOURCE, ended_ns)


def objects_of(process: Process, ended_ns: int | None) -> Iterator[Wanted]:
    """The load objects that the process had mapped, if it recorded them; otherwise its interpreter."""
    found = {each.path: each for each in process.mapped_objects()}
    for each in found.values():
        yield Wanted(each.path, OBJECT, ended_ns, (each.device, each.inode))
    if not found and process.log.executable.startswith("/"):
        yield Wanted(process.log.executable, OBJECT, ended_ns)


class Roots:
    """The directories that a program imported from."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = {os.path.realpath(path) for path in paths if path.startswith("/")}

    def hold(self, path: str) -> bool:
        """Whether `path`, with links resolved, is below one of them; for `/`, only files directly in it count."""
        above = os.path.dirname(path)
        while above != "/":
            if above in self._paths:
                return True
            above = os.path.dirname(above)
        return "/" in self._paths and os.path.dirname(path) == "/"


def archive(archive: Archive, wanted: Iterable[Wanted], roots: Roots, limits: Limits, again: bool = False) -> Done:
    """Copy what is wanted and may be copied, except what is in the archive already, unless `again`."""
    done, left_bytes = Done(), limits.bytes
    until_s = time.monotonic() + limits.seconds
    for each in wanted:
        if each.path in archive.entries and not again:
            done.had += 1
            continue
        if done.copied + len(done.refused) >= limits.files or time.monotonic() > until_s:
            archive.note("the rest was not archived: the limit was reached")
            break
        try:
            entry = _copied(archive, each, roots, min(left_bytes, limits.file_bytes[each.kind]))
        except (Refused, OSError, ValueError) as error:
            done.refused[each.path] = why = getattr(error, "strerror", None) or str(error)
            archive.note(f"not archived  {each.path}: {why}")
        else:
            done.copied += 1
            left_bytes -= entry.bytes
            archive.note(f"archived  {each.path} as {entry.content}{', changed since' if entry.changed else ''}")
    return done


def _copied(archive: Archive, wanted: Wanted, roots: Roots, largest_bytes: int) -> Entry:
    """Raises Refused, OSError, or ValueError if the path cannot be one."""
    with rights_of_owner(archive.founder.status):
        real = os.path.realpath(wanted.path)
        if _is_private(wanted.path) or _is_private(real):
            raise Refused("its name is that of a secret")
        if wanted.kind == SOURCE and not roots.hold(real):
            raise Refused("not below a directory that the program imported from")
        descriptor = open_source(real, largest_bytes)
    try:
        found = os.fstat(descriptor)
        _check(descriptor, found, wanted, largest_bytes)
        changed = wanted.ended_ns is not None and found.st_mtime_ns > wanted.ended_ns
        return archive.add(wanted.path, wanted.kind, descriptor, changed)
    finally:
        os.close(descriptor)


def _check(descriptor: int, found: os.stat_result, wanted: Wanted, largest_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Refused("not a plain file")
    if found.st_size > largest_bytes:
        raise Refused(f"{found.st_size:,} bytes are too many")
    if wanted.identity not in (None, (found.st_dev, found.st_ino)):
        raise Refused("another file is there now")
    if wanted.kind == SOURCE:
        _check_source(os.pread(descriptor, LARGEST_SOURCE_BYTES, 0), wanted.path)


def _check_source(data: bytes, path: str) -> None:
    if not _SOURCE_NAME.fullmatch(path) and not data.startswith(b"#!"):
        raise Refused("its name and its first line are not those of a source")
    if _PRIVATE_KEY.search(data):
        raise Refused("a private key is in it")


def _is_private(path: str) -> bool:
    *above, name = path.split("/")
    return _PRIVATE_NAME.fullmatch(name) is not None or not _PRIVATE_DIRECTORIES.isdisjoint(above)


class Source(NamedTuple):
    """The text of a source. `changed` where it was written to after the program had ended."""

    text: str
    changed: bool


class Sought(NamedTuple):
    """A source, or None and why it is missing; `note` is a remark on the text."""

    source: Source | None
    why: str = ""
    note: str = ""


def decoded(data: bytes) -> str:
    """The text of a source in the encoding that it declares (PEP 263); if that fails, in UTF-8 as far as possible."""
    try:
        name, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode("utf-8" if codecs.lookup(name).name in _NO_TEXT else name)
    except (SyntaxError, LookupError, ValueError):
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


class Sources:
    """The sources of an experiment: recorded dynamic code, the archive, and the file if it is unchanged."""

    def __init__(self, experiment: Experiment) -> None:
        self._founder = experiment.founder_directory
        self._place = os.path.basename(self._founder)
        self._damages = experiment.damages

    def source_of(self, process: Process, site: Site) -> Source | None:
        """The source of `site`; None if it is missing or has changed."""
        return self.sought(process, site.file).source

    def sought(self, process: Process, file: str) -> Sought:
        """The source of a file that `process` names; where it cannot be had, why."""
        if (text := process.dynamic_text(file)) is not None:
            return Sought(Source(text, False))
        if is_dynamic(file):
            return Sought(None, "code that lies in no file")
        path = path_of(process, file)
        if entry := self._entries.get(path):
            data = read_content(self._founder, entry, LARGEST_SOURCE_BYTES)
            if data is not None:
                return Sought(Source(decoded(data), entry.changed), note=_note(process, path, entry))
            self._damages.add(f"{self._place}/archives/{entry.content}", "is not what was archived")
        return _unchanged(process, path)

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        return read_index(self._founder, self._place, self._damages)


def _note(process: Process, path: str, entry: Entry) -> str:
    if entry.changed:
        return "was written to before it could be archived, so lines may not be those that ran"
    data = _read(process, path)
    if isinstance(data, str) or entry.content.endswith(f"_{hash_of(data[0])}"):
        return ""
    return "changed since the run; its archived source is shown"


def _unchanged(process: Process, path: str) -> Sought:
    """The file itself: on the host where it was recorded, if it was not written to since recording began."""
    found = _read(process, path)
    if isinstance(found, str):
        return Sought(None, found)
    data, mtime_ns = found
    if mtime_ns > process.log.time_ns:
        return Sought(None, "changed since the run, and its source was not archived")
    return Sought(Source(decoded(data), False))


def _read(process: Process, path: str) -> tuple[bytes, int] | str:
    """The present content of the file and when it was written, or why it cannot be read."""
    host = process.log.system.get("host", UNKNOWN)
    if host != os.uname().nodename:
        return f"its source was not archived, and lies on {host}"
    if "\0" in path:
        return "its name is that of no file"
    real = os.path.realpath(path)
    if not Roots(process.roots()).hold(real):
        return "its source was not archived, and lies below no directory that the program imported from"
    try:
        descriptor = open_source(real, LARGEST_SOURCE_BYTES)
    except (OSError, ValueError) as error:
        return f"its source cannot be read: {getattr(error, 'strerror', None) or error}"
    with open(descriptor, "rb") as file:
        data, mtime_ns = file.read(LARGEST_SOURCE_BYTES + 1), os.fstat(descriptor).st_mtime_ns
    return (data, mtime_ns) if len(data) <= LARGEST_SOURCE_BYTES else "its source is too long"
