"""What unpacks to far more than it is: every reader says so in bounded memory and time."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
import zstandard
from tracing import environment

pytestmark = [pytest.mark.slow, pytest.mark.reach]

MOST_KIB = 400_000
HUGE_BYTES = 4 << 30

# Runs a command; says its exit code and the most memory that it had.
MEASURED = """
import sys
from interpose.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
with open("/proc/self/status") as file:
    print("\\nended", code, *[line.split()[1] for line in file if line.startswith("VmHWM:")])
"""


def zst_of_zeros(size_bytes, head=b"", whole=False):
    """A frame of zstandard with so many zeros behind `head`; one that says how many, where `whole`."""
    made = io.BytesIO()
    size = size_bytes + len(head) if whole else -1
    with zstandard.ZstdCompressor(level=19).stream_writer(made, size=size, closefd=False) as out:
        out.write(head)
        for _ in range(size_bytes >> 20):
            out.write(bytes(1 << 20))
    return made.getvalue()


def member(name, size_bytes):
    info = tarfile.TarInfo(name)
    info.size = size_bytes
    return info.tobuf(tarfile.GNU_FORMAT)


def laughing(depth=12):
    """Entities of entities: a document of a few lines, and of 10 ** `depth` texts."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, depth))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">{entities}]>'.encode()


def deep(depth):
    return b"<experiment version='1'>" + b"<a>" * depth


def long_attribute(size_bytes):
    return b'<experiment version="' + b"1" * size_bytes + b'"/>'


def zip_of_zeros(size_bytes):
    made = io.BytesIO()
    archive = zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("x.er/log.xml", "w", force_zip64=True) as file:
        for _ in range(size_bytes >> 20):
            file.write(bytes(1 << 20))
    return made.getvalue()


def nested(times):
    """A frame in a frame in a frame."""
    made = zst_of_zeros(1 << 30)
    for _ in range(times):
        made = zstandard.compress(made)
    return made


# In the place of an experiment that is packed into a file.
PACKED = {
    "a tar of one enormous member": lambda: zst_of_zeros(HUGE_BYTES, member("x.er/events", HUGE_BYTES)),
    "an enormous log": lambda: zst_of_zeros(HUGE_BYTES, member("x.er/log.xml", HUGE_BYTES)),
    "a member that is said to be enormous": lambda: zstandard.compress(member("x.er/log.xml", 1 << 50)),
    "a frame that says it is enormous": lambda: zst_of_zeros(HUGE_BYTES, whole=True),
    "nothing but zeros": lambda: zst_of_zeros(HUGE_BYTES),
    "frames in frames": lambda: nested(3),
    "a zip": lambda: zip_of_zeros(HUGE_BYTES),
    "a sparse member": lambda: zstandard.compress(sparse()),
    "a thousand enormous members": lambda: zstandard.compress(
        b"".join(member(f"x.er/_f{n}.er/log.xml", 0) for n in range(1000)) + member("x.er/events", 1 << 40)
    ),
}


def sparse():
    """A member of the old GNU sort that is a hole of a TiB."""
    info = tarfile.TarInfo("x.er/events")
    info.type = tarfile.GNUTYPE_SPARSE
    info.size = 0
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT)[:512])
    block[386:398], block[398:410], block[483:495] = b"%011o\0" % (1 << 32), b"%011o\0" % 0, b"%011o\0" % (1 << 32)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


DOCUMENTS = (laughing, lambda: deep(1_000_000), lambda: long_attribute(64 << 20))
# In the place of a file of an experiment that is sound else; made where it is needed, for it takes seconds.
FILES = {
    "log.xml": (*DOCUMENTS, lambda: bytes(64 << 20)),
    "map.xml": (*DOCUMENTS, lambda: bytes(64 << 20)),
    "labels.xml": DOCUMENTS,
    "events.zst": (lambda: zst_of_zeros(1 << 30), lambda: zst_of_zeros(1 << 30, whole=True)),
    "consolidated": (
        lambda: zst_of_zeros(2 << 30),
        lambda: zstandard.compress(b"[" * 100_000_000),
        lambda: zstandard.compress(b'{"consolidated":1,"by":[' + b"0," * 50_000_000),
        lambda: zstandard.compress(b'{"consolidated":' + b"9" * 900_000 + b"}\n"),
    ),
    "notes": (lambda: b"x" * (256 << 20),),
    "filter": (lambda: b"(" * 1_000_000,),
}
COMMANDS = ("report", "events", "profile")


def measured(directory, *words):
    """What a command gave: its exit code, its most memory, and what it said."""
    own = environment(XDG_STATE_HOME=str(directory / "state"), TMPDIR=str(directory / "tmp"))
    (directory / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], cwd=directory, env=own, capture_output=True, text=True, timeout=120
    )
    code, most_kib = done.stdout.rpartition("\nended ")[2].split() if "\nended " in done.stdout else ("none", "0")
    return code, int(most_kib), done.stderr


def check(tally, what, directory, *words):
    code, most_kib, said = measured(directory, *words)
    held = code in ("0", "1", "2", "3") and 0 < most_kib < MOST_KIB and "Traceback" not in said
    held = held and len(said.splitlines()) <= 5 and not os.listdir(directory / "tmp")
    tally.check(held, f"{what}, {words}: exit {code}, {most_kib} KiB, {said[-300:]}")


@pytest.mark.parametrize("sort", PACKED)
def test_a_packed_bomb_is_refused_in_little_memory_and_on_little_disk(tmp_path, tally, sort):
    (tmp_path / "bomb.er.tar.zst").write_bytes(PACKED[sort]())

    for command in COMMANDS:
        check(tally, sort, tmp_path, command, "bomb.er.tar.zst")
    tally.end()


@pytest.mark.parametrize("name", FILES)
def test_a_bomb_among_the_files_is_refused_in_little_memory(tmp_path, tally, name):
    own = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    subprocess.run([sys.executable, "-c", "import os; os.stat('/')"], cwd=tmp_path, env=own, check=True)

    for number, make in enumerate(FILES[name]):
        shutil.copytree(tmp_path / "test.1.er", tmp_path / "bomb.er")
        (tmp_path / "bomb.er" / name).write_bytes(make())
        for command in COMMANDS:
            check(tally, f"{name} {number}", tmp_path, command, "bomb.er")
        shutil.rmtree(tmp_path / "bomb.er")
    tally.end()
