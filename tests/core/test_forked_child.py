"""What the beginning of a forked child's recording takes: as the kernel and strace say."""

import subprocess
import sys

from system_calls import counted_by_strace, needs_strace
from tracing import environment

FORKS = """
import os, sys
for _ in range(int(sys.argv[1])):
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
"""

# The tables of libinterpose.so are the mapping without a file right behind its own.
COPIES_OF_TABLES = """
import os
if os.fork():
    os.wait()
    os._exit(0)
is_tables, before, kib = False, "", 0
for line in open("/proc/self/smaps"):
    first, *rest = line.split()
    if not first.endswith(":"):
        is_tables, before = len(rest) == 4 and before.endswith("/libinterpose.so"), rest[-1]
    elif is_tables and first == "Private_Dirty:":
        kib += int(rest[0])
print(kib)
"""


@needs_strace
def test_each_forked_child_renames_only_its_documents(tmp_path):
    words = ["env", "INTERPOSE=1", f"INTERPOSE_DIR={tmp_path}", sys.executable, "-c", FORKS]
    one, four = (counted_by_strace([*words, forks], tmp_path / "log", tmp_path) for forks in ("1", "4"))

    assert four["rename"] - one["rename"] == 3 * 2  # map.xml and log.xml


def test_a_forked_child_copies_few_pages_of_tables(tmp_path):
    variables = environment(INTERPOSE="1", INTERPOSE_DIR=str(tmp_path))
    words = [sys.executable, "-c", COPIES_OF_TABLES]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
    of_the_governor_kib = 32  # two tables, which it has not begun to use

    assert 0 < int(done.stdout) < 96 + of_the_governor_kib / 2
