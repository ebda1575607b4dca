"""The check of the programs: it says what is missing, what is too much, and what means nothing."""

import pytest
from exercises import Kept, Place, differences, named

SOURCE = """\
import os
#: os.mkdir detail=box
os.mkdir("box")  #: os.mkdir detail=box error=FileExistsError...
for _ in range(2):
    os.write(1, b"abc")  #: 2 os.write screen bytes=3 detail=<stdout>
print("done")
"""
MADE = Kept("file", "0", "box", "")
FAILED = Kept("file", "0", "box", "FileExistsError errno 17")
WRITTEN = Kept("screen", "3", "<stdout>", "")
WRITES, DIRECTORIES = Place("at", 5, "os.write"), Place("at", 3, "os.mkdir")


@pytest.mark.parametrize(
    "recorded, lines",
    [
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN] * 2}, []),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN]}, [5]),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN] * 3}, [5]),
        ({DIRECTORIES: [MADE, MADE], WRITES: [WRITTEN] * 2}, [3, 3]),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN, WRITTEN._replace(bytes="4")]}, [5, 5]),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN, WRITTEN._replace(kind="file")]}, [5, 5]),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN] * 2, Place("at", 6, "os.write"): [WRITTEN]}, [6]),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN] * 2, Place("within", 6, "os.write"): [WRITTEN]}, []),
        ({DIRECTORIES: [FAILED, MADE], WRITES: [WRITTEN] * 2, Place("at", 6, "os.read"): [WRITTEN]}, []),
    ],
)
def test_what_is_not_as_said_is_told_by_its_line(recorded, lines):
    found = differences(SOURCE, recorded)

    assert [int(each.split()[1].removesuffix(":")) for each in found] == lines


@pytest.mark.parametrize("wrong", ["os.nothing", "os.write db", "os.write bytes 3", "2", "within"])
def test_what_means_nothing_is_an_error(wrong):
    with pytest.raises(ValueError, match="line 1"):
        differences(f"pass  #: {wrong}", {})


def test_a_failing_call_alone_is_no_exercise():
    assert named("#: os.open error=OSError & os.mkdir & os.stat error=... & 0 os.execv") == {
        "os.mkdir",
        "os.stat",
        "os.execv",
    }
