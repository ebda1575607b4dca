"""Files and directories, at the raw layer, through which buffered files reach the outside.

A read or a write of a descriptor has the kind of what the descriptor refers to: a file, a terminal or standard stream,
a socket, a pipe.
"""

from interpose.library import Intrinsic, alike

ANY = "file screen net process idle"
OS = ("os.", "posix:")
RAW = ("io.FileIO.", "_io:FileIO.")
READER = ("io.BufferedReader.", "_io:BufferedReader.")
WRITER = ("io.BufferedWriter.", "_io:BufferedWriter.")
RANDOM = ("io.BufferedRandom.", "_io:BufferedRandom.")
TEXT = ("io.TextIOWrapper.", "_io:TextIOWrapper.")

BEHIND = {"detail": "descriptor", "choice": "descriptor"}  # the argument is a descriptor
OF_PATH = {"detail": "path", "keyword": "path"}
OF_FILE = {**BEHIND, "argument": None}  # the object stands for one
SENT = {**BEHIND, "effect": "send"}
RECEIVED = {**BEHIND, "effect": "receive"}
BUFFERED = {"layer": "buffered"}

RAW_FILES = [
    Intrinsic("io.FileIO", "_io:FileIO.__init__", "file", detail="path", effect="open"),
    *alike(*RAW, "read readall readinto", ANY, bytes="result", terminal="line", **OF_FILE),
    *alike(*RAW, "write", ANY, bytes="result", **OF_FILE),
    *alike(*RAW, "seek tell truncate", ANY, **OF_FILE),
    *alike(*RAW, "close", ANY, effect="forget", **OF_FILE),
]

DESCRIPTORS = [
    *alike(*OS, "open", "file", effect="open", **OF_PATH),
    *alike(*OS, "close", ANY, keyword="fd", effect="forget", **BEHIND),
    *alike(*OS, "closerange", "file", effect="range"),
    *alike(*OS, "read readv", ANY, bytes="result", terminal="line", **RECEIVED),
    *alike(*OS, "pread preadv", ANY, bytes="result", **RECEIVED),
    *alike(*OS, "write writev pwrite pwritev", ANY, bytes="result", **SENT),
    *alike(*OS, "lseek ftruncate fstatvfs posix_fallocate posix_fadvise", ANY, **BEHIND),
    *alike(*OS, "fsync fdatasync fstat fchmod fchown fchdir", ANY, keyword="fd", **BEHIND),
    *alike(*OS, "sendfile", ANY, keyword="out_fd", bytes="result", **SENT),
    *alike(*OS, "copy_file_range splice", ANY, keyword="src", bytes="result", **BEHIND),
    *alike(*OS, "dup", ANY, effect="make", **BEHIND),
    *alike(*OS, "dup2", ANY, keyword="fd", effect="make", **BEHIND),
    *alike(*OS, "pipe pipe2", "process", effect="make"),
    *alike(*OS, "openpty posix_openpt", "screen", effect="make"),
    *alike(*OS, "memfd_create", "file", effect="make"),
    *alike(*OS, "eventfd", "sync", effect="make"),
    *alike(*OS, "eventfd_read eventfd_write", "sync idle", detail="descriptor", keyword="fd"),
]

PATHS = [
    *alike(*OS, "stat lstat access chmod chown lchown chdir chroot readlink unlink remove", "file", **OF_PATH),
    *alike(*OS, "link symlink rename replace", "file", detail="destination", argument=1, keyword="dst"),
    *alike(*OS, "mkdir rmdir listdir scandir mkfifo mknod truncate utime statvfs", "file", **OF_PATH),
    *alike(*OS, "getxattr setxattr removexattr listxattr", "file", **OF_PATH),
    *alike(*OS, "getcwd getcwdb sync", "file"),
    *alike("os.scandir.", "posix:ScandirIterator.", "__next__ close __exit__", "file"),
    *alike("os.DirEntry.", "posix:DirEntry.", "stat is_dir is_file is_symlink", "file"),
    *alike("fcntl.", "fcntl:", "ioctl", ANY, **BEHIND),
    *alike("fcntl.", "fcntl:", "fcntl", f"{ANY} sync", detail="fcntl", choice="lock", effect="make"),
    *alike("mmap.mmap.", "mmap:mmap.", "flush resize", "file"),
    *alike("_posixshmem.", "_posixshmem:", "shm_open shm_unlink", "file"),
]

# A lock of a file is a lock; the operation tells who waits for it, and who has it.
LOCKS = [
    *alike("fcntl.", "fcntl:", "flock lockf", "sync idle", detail="flock"),
    *alike(*OS, "lockf", "sync idle", detail="lockf"),
]

BUFFERED_FILES = [
    Intrinsic("io.open", "_io:open", "file", detail="path", **BUFFERED),
    *alike(*READER, "read read1 readinto readinto1 readline peek seek close", "file", bytes="result", **BUFFERED),
    *alike(*WRITER, "write", "file", bytes="result", **BUFFERED),
    *alike(*WRITER, "flush seek close", "file", **BUFFERED),
    *alike(*RANDOM, "read read1 readinto readline write", "file", bytes="result", **BUFFERED),
    *alike(*RANDOM, "flush seek close", "file", **BUFFERED),
    *alike(*TEXT, "read readline", "file", bytes="result", **BUFFERED),
    *alike(*TEXT, "write", "file", bytes="result", **BUFFERED),
    *alike(*TEXT, "flush seek close __next__", "file", **BUFFERED),
]

INTRINSICS = [*RAW_FILES, *DESCRIPTORS, *PATHS, *LOCKS, *BUFFERED_FILES]
