"""Writes the files of an experiment whose process is recorded from outside: log, map, strings, sites, stacks, overview.

The code that watches the process writes events and threads.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from interpose.experiments.format.records import Overview, SiteRecord, StackRecord
from interpose.experiments.format.written_tables import records_file, strings_file
from interpose.experiments.maintenance.drain import Drain
from interpose.experiments.metadata import describe, names
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.metadata.log import parse_log
from interpose.experiments.metadata.map import Intrinsic, map_document
from interpose.experiments.model.files import Damages


@dataclass
class Tables:
    """The numbered records of a process, each list from 1 on: strings in UTF-8, sites, stacks, overview samples."""

    strings: list[bytes] = field(default_factory=list)
    sites: list[SiteRecord] = field(default_factory=list)
    stacks: list[StackRecord] = field(default_factory=list)
    overview: list[Overview] = field(default_factory=list)


_TITLE = re.compile(r' title="[^"]*"')


class Description:
    """What all experiments of a recording share: the intrinsics, and `head`, the log up to the command as
    `describe.head` makes it. `short_head` is for descendants: only the founder's log says what fields mean. Raises
    ExperimentError."""

    def __init__(self, head: str, intrinsics: Iterable[Intrinsic]) -> None:
        self.head, self.short_head = head, _TITLE.sub("", head)
        self.map = map_document(intrinsics)
        self.log = parse_log(f"{head}</experiment>".encode("utf-8", "replace"), names.LOG, Damages())


class Observed:
    """The experiment of a process, in an existing `directory`. `process` has the attributes of the log's `process`
    element; `founder` is the founder's experiment if the process is a descendant. Only the map is written before
    `write`. Raises OSError."""

    def __init__(
        self, directory: str, description: Description, process: Mapping[str, object], founder: str = ""
    ) -> None:
        self.directory = directory
        self._head = description.short_head if founder else description.head
        self._identity = _identity_of(directory)
        self._description = description
        self._command: list[str] = []
        self._events = [describe.element("process", 1, **process)]
        self._written: dict[str, int] = {}  # hashes of the files' contents, by name
        self._write_map(founder)

    def write(self, tables: Tables) -> None:
        """Write the log and all tables, replacing files that have changed. Raises OSError."""
        log = self._description.log
        assert log.head is not None
        text = "\n".join([*self._command, *self._events, "</experiment>", ""])
        self._replace(names.LOG, f"{self._head}{text}".encode("utf-8", "replace"))
        of_records: dict[str, list[Any]] = {"sites": tables.sites, "stacks": tables.stacks, "overview": tables.overview}
        self._replace("strings", strings_file(log.version, log.head, log.data["strings"], tables.strings))
        for name, records in of_records.items():
            self._replace(name, records_file(log.version, log.head, log.data[name], records))

    def name(self, executable: str, cwd: str) -> None:
        """Note which program the process runs now."""
        self._command = [describe.opening("command", 1, executable=executable, cwd=cwd), "  </command>"]

    def note(self, kind: str, **attributes: object) -> None:
        """Add an event of the run to the log."""
        self._events.append(describe.element("event", 1, kind=kind, **attributes))

    def compress(self) -> None:
        """Compress the events. Nobody may write them any longer. Raises OSError, ExperimentError."""
        data = self._description.log.data
        directory = without_links(self.directory)
        drain = Drain(directory, os.path.basename(directory), data["events"], data["events.zst"])
        with drain:
            for waiting in [*drain.full(), *drain.rest()]:
                drain.move(waiting, give=False)
            drain.empty()

    def _write_map(self, founder: str) -> None:
        """A hard link to the founder's file, if the file system permits it."""
        try:
            os.link(os.path.join(founder, names.MAP), os.path.join(self.directory, names.MAP), follow_symlinks=False)
        except OSError:
            self._replace(names.MAP, self._description.map)

    def _replace(self, name: str, data: bytes) -> None:
        """Replace a file atomically, unless it has this content. A directory that has replaced ours is not touched."""
        if self._written.get(name) == hash(data):
            return
        if _identity_of(self.directory) != self._identity:
            raise FileNotFoundError(errno.ENOENT, "its experiment was removed", self.directory)
        path, mode = os.path.join(self.directory, name), names.file_mode(self.directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(f"{path}.new", flags, mode), "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
            os.rename(f"{path}.new", path)
            self._written[name] = hash(data)
        except OSError as error:
            with suppress(OSError):
                os.unlink(f"{path}.new")
            raise OSError(error.errno, error.strerror, path) from None


def _identity_of(directory: str) -> tuple[int, int]:
    found = os.stat(directory, follow_symlinks=False)
    return found.st_dev, found.st_ino
