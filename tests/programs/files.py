"""Letters written, copied, moved and thrown away: by descriptors, by paths, by raw files and by mappings."""

import contextlib
import fcntl
import io
import mmap
import os
import pathlib
import shutil
import struct
from contextlib import suppress
from multiprocessing import shared_memory

here = os.getcwd()  #: os.getcwd
assert os.fsencode(here) == os.getcwdb()  #: os.getcwdb

# A raw file.
raw = io.FileIO("letter", "w+")  #: io.FileIO detail=letter
for _ in range(3):
    raw.write(b"Dear sir")  #: 3 io.FileIO.write bytes=8 detail=letter
raw.seek(0)  #: io.FileIO.seek detail=letter
assert raw.tell() == 0  #: io.FileIO.tell detail=letter
raw.read(4)  #: io.FileIO.read bytes=4 detail=letter
raw.readinto(bytearray(5))  #: io.FileIO.readinto bytes=5 detail=letter
assert len(raw.readall()) == 15  #: io.FileIO.readall bytes=15 detail=letter
raw.truncate(10)  #: io.FileIO.truncate detail=letter
raw.close()  #: io.FileIO.close detail=letter
with suppress(ValueError):
    raw.write(b"too late")  #: io.FileIO.write error=ValueError
with suppress(FileNotFoundError):
    io.FileIO("missing")  #: io.FileIO detail=missing error=FileNotFoundError errno 2
reader = io.FileIO("letter")  #: io.FileIO detail=letter
with suppress(io.UnsupportedOperation):
    reader.write(b"x")  #: io.FileIO.write detail=letter error=UnsupportedOperation
reader.close()  #: io.FileIO.close detail=letter

# The same through descriptors.
letter = os.open("letter", os.O_RDWR | os.O_CREAT, 0o600)  #: os.open detail=letter
for _ in range(4):
    os.write(letter, b"abcde")  #: 4 os.write bytes=5 detail=letter
os.writev(letter, [b"fgh", b"ij"])  #: os.writev bytes=5 detail=letter
os.pwrite(letter, b"kl", 0)  #: os.pwrite bytes=2 detail=letter
os.pwritev(letter, [b"m", b"no"], 2)  #: os.pwritev bytes=3 detail=letter
os.lseek(letter, 0, os.SEEK_SET)  #: os.lseek detail=letter
assert os.read(letter, 5) == b"klmno"  #: os.read bytes=5 detail=letter
os.readv(letter, [bytearray(2), bytearray(1)])  #: os.readv bytes=3 detail=letter
os.pread(letter, 7, 0)  #: os.pread bytes=7 detail=letter
os.preadv(letter, [bytearray(6)], 0)  #: os.preadv bytes=6 detail=letter
os.ftruncate(letter, 20)  #: os.ftruncate detail=letter
os.posix_fallocate(letter, 0, 64)  #: os.posix_fallocate detail=letter
os.posix_fadvise(letter, 0, 0, os.POSIX_FADV_SEQUENTIAL)  #: os.posix_fadvise detail=letter
os.fsync(letter)  #: os.fsync detail=letter
os.fdatasync(letter)  #: os.fdatasync detail=letter
os.fstat(letter)  #: os.fstat detail=letter
os.fstatvfs(letter)  #: os.fstatvfs detail=letter
os.fchmod(letter, 0o644)  #: os.fchmod detail=letter
os.fchown(letter, -1, -1)  #: os.fchown detail=letter
os.lockf(letter, os.F_LOCK, 0)  #: os.lockf detail=lock /cwd/letter
os.lockf(letter, os.F_ULOCK, 0)  #: os.lockf detail=unlock /cwd/letter
os.lockf(letter, os.F_TEST, 0)  #: os.lockf detail=test /cwd/letter
fcntl.lockf(letter, fcntl.LOCK_EX)  #: fcntl.lockf detail=lock /cwd/letter
fcntl.lockf(letter, fcntl.LOCK_EX, 1, 9)  #: fcntl.lockf detail=lock part of /cwd/letter
os.lockf(letter, os.F_ULOCK, 9)  #: os.lockf detail=unlock part of /cwd/letter
fcntl.flock(letter, fcntl.LOCK_SH)  #: fcntl.flock detail=shared lock /cwd/letter
fcntl.flock(letter, fcntl.LOCK_EX | fcntl.LOCK_NB)  #: fcntl.flock detail=try lock /cwd/letter
fcntl.flock(letter, fcntl.LOCK_UN)  #: fcntl.flock detail=unlock /cwd/letter
whole = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
fcntl.fcntl(letter, fcntl.F_SETLKW, whole)  #: fcntl.fcntl sync detail=shared lock /cwd/letter
fcntl.fcntl(letter, fcntl.F_SETLK, whole)  #: fcntl.fcntl sync detail=try shared lock /cwd/letter
fcntl.fcntl(letter, fcntl.F_GETFL)  #: fcntl.fcntl detail=letter
with suppress(OSError):
    fcntl.ioctl(letter, 0x5401, bytes(60))  #: fcntl.ioctl detail=letter error=OSError errno 25
copy = os.open("copy", os.O_RDWR | os.O_CREAT, 0o600)  #: os.open detail=copy
os.sendfile(copy, letter, 0, 10)  #: os.sendfile bytes=10 detail=copy
os.copy_file_range(letter, copy, 10, 0)  #: os.copy_file_range bytes=10 detail=letter
again = os.dup(copy)  #: os.dup detail=copy
os.write(again, b"again")  #: os.write bytes=5 detail=/cwd/copy
os.dup2(letter, again)  #: os.dup2 detail=letter
os.write(again, b"letter")  #: os.write bytes=6 detail=/cwd/letter
os.close(again)  #: os.close detail=/cwd/letter
os.close(copy)  #: os.close detail=copy
with suppress(OSError):
    os.write(copy, b"closed")  #: os.write error=OSError errno 9
with suppress(OSError):
    os.close(copy)  #: os.close error=OSError errno 9
with suppress(OSError):
    os.lseek(letter, -1, os.SEEK_SET)  #: os.lseek detail=letter error=OSError errno 22
with suppress(FileNotFoundError):
    os.open("missing", os.O_RDONLY)  #: os.open detail=missing error=FileNotFoundError errno 2
numbers = [os.open("letter", os.O_RDONLY) for _ in range(3)]  #: 3 os.open detail=letter
os.closerange(numbers[0], numbers[-1] + 1)  #: os.closerange
with suppress(OSError):
    os.read(numbers[0], 1)  #: os.read error=OSError errno 9
with open(letter, "rb", buffering=0, closefd=False) as same:  #: io.FileIO detail=letter & io.FileIO.close detail=letter
    same.read(3)  #: io.FileIO.read bytes=3 detail=letter

# Files without a name.
memory = os.memfd_create("scratch")  #: os.memfd_create
os.write(memory, b"12")  #: os.write bytes=2 detail=/memfd:scratch (deleted)
os.close(memory)  #: os.close detail=/memfd:scratch (deleted)
counter = os.eventfd(1)  #: os.eventfd
os.eventfd_write(counter, 2)  #: os.eventfd_write detail=<eventfd>
assert os.eventfd_read(counter) == 3  #: os.eventfd_read detail=<eventfd>
os.close(counter)  #: os.close detail=<eventfd>
nothing = os.open(os.devnull, os.O_WRONLY)  #: os.open detail=/dev/null
os.write(nothing, b"void")  #: os.write bytes=4 detail=/dev/null
os.close(nothing)  #: os.close detail=/dev/null

# Paths.
os.mkdir("box")  #: os.mkdir detail=box
with suppress(FileExistsError):
    os.mkdir("box")  #: os.mkdir detail=box error=FileExistsError errno 17
os.chdir("box")  #: os.chdir detail=box
os.chdir(here)  #: os.chdir detail=/cwd
box = os.open("box", os.O_RDONLY)  #: os.open detail=box
os.fchdir(box)  #: os.fchdir detail=box
os.chdir("..")  #: os.chdir detail=..
os.close(box)  #: os.close detail=box
with suppress(PermissionError):
    os.chroot("/")  #: os.chroot detail=/ error=...
os.link("letter", "box/link")  #: os.link detail=box/link
os.symlink("letter", "box/pointer")  #: os.symlink detail=box/pointer
assert os.readlink("box/pointer") == "letter"  #: os.readlink detail=box/pointer
os.rename("box/link", "box/renamed")  #: os.rename detail=box/renamed
os.replace("box/renamed", "box/replaced")  #: os.replace detail=box/replaced
with suppress(FileNotFoundError):
    os.replace(src="missing", dst="box/new")  #: os.replace detail=box/new error=FileNotFoundError errno 2
pathlib.Path("box/replaced").rename(pathlib.Path("box/moved"))  #: within os.rename detail=box/moved
shutil.move("box/moved", "box/replaced")  #: within os.rename detail=box/replaced
os.stat("letter")  #: os.stat detail=letter
with suppress(FileNotFoundError):
    os.stat(b"missing")  #: os.stat detail=missing error=FileNotFoundError errno 2
os.lstat("box/pointer")  #: os.lstat detail=box/pointer
assert os.access("letter", os.R_OK)  #: os.access detail=letter
os.chmod("letter", 0o600)  #: os.chmod detail=letter
os.chown("letter", -1, -1)  #: os.chown detail=letter
os.lchown("box/pointer", -1, -1)  #: os.lchown detail=box/pointer
os.truncate("letter", 16)  #: os.truncate detail=letter
os.utime("letter")  #: os.utime detail=letter
os.statvfs("letter")  #: os.statvfs detail=letter
os.mkfifo("box/fifo")  #: os.mkfifo detail=box/fifo
os.mknod("box/node")  #: os.mknod detail=box/node
with suppress(OSError):
    os.setxattr("letter", "user.kind", b"formal")  #: os.setxattr detail=letter error=...
with suppress(OSError):
    os.getxattr("letter", "user.kind")  #: os.getxattr detail=letter error=...
with suppress(OSError):
    os.removexattr("letter", "user.kind")  #: os.removexattr detail=letter error=...
os.listxattr("letter")  #: os.listxattr detail=letter
assert len(os.listdir("box")) == 4  #: os.listdir detail=box
with os.scandir("box") as entries:  #: os.scandir detail=box & os.scandir.__exit__
    for entry in entries:  #: 5 os.scandir.__next__
        entry.is_dir()  #: 4 os.DirEntry.is_dir
        entry.is_file()  #: 4 os.DirEntry.is_file
        entry.is_symlink()  #: 4 os.DirEntry.is_symlink
        entry.stat(follow_symlinks=False)  #: 4 os.DirEntry.stat
entries = os.scandir("box")  #: os.scandir detail=box
next(entries)  #: os.scandir.__next__
entries.close()  #: os.scandir.close
for name in ("fifo", "node", "pointer"):
    os.unlink(f"box/{name}")  #: 3 os.unlink detail=box/...
os.remove("box/replaced")  #: os.remove detail=box/replaced
with suppress(FileNotFoundError):
    os.remove("box/replaced")  #: os.remove detail=box/replaced error=FileNotFoundError errno 2
os.rmdir("box")  #: os.rmdir detail=box
os.sync()  #: os.sync

# Mappings, and memory that has a name.
with contextlib.closing(mmap.mmap(letter, 16)) as mapping:
    mapping[:4] = b"TEXT"
    mapping.flush()  #: mmap.mmap.flush
    mapping.resize(32)  #: mmap.mmap.resize
    with suppress(ValueError):
        mapping.flush(10_000, 1)  #: mmap.mmap.flush error=ValueError
shared = shared_memory.SharedMemory(create=True, size=16)  #: within _posixshmem.shm_open
shared.close()
shared.unlink()  #: within _posixshmem.shm_unlink
