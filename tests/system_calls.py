"""System calls as strace counts them, and native calls under the names of the system calls that they make."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tracing import environment

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")

# The system call that each function makes.
SYSTEM_CALLS = {
    **dict.fromkeys(("open", "open64", "openat", "openat64", "__open_2", "__open64_2"), "openat"),
    **dict.fromkeys(("pread", "pread64", "__pread64_chk"), "pread64"),
    **dict.fromkeys(("pwrite", "pwrite64"), "pwrite64"),
    **dict.fromkeys(("read", "__read_chk"), "read"),
    **dict.fromkeys(("lseek", "lseek64"), "lseek"),
    **dict.fromkeys(("ftruncate", "ftruncate64"), "ftruncate"),
    **{name: name for name in ("close", "write", "fsync", "fdatasync", "access", "unlink", "rename")},
}


def counted_by_strace(words: Sequence[str | os.PathLike[str]], log: Path, about: Path) -> Counter[str]:
    """How often a command makes each of these calls of what lies at the path `about`, or begins with it. A failed call
    without a path counts where its descriptor does."""
    wanted = ",".join(sorted(set(SYSTEM_CALLS.values())))
    tracer = ["strace", "-f", "-y", "-o", log, "-e", f"trace={wanted}"]
    subprocess.run([*tracer, *words], check=True, capture_output=True, env=environment())
    lines = [line for line in log.read_text().splitlines() if str(about) in line and " resumed>" not in line]
    return Counter(re.search(r"(\w+)\(", line)[1] for line in lines if "(" in line)
