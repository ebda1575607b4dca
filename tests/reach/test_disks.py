"""File systems with next to no room, in memory and on a disk: the program does what it does without us."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import pytest
from tracing import environment, write_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reach,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems"),
]

# Threads, forks and texts; with a monitor, for the pool is small.
PROGRAM = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")  # from 3.12 on, of forks where a thread is just ending
def work(calls):
    for number in range(calls):
        os.path.exists(f"/nonexistent/{number}")
threads = [threading.Thread(target=work, args=(3000,)) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    work(1000)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
TMPFS = "tmpfs"
EXT4 = "ext4"
IMAGE_BYTES = 8 << 20


@contextlib.contextmanager
def mounted(directory, sort):
    """A file system of a few MiB."""
    directory.mkdir()
    if sort == TMPFS:
        words = ["mount", "-t", TMPFS, "-o", f"size={IMAGE_BYTES}", TMPFS, directory]
    else:
        image = directory.with_suffix(".image")
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", "-F", image]).returncode:
            pytest.skip("no such file system can be made here")
        words = ["mount", "-o", "loop", image, directory]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    try:
        yield directory
    finally:
        until_unmounted(directory)


def until_unmounted(directory):
    """A monitor may have to finish first; none stays for ever."""
    for _ in range(300):
        if subprocess.run(["umount", directory], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError("somebody still uses the file system")


def fill(directory, left_bytes):
    """Have the file system full but for so much."""
    with (directory / "filler").open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        file.truncate(max(file.tell() - left_bytes, 0))
        os.fsync(file.fileno())


@pytest.mark.parametrize("sort", [TMPFS, EXT4])
@pytest.mark.parametrize("words", [[], ["-m", "interpose", "run", "--"]], ids=["alone", "run"])
def test_a_disk_that_is_full_sooner_or_later_changes_nothing(tmp_path, tally, interpose_here, sort, words):
    program = write_program(tmp_path, PROGRAM)
    disk = tmp_path / "disk"
    python = [sys.executable, *words, *([sys.executable] if words else []), str(program)]
    own = environment(XDG_STATE_HOME=str(tmp_path / "state"), INTERPOSE_RESERVE="off", INTERPOSE_DIR=str(disk))

    with mounted(disk, sort):
        times = tally.times(60)
        for turn in range(times):
            left_bytes = turn * 16384 * 60 // times
            fill(disk, left_bytes)
            done = subprocess.run(
                python, cwd=tmp_path, env={**own, "INTERPOSE": "1"}, capture_output=True, text=True, timeout=120
            )
            outcome, what = (done.returncode, done.stdout, done.stderr), f"{left_bytes} bytes left"
            # `run` says why nothing is recorded, in one line; where not even a directory can be made it starts nothing.
            is_told = bool(words) and done.stderr.count("\n") == 1 and "No space left on device" in done.stderr
            expected = {(0, "3\n", ""), *([(0, "3\n", done.stderr), (1, "", done.stderr)] if is_told else [])}
            tally.check(outcome in expected, f"{what}: {outcome}")
            if (disk / "test.1.er" / "log.xml").exists():
                shown = interpose_here("report", str(disk / "test.1.er"))
                tally.check(shown.returncode in (0, 3) and "Traceback" not in shown.stderr, f"{what}: {shown}")
            for path in disk.glob("*.er"):
                shutil.rmtree(path)
    tally.end()
