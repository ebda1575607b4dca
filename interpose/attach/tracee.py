"""The program to reach: what /proc says about it, and why it cannot be reached."""

from __future__ import annotations

import errno
import os
import pwd
import re
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from interpose.attach.rights import why_no_right
from interpose.attach.symbols import NotELF, Symbol, symbols
from interpose.errors import InterposeError
from interpose.instrumentation.interpreters import OLDEST

_VERSION = "Py_Version"
_PYTHON = re.compile(r"(?:libpython|python)(\d+)\.(\d+)(t?)[^/]*$")
_RECORDS = "shims."  # the name of the recording library begins so (interpose.timing.shims)
_LIBC = re.compile(r"/libc(?:-[\d.]+)?\.so[^/]*$")
_PROCESSORS, _AREAS = "/proc/cpuinfo", "/proc/{}/smaps"
ENDING_S = 0.5  # so long may the threads of a killed process take
_READ_AT_MOST = 1 << 24
_AUXILIARY, _ENTRY = struct.Struct("<QQ"), 9  # AT_ENTRY of <elf.h>


class CannotAttach(InterposeError):
    """Why a process cannot be reached, in a line that names it."""


class Mapped(NamedTuple):
    """A file that the process has mapped: at what address it begins, and a path by which we can read it."""

    address: int
    path: str
    readable: str


class Tracee:
    """The Python program `pid`. Raises CannotAttach if it is not one that can be reached."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._refuse_what_cannot_be_traced()
        self._mapped = list(self._mappings())
        self._python, self._names = self._find_python()
        self._refuse_another_python()

    def addresses(self, names: list[str]) -> dict[str, Symbol]:
        """Where in the process those of `names` are that Python defines: `offset` is the address."""
        return _placed(self._python, names)

    def addresses_in_libc(self, names: list[str]) -> dict[str, Symbol]:
        """The same of the C library."""
        libc = [each for each in self._mapped if _LIBC.search(each.path)]
        return _placed(libc[0], names) if libc else {}

    def stack_bytes_left(self, pointer: int) -> int:
        """How far the stack that `pointer` is in reaches; the first thread's grows by itself."""
        for line in self._read_maps():
            begin, _, end = line.split(maxsplit=1)[0].partition("-")
            if int(begin, 16) <= pointer < int(end, 16):
                return sys.maxsize if line.endswith("[stack]") else pointer - int(begin, 16)
        return 0

    def read(self, address: int, size_bytes: int) -> bytes:
        """What stands in the process's memory."""
        with self._memory("rb") as file:
            file.seek(address)
            return file.read(size_bytes)

    def write(self, address: int, data: bytes) -> None:
        """Put `data` into the process's memory."""
        with self._memory("r+b") as file:
            file.seek(address)
            file.write(data)

    @contextmanager
    def _memory(self, mode: str) -> Iterator[IO[bytes]]:
        try:
            with open(f"/proc/{self.pid}/mem", mode, buffering=0) as file:
                yield file
        except PermissionError:
            raise self.no_right() from None
        except OSError as error:
            raise self._why_out_of_reach("its memory", error) from None

    def _why_out_of_reach(self, what: str, error: OSError) -> CannotAttach:
        """The error that it has ended or become another program, or else that `what` cannot be reached."""
        if error.errno == errno.ESRCH:
            return CannotAttach(f"{self.pid}: has ended")
        try:
            self.refuse_what_has_ended()
            self._refuse_what_became_another()
        except CannotAttach as gone:
            return gone
        return CannotAttach(f"{self.pid}: {what} cannot be reached: {error.strerror}")

    def _owner(self) -> os.stat_result:
        try:
            return os.stat(f"/proc/{self.pid}")
        except OSError as error:
            raise self._why_out_of_reach("what /proc tells of it", error) from None

    def sees(self, path: str) -> bool:
        """Whether the path means the same file for the program and for this process. True if unknown."""
        try:
            return os.path.samefile(f"/proc/{self.pid}/root{path}", path)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def refuse_what_has_ended(self) -> None:
        """Raises CannotAttach if it has."""
        if self._status()["State"][:1] in "ZX":
            raise CannotAttach(f"{self.pid}: {'its first thread ' if self._has_others() else ''}has ended")

    def _has_others(self) -> bool:
        """Whether threads remain though the first has ended: those of a killed process end, too, in a moment."""
        until_s = time.monotonic() + ENDING_S
        while (remain := int(self._status().get("Threads", "1")) > 1) and time.monotonic() < until_s:
            time.sleep(0.01)
        return remain

    def _refuse_what_became_another(self) -> None:
        if {each.address for each in self._mapped}.isdisjoint(each.address for each in self._mappings()):
            raise CannotAttach(f"{self.pid}: has started another program in its place")

    def refuse_shadow_stack(self) -> None:
        """Raises CannotAttach if the processor checks where functions return to: our calls would end the program."""
        if "shstk" in self._status().get("x86_Thread_features", "") or self._has_guarded_stack():
            raise CannotAttach(f"{self.pid}: has a shadow stack, with which it can be reached from Python 3.14 on")

    def _has_guarded_stack(self) -> bool:
        """The same on arm64 (GCS), where only the memory's flags tell of it."""
        try:
            with open(_PROCESSORS) as processors, open(_AREAS.format(self.pid), errors="replace") as areas:
                can_have = any(line.startswith("Features") and "gcs" in line.split() for line in processors)
                return can_have and any(line.startswith("VmFlags:") and "ss" in line.split() for line in areas)
        except PermissionError:
            raise self.no_right() from None
        except OSError:
            return False

    @property
    def user(self) -> int:
        """The owner of the process."""
        return self._owner().st_uid

    @property
    def group(self) -> int:
        """Of which group it is."""
        return self._owner().st_gid

    def threads(self) -> set[int]:
        """The numbers of its threads; none if it has ended."""
        try:
            return {int(name) for name in os.listdir(f"/proc/{self.pid}/task")}
        except (FileNotFoundError, ProcessLookupError):
            return set()

    def has_thread(self, number: int) -> bool:
        """Is this a thread of it?"""
        return os.path.exists(f"/proc/{self.pid}/task/{number}")

    def waits_in_kernel(self, thread: int) -> bool:
        """Is this thread in a wait that signals do not end?"""
        try:
            return _read_status(f"{self.pid}/task/{thread}")["State"].startswith("D")
        except (FileNotFoundError, ProcessLookupError):
            return False

    def has_signal_pending(self, thread: int, number: int) -> bool:
        """Has the kernel a signal for this thread that it has not delivered yet?"""
        try:
            pending = _read_status(f"{self.pid}/task/{thread}")["SigPnd"]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return bool(int(pending, 16) >> number - 1 & 1)

    def entry(self) -> int:
        """Where the program began: nothing executes that any more."""
        try:
            with open(f"/proc/{self.pid}/auxv", "rb") as file:
                entries: dict[int, int] = dict(_AUXILIARY.iter_unpack(file.read()))
        except PermissionError:
            raise self.no_right() from None
        except OSError as error:
            raise self._why_out_of_reach("its first address", error) from None
        return entries[_ENTRY]

    def _refuse_what_cannot_be_traced(self) -> None:
        status = self._status()
        if self.pid == os.getpid() or status.get("Tgid") != str(self.pid):
            raise CannotAttach(f"process {self.pid} is not a Python process")
        self.refuse_what_has_ended()
        if status["State"][:1] in "Tt" and status["TracerPid"] == "0":
            raise CannotAttach(f"{self.pid}: is stopped; kill -CONT {self.pid} lets it go on")
        if (tracer := status["TracerPid"]) != "0":
            raise CannotAttach(f"{self.pid}: is traced already, by {_name_of(tracer)} ({tracer})")
        if os.geteuid() not in (0, self.user):
            raise CannotAttach(f"{self.pid}: is {_user_name(self.user)}'s; only they, or root, can attach to it")

    def _status(self) -> dict[str, str]:
        try:
            return _read_status(str(self.pid))
        except (FileNotFoundError, ProcessLookupError):
            raise CannotAttach(f"{self.pid}: no such process") from None

    def _mappings(self) -> Iterator[Mapped]:
        """Each file that is mapped, once."""
        seen = set()
        for line in self._read_maps():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/") and fields[5] not in seen and fields[2].strip("0") == "":
                seen.add(fields[5])
                begin, _, end = fields[0].partition("-")
                path = fields[5].removesuffix(" (deleted)")
                mapped = f"/proc/{self.pid}/map_files/{int(begin, 16):x}-{int(end, 16):x}"
                replaced = path != fields[5]
                yield Mapped(int(begin, 16), path, mapped if replaced else self._readable(path, int(fields[4]), mapped))

    def _readable(self, path: str, inode: int, mapped: str) -> str:
        """A path by which we can read the file that the kernel names `path`: as the program sees it or, if it has a
        root of its own, as we do. The inode decides; on some file systems it cannot."""
        seen = f"/proc/{self.pid}/root{path}"
        for each in (seen, path):
            if _inode(each) == inode:
                return each
        return seen if _inode(seen) else mapped

    def refuse_what_has_no(self, path: str) -> None:
        """Raises CannotAttach if the file `path` is not there for the program, which has a root of its own."""
        if _inode(path) and not _inode(f"/proc/{self.pid}/root{path}"):
            self.refuse_what_has_ended()
            root = _target(f"/proc/{self.pid}/root").rstrip("/") or "directory"
            raise CannotAttach(f"{self.pid}: interpose is not in its root {root}: install it there, as {path}")

    def refuse_what_was_never_recorded(self) -> None:
        """Raises CannotAttach if the library that records is not mapped. It stays after a recording."""
        if not any(os.path.basename(each.path).startswith(_RECORDS) for each in self._mapped):
            raise CannotAttach(f"{self.pid}: is not recorded")

    def _read_maps(self) -> list[str]:
        try:
            with open(f"/proc/{self.pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
                return file.read(_READ_AT_MOST).splitlines()
        except PermissionError:
            raise self.no_right() from None
        except OSError:
            raise CannotAttach(f"{self.pid}: has ended") from None

    def no_right(self) -> CannotAttach:
        """The error that says so, and the reason."""
        return CannotAttach(f"{self.pid}: you may not trace this process: {why_no_right(self.pid)}")

    def _find_python(self) -> tuple[Mapped, re.Match[str] | None]:
        """The file that the interpreter is in: a library of it before the program itself."""
        for each in sorted(self._mapped, key=lambda each: "libpython" not in each.path):
            named = _PYTHON.search(each.path)
            try:
                if (named or each.path == self._executable()) and symbols(each.readable, ["Py_Initialize"]):
                    return each, named
            except (NotELF, OSError):
                self._refuse_32_bits(each)
        raise CannotAttach(f"process {self.pid} is not a Python process: it has no symbols of an interpreter")

    def _executable(self) -> str:
        return _target(f"/proc/{self.pid}/exe").removesuffix(" (deleted)")

    def _refuse_32_bits(self, mapped: Mapped) -> None:
        try:
            with open(mapped.readable, "rb") as file:
                head = file.read(5)
        except OSError:
            return
        if head == b"\x7fELF\x01":
            raise CannotAttach(f"{self.pid}: is a program of 32 bits; interpose records those of 64")

    def _refuse_another_python(self) -> None:
        major, minor = self._version()
        found, ours = f"{major}.{minor}", f"{sys.version_info[0]}.{sys.version_info[1]}"
        if self._names and self._names[3]:
            raise CannotAttach(f"{self.pid}: is a free-threaded Python, which cannot be attached to yet")
        if (major, minor) < OLDEST:
            raise CannotAttach(f"{self.pid}: is Python {found}; interpose records {OLDEST[0]}.{OLDEST[1]} and later")
        if found != ours:
            raise CannotAttach(
                f"{self.pid}: is Python {found}, and this interpose is installed for {ours}: "
                f"use one that is installed for {found}"
            )

    def _version(self) -> tuple[int, int]:
        place = self.addresses([_VERSION]).get(_VERSION)
        if place is None:
            return (int(self._names[1]), int(self._names[2])) if self._names else (0, 0)
        number = int.from_bytes(self.read(place.offset, 8), "little")
        return number >> 24 & 0xFF, number >> 16 & 0xFF


def _placed(mapped: Mapped, names: list[str]) -> dict[str, Symbol]:
    try:
        found = symbols(mapped.readable, names)
    except (NotELF, OSError):
        return {}
    return {name: Symbol(mapped.address + each.offset, each.size_bytes) for name, each in found.items()}


def _read_status(what: str) -> dict[str, str]:
    with open(f"/proc/{what}/status", encoding="utf-8", errors="replace") as file:
        fields = [line.rstrip("\n").partition(":\t") for line in file]
    return {name: value.strip() for name, _, value in fields}


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _name_of(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "another process"


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
