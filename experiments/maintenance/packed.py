"""An experiment as one file: a tar archive of its parts, compressed with zstandard.

Others' files are hostile input. So the tar archive is read a header at a time and holds plain files and directories
that an experiment can have, under names that it can have, and nothing else; how much comes out is bounded in all and
in relation to what went in; and space that is all zeros takes no disk.
"""

from __future__ import annotations

import os
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple, cast

from interpose.errors import Caught, ExperimentError
from interpose.experiments.format.compressed import zstandard_module
from interpose.experiments.maintenance.archives import ARCHIVES
from interpose.experiments.maintenance.parts import FILES_OF_A_PROCESS, PARTS_AT_MOST, is_part, is_subdirectory, parts
from interpose.experiments.metadata import names
from interpose.experiments.model.files import Damages, open_plain

SUFFIX = ".er.tar.zst"
LARGEST_UNPACKED_BYTES = 16 << 30
UNPACKED_AT_ONCE_BYTES = 256 << 20  # so much may come out of however little
MOST_TO_ONE = 500
LARGEST_WINDOW_BYTES = 8 << 20
_BLOCK_BYTES = tarfile.BLOCKSIZE
_CHUNK_BYTES = 64 * 1024
_LATEST_S = 1 << 32  # later times are those of no file
_FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)


class DamagedArchive(ExperimentError):
    """Nothing of the experiment in an archive can be read."""


def is_archive(path: str) -> bool:
    """Whether `path` is a file that is called like an archive."""
    return path.endswith(SUFFIX) and os.path.isfile(path)


def list_archives(directory: str) -> list[str]:
    """The paths of the archives in `directory`, by name. Raises OSError."""
    return sorted(path for name in os.listdir(directory) if is_archive(path := os.path.join(directory, name)))


def pack(founder: str, target: str) -> None:
    """Write the experiment in the directory `founder` into the new file `target`.

    Raises OSError (FileExistsError if `target` is there), ExperimentError for a name that is too long, and for more
    files than are read again.
    """
    zstandard = zstandard_module(target)
    name, packed = os.path.basename(founder), list(islice(parts(founder), PARTS_AT_MOST + 1))
    if len(packed) > PARTS_AT_MOST:
        raise ExperimentError(f"{name}: more than {PARTS_AT_MOST:,} files cannot be packed into one")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(target, flags, 0o600), "wb") as out:
        try:
            compressor = zstandard.ZstdCompressor(level=6, write_checksum=True)
            with compressor.stream_writer(out, closefd=False) as into:
                for part in packed:
                    _pack_file(into, f"{name}/{part.name}", part.path)
                into.write(bytes(2 * _BLOCK_BYTES))
        except BaseException:
            os.unlink(target)
            raise


def _pack_file(into: BinaryIO, name: str, path: str) -> None:
    """As many bytes as the file has now; bytes that are missing when they are read become zeros."""
    with open(open_plain(path), "rb") as file:
        found = os.fstat(file.fileno())
        header = tarfile.TarInfo(name)
        header.size, header.mtime, header.mode = found.st_size, int(found.st_mtime), 0o600
        try:
            into.write(header.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape"))
        except ValueError as error:
            raise ExperimentError(f"{name}: {error}, for one file") from error
        left = found.st_size
        while left:
            chunk = file.read(min(left, _CHUNK_BYTES)) or bytes(min(left, _CHUNK_BYTES))
            into.write(chunk)
            left -= len(chunk)
        into.write(bytes(-found.st_size % _BLOCK_BYTES))


def unpack(path: str, directory: str, damages: Damages) -> str:
    """Unpack the file at `path` into the empty `directory`; returns the path of the experiment in it.

    What cannot be read is noted; what comes before it is unpacked. Raises ExperimentError if nothing can be read,
    DamagedArchive if the reason is damage.
    """
    place = os.path.basename(path)
    try:
        packed = open(open_plain(os.path.realpath(path)), "rb")  # noqa: SIM115
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from error
    with packed:
        zstandard_module(path)
        if _Unpacking(packed, directory).has_too_many():
            raise ExperimentError(f"{place}: more than {PARTS_AT_MOST:,} files")
        packed.seek(0)
        unpacking = _Unpacking(packed, directory)
        try:
            while unpacking.next_part():
                pass
        except _Unreadable as error:
            damages.add(place, str(error))
            if unpacking.top is None or not os.path.exists(os.path.join(directory, unpacking.top, names.LOG)):
                raise DamagedArchive(f"{place}: {error}") from None
        except OSError as error:
            raise ExperimentError(f"{place}: cannot be unpacked: {error.strerror}") from error
    if unpacking.top is None:
        raise ExperimentError(f"{place}: contains no experiment")
    return os.path.join(directory, unpacking.top)


class _Unreadable(Caught):
    """Why the rest cannot be read, in a few words."""


class _Header(NamedTuple):
    """What the header of a member says."""

    name: str
    type: bytes
    size_bytes: int
    time_s: int


class _Ended:
    """A compressed file, followed by an empty frame. zstandard's readers accept a last frame with an incomplete
    checksum; with the empty frame after it, such an end is noticed."""

    def __init__(self, packed: BinaryIO, empty_frame: bytes) -> None:
        self._packed, self._end = packed, empty_frame

    def read(self, count: int = -1) -> bytes:
        if piece := self._packed.read(count):
            return piece
        end, self._end = self._end, b""
        return end


class _Unpacking:
    """A tar archive while it is unpacked: `top` is the name of the experiment, once it is known."""

    def __init__(self, packed: BinaryIO, directory: str) -> None:
        zstandard = zstandard_module()
        self._error = zstandard.ZstdError
        self._packed = packed
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW_BYTES)
        ended = cast(BinaryIO, _Ended(packed, zstandard.ZstdCompressor().compress(b"")))  # nothing but `read` is used
        self._stream = decompressor.stream_reader(ended, read_across_frames=True, closefd=False)
        self._directory = directory
        self._unpacked_bytes = 0
        self._files: Counter[str] = Counter()
        self.top: str | None = None

    def has_too_many(self) -> bool:
        """Whether it holds more members than an experiment has; nothing is made, as that takes longest."""
        try:
            for _ in range(PARTS_AT_MOST + 1):
                header = self._header()
                if header is None:
                    return False
                for _ in self._pieces(header.size_bytes + -header.size_bytes % _BLOCK_BYTES):
                    pass
        except _Unreadable:
            return False  # reported when it is unpacked
        return True

    def next_part(self) -> bool:
        """Unpack the next member; False at the end. Raises _Unreadable."""
        header = self._header()
        if header is None:
            self._read_to_the_end()
            return False
        top, _, name = header.name.rstrip("/").partition("/")
        if names.why_not(top) or not top.endswith(names.SUFFIX) or top.startswith(".") or top != (self.top or top):
            raise _Unreadable(f"{header.name!r} is not part of an experiment")
        if header.type == tarfile.DIRTYPE and (not name or is_subdirectory(name)) and not header.size_bytes:
            self._make(top)
            return True
        if header.type not in _FILE_TYPES or not is_part(name):
            raise _Unreadable(f"{header.name!r} is not part of an experiment")
        self._make(top)
        self._unpack_file(os.path.join(self._directory, top, name), header)
        return True

    def _make(self, top: str) -> None:
        if self.top is None:
            names.make_private(os.path.join(self._directory, top))
            self.top = top

    def _header(self) -> _Header | None:
        """The next header, or None at the end of the archive, which is a block of zeros."""
        block = self._read(_BLOCK_BYTES)
        if not any(block):
            return None
        try:
            found = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise _Unreadable("no tar archive") from error
        if found.size < 0 or found.size > LARGEST_UNPACKED_BYTES:
            raise _Unreadable(f"{found.name!r} says it has {found.size:,} bytes")
        return _Header(found.name, found.type, found.size, min(max(int(found.mtime), 0), _LATEST_S))

    def _unpack_file(self, path: str, header: _Header) -> None:
        above = os.path.dirname(path)
        self._files[above] += 1
        if self._files[above] > FILES_OF_A_PROCESS and os.path.basename(above) != ARCHIVES:
            raise _Unreadable(f"more than {FILES_OF_A_PROCESS} files of one process")
        if not os.path.isdir(above):
            names.make_private(above)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise _Unreadable(f"{header.name!r} is there twice") from None
        with open(descriptor, "wb", buffering=0) as file:
            for chunk in self._pieces(header.size_bytes):
                if chunk.count(0) == len(chunk):
                    file.seek(len(chunk), os.SEEK_CUR)
                else:
                    _write_all(file, chunk)
                os.ftruncate(descriptor, file.tell())
            os.utime(descriptor, (header.time_s, header.time_s))
        self._read(-header.size_bytes % _BLOCK_BYTES)

    def _pieces(self, size_bytes: int) -> Iterator[bytes]:
        while size_bytes:
            chunk = self._read(min(size_bytes, _CHUNK_BYTES))
            yield chunk
            size_bytes -= len(chunk)

    def _read(self, count: int) -> bytes:
        """Exactly `count` bytes. Raises _Unreadable where they are not there, or are too many."""
        pieces = []
        while count:
            try:
                piece = self._stream.read(count)
            except self._error as error:
                raise _Unreadable(f"not readable as zstandard: {error}") from None
            if not piece:
                raise _Unreadable("cut short")
            pieces.append(piece)
            count -= len(piece)
            self._unpacked_bytes += len(piece)
            self._bound()
        return b"".join(pieces)

    def _read_to_the_end(self) -> None:
        """Read to the end, because zstandard checks the content only there."""
        try:
            while piece := self._stream.read(_CHUNK_BYTES):
                self._unpacked_bytes += len(piece)
                self._bound()
        except self._error as error:
            raise _Unreadable(f"not readable as zstandard: {error}") from None

    def _bound(self) -> None:
        allowed = UNPACKED_AT_ONCE_BYTES + MOST_TO_ONE * self._packed.tell()
        if self._unpacked_bytes > min(allowed, LARGEST_UNPACKED_BYTES):
            raise _Unreadable(f"more than {self._unpacked_bytes >> 20} MiB come out of it, the rest was not read")


def _write_all(file: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
