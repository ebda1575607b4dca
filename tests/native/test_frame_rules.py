"""How a frame's caller is found, compared with what readelf says about the libraries of this process."""

import platform
import re
import shutil
import sqlite3
import ssl
import subprocess
from pathlib import Path

import pytest
from core.test_trace_context import FLAGS, TOP

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere frame pointers are followed"),
    pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf"),
]

LOADED = ssl, sqlite3  # with the libraries that they need
LIBRARIES_AT_MOST, ROWS_AT_MOST = 25, 40_000


def libraries():
    """The shared libraries that this process has mapped, without those that need the interpreter."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if ".so" in line}
    return sorted(path for path in paths if "python" not in path)[:LIBRARIES_AT_MOST]


def rows_of(path):
    """Each address for which readelf says how to find the caller, with the frame's end, the frame pointer and the
    return address in its notation. Without frames of signal handlers, which are not followed."""
    words = ["readelf", "--debug-dump=frames-interp", path]
    # readelf fails if debug information in another file is missing, which is not needed here.
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    rows, columns, handlers, is_code = {}, [], set(), False
    for line in done.stdout.splitlines():
        words = line.split()
        if "CIE" in words:
            is_code = False
            handlers |= {words[0]} if "S" in words[4] else set()
        elif "FDE" in words:
            is_code = words[4].removeprefix("cie=") not in {each[-8:] for each in handlers}
            end = int(words[5].partition("..")[2], 16)
        elif words[:1] == ["LOC"]:
            columns = words
        elif is_code and len(words) == len(columns) and re.fullmatch("[0-9a-f]{16}", words[0]):
            row = dict(zip(columns, words, strict=True))
            if (address := int(words[0], 16)) < end:
                rows[address] = row["CFA"], row.get("rbp", "u"), row["ra"]
    return dict(list(rows.items())[:ROWS_AT_MOST])


def understood(row):
    """The row in our notation; the frame's end is None if it is computed, or relative to another register."""
    end, pointer, returns_to = row
    return (
        end if re.fullmatch(r"r[sb]p[+-]\d+", end) and returns_to in ("c-8", "u") else None,
        {"u": "same", "s": "same"}.get(pointer, pointer),
        "last" if returns_to == "u" else "c-8",
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Print the rules of a library at these addresses."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("rules") / "frame_rules"
    sources = [TOP / "cext/native/frame_rules.c", Path(__file__).with_name("frame_rules.c")]
    subprocess.run([compiler, *FLAGS, f"-I{TOP / 'cext'}", *sources, "-o", program, "-ldl"], check=True)

    def tell(path, addresses):
        asked = "\n".join(f"{address:x}" for address in addresses)
        done = subprocess.run([program, path], input=asked, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return tell


@pytest.mark.long
def test_rules_are_those_that_readelf_tells(told):
    compared = computed = 0
    for path in libraries():
        rows = rows_of(path)
        for (address, row), line in zip(rows.items(), told(path, rows), strict=True):
            end, pointer, returns_to = line.split()
            expected = understood(row)
            if expected[0] is None:
                computed += 1
                assert end == "?" or (end.startswith("kept") and row[0] == "exp"), (path, hex(address), row, line)
            elif pointer == "lost":
                assert not expected[1].startswith("c"), (path, hex(address), row, line)
            else:
                compared += 1
                assert (end, pointer, returns_to) == expected, (path, hex(address), row, line)

    assert compared > 10_000
    assert computed < compared / 20
