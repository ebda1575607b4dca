"""What recording does in memory, under valgrind: no read or write where nothing is, nothing used before it was set."""

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from tracing import environment, write_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reach,
    pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed"),
]

SHIMS = """
import os, socket, sqlite3, subprocess, sys, threading, time
nothing = os.open(os.devnull, os.O_WRONLY)
connection = sqlite3.connect(":memory:")
cursor = connection.cursor()
cursor.execute("create table t (a, b)")
def work(number):
    for turn in range(200):
        os.write(nothing, b"x" * turn)
        os.path.exists(f"/nonexistent/{number}/{turn}")
    try:
        os.stat("/nonexistent")
    except OSError:
        pass
for number in range(100):
    cursor.execute("insert into t values (?, 'text')", (number,))
    cursor.execute(f"select * from t where a = {number} and b = 'it''s {number}'").fetchall()
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
one, other = socket.socketpair()
one.send(b"x"); other.recv(1)
lock = threading.Lock()
with lock: pass
time.sleep(0.01)
if os.fork() == 0:
    work(9)
    os._exit(0)
os.wait()
subprocess.call(["true"])
print("done")
"""
AWAITS = """
import asyncio, contextlib
async def inner(number):
    await asyncio.sleep(0.001)
    if number % 7 == 0:
        raise ValueError(number)
    return number
async def main():
    for _ in range(5):
        await asyncio.gather(*(inner(number) for number in range(20)), return_exceptions=True)
    reader, writer = asyncio.StreamReader(), None
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.sleep(10), 0.01)
asyncio.run(main())
print("done")
"""
LINES = """
import json
def work(n):
    found = []
    for i in range(n):
        try:
            if i % 3: found.append(i)
            else: raise ValueError(i)
        except ValueError:
            continue
    return [x * 2 for x in found], (y for y in found), json.dumps(found)
for _ in range(20): list(work(50)[1])
print("done")
"""
MARKS = """
import interpose, os
for number in range(300):
    with interpose.transaction(f"order {number % 5}"):
        os.stat("/")
interpose.pause(); os.stat("/"); interpose.resume()
interpose.user_event("here")
interpose.stop_process()
os.stat("/")
print("done")
"""
WAYS = {
    "shims": (SHIMS, {"INTERPOSE": "1"}),
    "stacks and a small ring": (SHIMS, {"INTERPOSE": "1", "INTERPOSE_RING": "1MiB", "INTERPOSE_STACK_ABOVE": "1us"}),
    "a filter": (SHIMS, {"INTERPOSE": "1", "INTERPOSE_FILTER": "skip kind=file"}),
    "sampling": (SHIMS, {"INTERPOSE": "1", "INTERPOSE_INTERVAL": "1ms"}),
    "awaits": (AWAITS, {"INTERPOSE": "1"}),
    "lines": (LINES, {"INTERPOSE": "lines"}),
    "coverage": (LINES, {"INTERPOSE": "coverage"}),
    "statements": (LINES, {"INTERPOSE": "1", "INTERPOSE_STATEMENTS": "1"}),
    "marks": (MARKS, {"INTERPOSE": "1"}),
}
# What is told of the interpreter, and of what valgrind does not know, has nothing of ours in it.
WORDS = ["valgrind", "-q", "--child-silent-after-fork=yes", "--leak-check=no", "--fair-sched=yes", "--xml=yes"]


def of_ours(path):
    """The errors in the file that have a function of ours among those that called."""
    found = []
    for error in ElementTree.parse(path).getroot().iter("error"):
        if (error.findtext("kind") or "").startswith("Leak_"):
            continue  # the interpreter leaves what it has when it ends
        frames = [(frame.findtext("obj") or "", frame.findtext("fn") or "?") for frame in error.iter("frame")]
        if any("interpose" in obj.rpartition("/")[2] or "/interpose/" in obj for obj, _ in frames[:12]):
            found.append(f"{error.findtext('kind')}: {' < '.join(fn for _, fn in frames[:6])}")
    return found


@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_ours_is_read_or_written_wrongly(tmp_path, tally, way):
    source, settings = WAYS[way]
    program = write_program(tmp_path, source)
    own = environment(XDG_STATE_HOME=str(tmp_path / "state"), PYTHONMALLOC="malloc", **settings)

    done = subprocess.run(
        [*WORDS, f"--xml-file={tmp_path / 'errors.xml'}", sys.executable, str(program)],
        cwd=tmp_path,
        env=own,
        capture_output=True,
        text=True,
        timeout=900,
    )

    tally.check((done.returncode, done.stdout) == (0, "done\n"), f"{way}: {done}")
    for found in of_ours(tmp_path / "errors.xml") or [""]:
        tally.check(not found, f"{way}: {found}")
    assert (tmp_path / "test.1.er").exists()
    tally.end()
