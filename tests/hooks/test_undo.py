"""After the end of a recording the world is as before: functions, types, slots, and subclasses made meanwhile."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tracing import Run

# Work that comes upon as much of the library as can be in a moment.
PROGRAM = f"""
import json, os, sys
sys.path.append({str(Path(__file__).parents[1])!r})
import audit, pointers
from interpose.instrumentation import system_library
from interpose.library import Intrinsic

# Slots as well, whatever the library has.
SLOTS = [Intrinsic(name, "_sqlite3:Cursor." + name, "db") for name in ("__next__", "__iter__", "__init__")]
INTRINSICS = [*system_library.every(), *SLOTS]
CROWD = "posix time select _socket _io _sqlite3 _ssl _thread _queue fcntl _posixsubprocess _signal zlib mmap".split()

def everything(name):
    "Whatever can be called in a C module and its types, as intrinsics; but for __new__: all types have one definition."
    for key, value in list(vars(__import__(name)).items()):
        if isinstance(value, type):
            for method in set(vars(value)) - {{"__new__"}}:
                yield Intrinsic(key + "." + method, name + ":" + key + "." + method, "file")
        elif callable(value):
            yield Intrinsic(key, name + ":" + key, "file")

if "crowd" in sys.argv:
    INTRINSICS += [intrinsic for name in CROWD for intrinsic in everything(name)]

def work():
    import asyncio, queue, select, socket, sqlite3, subprocess, tempfile, threading, time
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    cursor.execute("create table t (n)")
    cursor.executemany("insert into t values (?)", [(1,), (2,)])
    assert [row for row in connection.execute("select n from t")] == [(1,), (2,)]
    connection.commit()
    one, other = socket.socketpair()
    with one, other, tempfile.TemporaryFile() as file:
        one.sendall(b"x")
        select.select([other], [], [], 1)
        file.write(other.recv(1))
    items = queue.Queue()
    thread = threading.Thread(target=items.put, args=(1,))
    thread.start()
    items.get()
    thread.join()
    time.sleep(0)
    asyncio.run(asyncio.sleep(0.001))
    subprocess.run(["true"], check=True)

def owners():
    for intrinsic in INTRINSICS:
        module = sys.modules.get(intrinsic.module)
        found = getattr(module, intrinsic.qualified.rpartition(".")[0], None)
        if isinstance(found, type):
            yield found

def subclasses(name):
    made = []
    for owner in dict.fromkeys(owners()):
        try:
            made.append(type(owner)(name, (owner,), {{}}))
        except TypeError:
            pass  # no type to have subclasses
    return made

def load():
    for intrinsic in INTRINSICS:
        if intrinsic.module.partition(".")[0] not in sys.stdlib_module_names:
            continue  # what a package imports may be as it likes
        try:
            __import__(intrinsic.module)
        except ImportError:
            pass
"""


def run(recorded: Run, source: str, *arguments: str) -> tuple[dict, list]:
    """What the program says of itself, and the intrinsics that were interposed in it."""
    done = recorded(PROGRAM + source, *arguments).ended_well()
    intrinsics = ElementTree.parse(f"{done.path}/map.xml").iter("intrinsic")
    return json.loads(done.stdout), [each.attrib for each in intrinsics if each.get("installed") == "1"]


@pytest.mark.long
@pytest.mark.parametrize("library", ["system", "crowd"])
def test_every_function_type_and_slot_is_as_before(library, recorded):
    said, installed = run(
        recorded,
        """
load()
work()
early = subclasses("Early")
before = pointers.Snapshot()
record(*INTRINSICS)
during = before.changes()
work()
meanwhile = subclasses("Meanwhile")
left = shims.end()
fresh = subclasses("Fresh")
after = before.changes()
wrong = [str(one) + name for one, other in zip(meanwhile, fresh) for name in pointers.differing_slots(one, other)]
work()
print(json.dumps({
    "left": left, "during": during, "after": after, "wrong": wrong, "subclasses": len(meanwhile),
    "kept": len(before.types) + len(before.callables), "ours": pointers.pointing_at_us(),
}))
""",
        library,
    )

    assert said["kept"] > 5000
    assert len(said["during"]) >= len(installed) > 0
    assert said["subclasses"] > 0
    assert (said["left"], said["after"], said["wrong"], said["ours"]) == (0, [], [], [])


@pytest.mark.long
def test_what_was_imported_meanwhile_is_put_back_too(recorded):
    said, installed = run(
        recorded,
        """
record(*INTRINSICS)
load()
work()
meanwhile = subclasses("Meanwhile")
during = pointers.pointing_at_us()
left = shims.end()
print(json.dumps({"left": left, "during": during, "after": pointers.pointing_at_us()}))
""",
    )

    assert len(said["during"]) >= len(installed) > 0
    assert (said["left"], said["after"]) == (0, [])


@pytest.mark.long
def test_a_second_recording_is_undone_like_the_first(recorded):
    said, _ = run(
        recorded,
        """
load()
work()
before = pointers.Snapshot()
record(*INTRINSICS)
shims.end()
os.rename("test.1.er", "first")
record(*INTRINSICS)
during = before.changes()
work()
print(json.dumps({"left": shims.end(), "during": during, "after": before.changes()}))
""",
    )

    assert said["during"]
    assert (said["left"], said["after"]) == (0, [])


def test_only_what_is_documented_stays(recorded):
    said, _ = run(
        recorded,
        """
load()
work()
before = audit.facts()
record(*INTRINSICS)
work()
shims.end()
differing = audit.differences(before, audit.facts())
mapped = set(differing.pop("mapped files", [[], []])[1]) - set(before["mapped files"])
print(json.dumps({"differing": differing, "mapped": sorted(mapped), "files": [os.path.abspath("test.1.er")]}))
""",
    )

    # Pages of the experiment's files stay mapped, for somebody may still be about to write to them.
    assert said["differing"] == {}
    assert {os.path.dirname(path) for path in said["mapped"]} <= set(said["files"])


def test_functions_are_found_in_sets_and_dictionaries_made_before_and_meanwhile(recorded):
    said, _ = run(
        recorded,
        """
import time
before = {os.write, time.sleep}
record(*INTRINSICS)
during = [os.write in before, time.sleep in before]
meanwhile = {os.write: 1, time.sleep: 2}
shims.end()
after = [os.write in before, time.sleep in before, os.write in meanwhile, time.sleep in meanwhile]
print(json.dumps(during + after))
""",
    )

    assert all(said)
