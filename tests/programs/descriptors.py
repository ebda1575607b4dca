"""The same calls on a file, a pipe, a socket, a terminal and the standard streams: of what kind they are."""

import fcntl
import io
import os
import socket
from contextlib import suppress

file = os.open("file", os.O_RDWR | os.O_CREAT)  #: os.open detail=file
out_of, into = os.pipe()  #: os.pipe
out_of_too, into_too = os.pipe2(os.O_CLOEXEC)  #: os.pipe2
left, right = socket.socketpair()  #: within socket.socketpair
master, slave = os.openpty()  #: os.openpty
if hasattr(os, "posix_openpt"):
    os.posix_openpt(os.O_RDWR)  #: os.posix_openpt

for _ in range(2):
    os.write(file, b"12345")  #: 2 os.write file bytes=5 detail=file
    os.write(into, b"1234")  #: 2 os.write process bytes=4 detail=<pipe>
    os.write(into_too, b"1234")  #: 2 os.write process bytes=4 detail=<pipe>
    os.write(left.fileno(), b"123")  #: 2 os.write net bytes=3 detail=<socket>
    os.write(slave, b"12")  #: 2 os.write screen bytes=2 detail=/dev/pts/...
    os.write(1, b"1")  #: 2 os.write screen bytes=1 detail=<stdout>
os.read(out_of, 100)  #: os.read process bytes=8 detail=<pipe>
os.readv(out_of_too, [bytearray(8)])  #: os.readv process bytes=8 detail=<pipe>
os.read(right.fileno(), 100)  #: os.read net bytes=6 detail=<socket>
os.read(master, 1)  #: os.read process bytes=1 detail=...ptmx
os.write(master, b"yes\n")  #: os.write process bytes=4 detail=...ptmx
os.read(slave, 100)  #: os.read screen bytes=4 detail=/dev/pts/...
os.fstat(0)  #: os.fstat screen detail=<stdin>
os.fstat(into)  #: os.fstat process detail=<pipe>
os.fstat(right.fileno())  #: os.fstat net detail=<socket>
fcntl.fcntl(into, fcntl.F_GETFL)  #: fcntl.fcntl process detail=<pipe>
fcntl.fcntl(left, fcntl.F_GETFL)  #: fcntl.fcntl net detail=<socket>
fcntl.ioctl(slave, 0x5401, bytes(60))  #: fcntl.ioctl screen detail=/dev/pts/...
for number in (out_of, slave, left.fileno()):
    with suppress(OSError):
        #: os.lseek process detail=<pipe> error=OSError errno 29 & os.lseek screen detail=/dev/pts/... error=...
        #: os.lseek net detail=<socket> error=OSError errno 29
        os.lseek(number, 0, os.SEEK_CUR)
    with suppress(OSError):
        #: os.fsync process detail=<pipe> error=OSError errno 22 & os.fsync screen detail=/dev/pts/... error=...
        #: os.fsync net detail=<socket> error=OSError errno 22
        os.fsync(number)
    #: os.fchown process detail=<pipe> & os.fchown screen detail=/dev/pts/... & os.fchown net detail=<socket>
    os.fchown(number, -1, -1)
for number in (into, slave, left.fileno()):
    #: os.writev process bytes=2 detail=<pipe> & os.writev screen bytes=2 detail=/dev/pts/...
    #: os.writev net bytes=2 detail=<socket>
    os.writev(number, [b"a", b"b"])
for number in (out_of, master, right.fileno()):
    #: io.FileIO detail=<pipe> & io.FileIO detail=<socket> & io.FileIO detail=...ptmx
    lines = io.FileIO(number, closefd=False)
    #: io.FileIO.readinto process bytes=2 detail=<pipe> & io.FileIO.readinto net bytes=2 detail=<socket>
    #: io.FileIO.readinto process bytes=2 detail=...ptmx
    lines.readinto(bytearray(2))
    #: io.FileIO.close process detail=<pipe> & io.FileIO.close net detail=<socket>
    #: io.FileIO.close process detail=...ptmx
    lines.close()

os.sendfile(left.fileno(), file, 0, 10)  #: os.sendfile net bytes=10 detail=<socket>
os.sendfile(in_fd=file, out_fd=left.fileno(), offset=0, count=10)  #: os.sendfile net bytes=10 detail=<socket>
os.splice(file, into, 10, offset_src=0)  #: os.splice file bytes=10 detail=file
os.splice(out_of, file, 10)  #: os.splice process bytes=10 detail=<pipe>
lines = os.fdopen(into_too, "wb", buffering=0)  #: within io.FileIO detail=<pipe>
lines.write(b"line\n")  #: io.FileIO.write process bytes=5 detail=<pipe>
lines.close()  #: io.FileIO.close process detail=<pipe>
shown = io.FileIO(1, "w", closefd=False)  #: io.FileIO detail=<stdout>
shown.write(b"shown\n")  #: io.FileIO.write screen bytes=6 detail=<stdout>

# A number means something else once it was closed, or another was put in its place.
number = os.dup(into)  #: os.dup process detail=<pipe>
os.write(number, b"p")  #: os.write process bytes=1 detail=<pipe>
os.dup2(file, number)  #: os.dup2 file detail=file
os.write(number, b"f")  #: os.write file bytes=1 detail=/cwd/file
os.close(fd=number)  #: os.close file detail=/cwd/file
assert os.open("other", os.O_WRONLY | os.O_CREAT) == number  #: os.open detail=other
os.write(number, b"o")  #: os.write file bytes=1 detail=other
os.closerange(number, number + 1)  #: os.closerange
assert os.dup(slave) == number  #: os.dup screen detail=/dev/pts/...
os.write(number, b"s")  #: os.write screen bytes=1 detail=/dev/pts/...
os.close(number)  #: os.close screen detail=/dev/pts/...
os.close(left.detach())  #: os.close net detail=<socket> & within socket.socket.detach detail=<socket>
os.close(into)  #: os.close process detail=<pipe>
os.close(right.detach())  #: os.close net detail=<socket> & within socket.socket.detach detail=<socket>
