"""Makes the hostile inputs beside it: `python -m tests.corpus.make`, from the top of the checkout.

A directory for each reader, as tests/hostile.py names them. Files called `found-…` were found by tests/fuzz, and are
not made here.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

from tests import hostile
from tests.build import BLOCK_BYTES, FILE_MAGIC, Build, compressed, event, pack, size_of

HERE = Path(__file__).parent
HUGE, LARGE = (1 << 64) - 1, (1 << 32) - 1
EVENT_BYTES = size_of("EVENT")
DOCTYPE = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'


def blocks() -> dict[str, bytes]:
    """Files of events."""

    def file(*each: bytes) -> bytes:
        return b"".join(data.ljust(BLOCK_BYTES, b"\0") for data in each).rstrip(b"\0") + bytes(EVENT_BYTES)

    def block(*events: dict[str, int], **head: int) -> bytes:
        build = Build(Path("unused"))
        build.block(list(events), **head)
        return build.block_bytes(*build.blocks[0]).rstrip(b"\0")

    return {
        "used-beyond-the-block": file(block(event(0, 5), used=LARGE)),
        "not-a-block": file(block(event(0, 5), magic=7)),
        "cut-in-the-head": block(event(0, 5))[:20],
        "the-end-of-time": file(block(event(HUGE - 5000 * 10**9, HUGE, cpu_ns=HUGE, inner_wall_ns=HUGE))),
        "its-own-parent": file(block(event(0, 5, call=1, parent=1), event(0, 9, call=2, parent=3, thread=LARGE))),
        "numbers-of-nothing": file(block(event(0, 5, stack=LARGE, detail=LARGE, intrinsic=LARGE, error=LARGE))),
        "one-sequence": block(event(0, 5), state=1, sequence=HUGE).ljust(BLOCK_BYTES, b"\0")
        + block(event(0, 5), event(1, 5), sequence=HUGE),
    }


def compressed_blocks() -> dict[str, bytes]:
    """Files of compressed events."""
    head = {"used": 1, "thread": 1, "sequence": 7, "first_ns": 0, "last_ns": 9}
    rows = [event(0, 5)]
    whole = compressed(head, rows)
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 28))
    return {
        "whole": whole + compressed(head | {"sequence": 8}, rows),
        "cut": whole + compressed(head | {"sequence": 8}, rows)[:-20],
        "a-spoilt-frame": whole[:70] + b"\xff" + whole[71:] + compressed(head | {"sequence": 8}, rows),
        "a-bomb": compressed(head, [], bomb, raw_bytes=EVENT_BYTES),
        "a-large-window": compressed(head, [], b"\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00", raw_bytes=EVENT_BYTES),
        "stored-beyond-the-end": compressed(head, rows, None, stored_bytes=100_000),
    }


def arranged() -> dict[str, bytes]:
    """What compressed blocks hold; the first byte says how many records."""
    mask = bytes(EVENT_BYTES // 8)
    return {
        "one-record": b"\1" + bytes(EVENT_BYTES) + mask,
        "planes": b"\3" + b"\7" * EVENT_BYTES + b"\xff" * len(mask) + b"\x81" * (2 * EVENT_BYTES),
        "planes-that-are-not-there": b"\3" + bytes(EVENT_BYTES) + b"\xff" * len(mask),
    }


def head(record_bytes: int, name: str = "", **values: int) -> bytes:
    """The head of a file of records."""
    head_bytes = Build(Path("unused")).head_bytes(name)
    given = {"magic": FILE_MAGIC, "version": 4, "head_bytes": head_bytes, "record_bytes": record_bytes}
    given |= {"first": 1, "window_bytes": BLOCK_BYTES}
    return pack("HEAD", **given | values).ljust(head_bytes, b"\0")


def strings() -> dict[str, bytes]:
    return {
        "absurdly-long": head(0) + struct.pack("<I", LARGE - 1) + b"abc",
        "windows-of-nothing": (head(0) + b"\xff" * 4).ljust(BLOCK_BYTES, b"\0") + b"\xff" * 4,
        "escapes-and-no-utf-8": head(0) + struct.pack("<I", 16) + b"\x1b]0;x\x07\r\n\xff\xed\xa0\x80\xe2\x80\xae" * 2,
        "numbered-from-the-end": head(0, first=LARGE) + struct.pack("<I", 3) + b"abc\0",
        "a-later-version": head(0, version=99) + struct.pack("<I", 3) + b"abc\0",
    }


def dialogues() -> Iterator[tuple[str, str, bytes]]:
    first = struct.pack("<QIHBB", HUGE, LARGE, 65535, 1, 255)
    escapes = first + b"\x1b]52;c;eA==\x07\x1b[6n\x1b[99999;1H\x1bP+q\x1b\\\x9b6n\xff\r\n"
    yield "dialogue", "absurdly-long", head(0) + struct.pack("<I", LARGE - 1) + first
    yield "dialogue", "too-short", head(0) + struct.pack("<I", 3) + b"abc\0"
    yield "dialogue", "windows-of-nothing", (head(0) + b"\xff" * 4).ljust(BLOCK_BYTES, b"\0") + b"\xff" * 4
    yield "dialogue", "what-terminals-answer", head(0) + struct.pack("<I", len(escapes)) + escapes
    sized = struct.pack("<QIHBB", 0, 0, 0, 4, 0) + b"\xff" * 5
    yield "dialogue", "no-size", head(0) + (struct.pack("<I", len(sized)) + sized).ljust(28, b"\0") + b"\x01"


def tables() -> Iterator[tuple[str, str, bytes]]:
    yield "sites", "numbers-of-nothing", head(size_of("SITE")) + pack("SITE", file=LARGE, function=LARGE, line=LARGE)
    stack = size_of("STACK")
    circle = pack("STACK", site=1, outer=2) + pack("STACK", site=2, outer=1) + pack("STACK", site=1, outer=3)
    yield "stacks", "a-circle", head(stack) + circle
    yield "stacks", "other-sizes", head(1, window_bytes=1, head_bytes=LARGE) + circle
    thread = pack("THREAD", start_ns=HUGE, end_ns=1, depth=LARGE, recorded=HUGE, made=1, seen_ns=HUGE)
    yield "threads", "deep-and-backwards", head(2048, "threads") + thread.ljust(2048, b"\xff")
    yield "overview", "huge", head(size_of("OVERVIEW"), "overview") + b"\xff" * size_of("OVERVIEW") * 2
    yield "children", "huge", head(size_of("CHILD"), "children") + b"\xff" * size_of("CHILD")
    yield "dyntext", "absurdly-long", struct.pack("<II", 1, LARGE) + b"x"
    yield "objects", "huge-numbers", b"0-f r-xp 0 ffff:fffff 9999999999999999999 /x\x1b[0m\n7f-8f r-xp 0 0:0 0 /\xff\n"


def logs() -> dict[str, bytes]:
    """The log of a sound experiment, changed in one place."""
    with tempfile.TemporaryDirectory() as top:
        hostile.skeleton(Path(top))
        sound = (Path(top) / "log.xml").read_text()

    def changed(pattern: str, to: str) -> bytes:
        made, count = re.subn(pattern, lambda _: to, sound, count=1)
        assert count, pattern
        return made.encode()

    many = "".join(f'<event kind="exit" time_ns="{number}" status="1"/>' for number in range(500))
    return {
        "entities": changed("<experiment", f"{DOCTYPE}<experiment"),
        "nested": changed("<settings>", "<a>" * 50 + "<settings>"),
        "another-encoding": changed("utf-8", "utf-16"),
        "a-later-version": changed('version="4"', 'version="99999999999999999999"'),
        "data-elsewhere": changed('name="overview"', 'name="../../overview"'),
        "a-record-of-nothing": changed('record_bytes="88"', 'record_bytes="0"'),
        "a-huge-offset": changed('<control offset="[0-9]+"', '<control offset="99999999999999999999"'),
        "control-of-other-fields": changed('name="monitor"', 'name="nothing"'),
        "small-windows": changed('block_bytes="65536"', 'block_bytes="64"'),
        "a-table-of-bytes": changed('<table offset="[0-9]+" record_bytes="[0-9]+"', '<table record_bytes="1"'),
        "fields-of-the-same-name": changed('name="start_ns"', 'name="wall_ns"'),
        "huge-numbers": changed(r'pid="[0-9]+" ppid="[0-9]+" start_ns="[0-9]+"', f'pid="{HUGE}" start_ns="{HUGE}"'),
        "no-control": changed("<control.*?</control>", ""),
        "no-head": changed("<head>.*?</head>", ""),
        "a-ring": changed("<settings>", '<settings><setting name="INTERPOSE_RING" value="1MiB"/>'),
        "ended-often": changed("</experiment>", many + "</experiment>"),
    }


def small_xml() -> Iterator[tuple[str, str, bytes]]:
    entries = '<intrinsic number="4294967295" name="x" kind="db" kinds="db net"/><intrinsic number="-1" name="y"/>'
    entries += '<intrinsic number="1" name="&#27;[31m" kind="file" installed="0" why="&#10;"/>'
    yield "map", "numbers-and-escapes", f"<map>{entries}</map>".encode()
    yield "map", "entities", f"{DOCTYPE}<map>&b;&c;</map>".encode()
    mark = '<mark name="a" action="start" time_ns="9999999999999999999"/><mark name="../x" action="stop" time_ns="1"/>'
    yield "labels", "marks", f"<labels>{mark}</labels>".encode()
    yield "labels", "entities", f"{DOCTYPE}<labels>&c;</labels>".encode()
    yield "notes", "escapes-and-no-utf-8", b"\x1b]0;x\x07\xff\xfe\0\r\x85" + "\u202e\u2028".encode() + b"\n" * 50
    line = {"path": "/p\ud800", "content": "a_" + "0" * 32, "kind": "source", "bytes": 1, "mtime_ns": 1}
    line |= {"changed": False}
    wrong = [line | {"content": "../" + "0" * 32}, line | {"bytes": 10**30}, line | {"bytes": True}, [], {"path": 1}]
    lines = [json.dumps(each) for each in [line, *wrong]] + ["[" * 30_000, '{"path": NaN}', "\0", "9" * 5000]
    yield "index", "lines", "\n".join(lines).encode()
    yield "group", "itself-and-others", b"#interpose experiment group\ng.erg\n/etc/passwd\nt.1.er\n../../x.er\n"
    yield "group", "no-path", b"#interpose experiment group\na\0b.er\n\xff.er\n"
    yield "group", "one-a-hundred-times", b"#interpose experiment group\n" + b"t.1.er\n" * 100
    yield "group", "not-a-group", b"#!/bin/sh\nt.1.er\n"


def member(name: str, data: bytes = b"x", **values: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    header = info.tobuf(tarfile.GNU_FORMAT)  # which has room for any size
    return header + data + bytes(-len(data) % 512)


def packed() -> dict[str, bytes]:
    """Archives: each a tar in one frame of zstandard."""

    def zst(data: bytes, level: int = 19) -> bytes:
        return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)

    with tempfile.TemporaryDirectory() as top:
        hostile.skeleton(Path(top))
        files = {path.name: path.read_bytes() for path in sorted(Path(top).iterdir())}
    sound = b"".join(member(f"t.1.er/{name}", data) for name, data in files.items())
    end = bytes(1024)
    pax = io.BytesIO()
    with tarfile.open(fileobj=pax, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("t.1.er/" + "x" * 300))
    return {
        "whole": zst(sound + end),
        "a-truncated-frame": zst(sound + end)[:-40],
        "another-frame-of-rubbish": zst(sound) + b"rubbish",
        "up-and-out": zst(sound + member("t.1.er/../../out") + end),
        "an-absolute-path": zst(member("/tmp/out.er/log.xml") + end),
        "a-link": zst(sound + member("t.1.er/notes2", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd") + end),
        "a-hard-link": zst(sound + member("t.1.er/n", b"", type=tarfile.LNKTYPE, linkname="t.1.er/notes") + end),
        "a-device": zst(sound + member("t.1.er/d", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5) + end),
        "the-same-twice": zst(sound + member("t.1.er/notes") + end),
        "in-itself": zst(sound + member("t.1.er/_f1.er/_f1.er/log.xml", files["log.xml"]) + end),
        "a-long-name": zst(pax.getvalue()),
        "a-huge-size": zst(sound + member("t.1.er/other", b"", size=1 << 62) + end),
        "a-bomb": zst(sound + member("t.1.er/other", b"", size=1 << 31)) + zst(bytes(1 << 29)),
    }


def made() -> Iterator[tuple[str, str, bytes]]:
    """Reader, name and bytes of each input."""
    for reader, inputs in (
        ("events", blocks()),
        ("events.zst", compressed_blocks()),
        ("arranged", arranged()),
        ("strings", strings()),
        ("log", logs()),
        ("packed", packed()),
    ):
        for name, data in inputs.items():
            yield reader, name, data
    yield from tables()
    yield from dialogues()
    yield from small_xml()


if __name__ == "__main__":
    for reader, name, data in made():
        place = HERE / reader / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
