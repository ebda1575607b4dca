"""Builds experiments byte by byte, from the one description of their records in `cext/core/fields.h`."""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr
from zlib import crc32

import zstandard

SOURCE = Path(__file__).parents[1] / "cext" / "core" / "fields.h"
SIZES = {"u32": 4, "i32": 4, "u64": 8, "i64": 8}
CODES = {"u32": "I", "i32": "i", "u64": "Q", "i64": "q"}

COVERED_TABLES = {"covered": "COVERED", "places": "PLACE", "branches": "BRANCH"}
BLOCK_BYTES = 64 * 1024
THREAD_BYTES = 2048
OPEN_CALLS = 39
BLOCK_MAGIC = 0x4B4C4249
COMPRESSED_MAGIC = 0x4B425A49
FILE_MAGIC = 0x45534F5052544E49
SECOND = 1_000_000_000
START_NS = 5_000 * SECOND
TIME_NS = 1_763_700_000 * SECOND


@cache
def fields(name: str) -> list[tuple[str, str]]:
    """Name and type of each field of the list `name` (EVENT, BLOCK, HEAD ...)."""
    body = re.search(rf"#define {name}_FIELDS\(X\)((?:.*\\\n)*.*)", SOURCE.read_text())[1]
    return [(field, short(c_type)) for c_type, field in re.findall(r"X\((\w+),\s*(\w+),", body)]


def short(c_type: str) -> str:
    return {"uint32_t": "u32", "uint64_t": "u64", "int32_t": "i32", "int64_t": "i64"}[c_type]


def size_of(name: str) -> int:
    return sum(SIZES[kind] for _, kind in fields(name))


def pack(name: str, /, **values: int) -> bytes:
    """A record of the list `name`; fields that are not given are 0."""
    unknown = set(values) - {field for field, _ in fields(name)}
    assert not unknown, unknown
    code = "<" + "".join(CODES[kind] for _, kind in fields(name))
    return struct.pack(code, *(values.get(field, 0) for field, _ in fields(name)))


def describe(name: str) -> str:
    parts, offset = [], 0
    for field, kind in fields(name):
        parts.append(f'<field name="{field}" type="{kind}" offset="{offset}" title="t"/>')
        offset += SIZES[kind]
    return "".join(parts)


class Build:
    """An experiment in the making; `write` puts it on disk.

    Numbers are given out in the order of asking, from 1, or from `first` in a forked child. Files have room
    left at their ends, as while they are written; but for events they have none where `whole_files` is false.
    """

    def __init__(
        self, directory: Path, *, first: dict[str, int] | None = None, whole_files: bool = True, **log: object
    ):
        self.directory = Path(directory)
        self.first = {"strings": 1, "sites": 1, "stacks": 1, **(first or {})}
        self.whole_files = whole_files
        self.log = {"start_ns": START_NS, "time_ns": TIME_NS, "pid": 2**22 + 1, "version": 4} | log
        self.heads: dict[str, dict[str, int]] = {}
        self.strings: list[bytes] = []
        self.sites: list[bytes] = []
        self.stacks: list[bytes] = []
        self.threads: list[tuple[dict[str, int], list[dict[str, int]]]] = []
        self.pieces: list[bytes] = []  # of the dialogue
        self.overview: list[dict[str, int]] = []
        self.children: list[dict[str, int]] = []
        self.blocks: list[tuple[dict[str, int], list[dict[str, int]]]] = []
        self.moved: list[int] = []  # which of them lie in events.zst, and not in events
        self.intrinsics: list[tuple[int, str, tuple[str, ...], dict[str, str]]] = []
        self.log_events: list[str] = []
        self.sampled: list[dict[str, int]] = []  # samples of threads, and what they name
        self.sampled_strings: list[bytes] = []
        self.sampled_sites: list[bytes] = []
        self.sampled_stacks: list[bytes] = []
        self.sampled_memory: list[bytes] = []
        self.sampled_counts: list[bytes] = []
        self.contexts: list[bytes] = []
        self.covered: dict[str, list[bytes]] = {name: [] for name in COVERED_TABLES}

    def string(self, text: str | bytes) -> int:
        data = text.encode() if isinstance(text, str) else text
        if data not in self.strings:
            self.strings.append(data)
        return self.strings.index(data) + self.first["strings"]

    def site(self, file: str, line: int, function: str, own: int = 1) -> int:
        names = {"file": self.string(file), "function": self.string(function)}
        self.sites.append(pack("SITE", **names, line=line, own=own))
        return len(self.sites) + self.first["sites"] - 1

    def stack(self, site: int, outer: int = 0) -> int:
        self.stacks.append(pack("STACK", site=site, outer=outer))
        return len(self.stacks) + self.first["stacks"] - 1

    def intrinsic(self, name: str, *kinds: str, **attributes: str) -> int:
        """An intrinsic with as many numbers as kinds, and what else map.xml says of it; gives the first of them."""
        number = 1 + sum(len(taken) for _, _, taken, _ in self.intrinsics)
        self.intrinsics.append((number, name, kinds, attributes))
        return number

    def thread(self, *, open_calls: list[dict[str, int]] | None = None, **values: int) -> int:
        opened = open_calls or []
        self.threads.append(({"start_ns": START_NS, "depth": len(opened)} | values, opened))
        return len(self.threads)

    def piece(self, what: int, data: bytes, *, since_ns: int = 0, descriptor: int = 1, flags: int = 1) -> None:
        """A piece of the dialogue (struct piece): what is 1 shown, 2 typed, 3 unseen, 4 the size."""
        self.pieces.append(struct.pack("<QIHBB", START_NS + since_ns, 1, descriptor, what, flags) + data)

    def sample(self, **values: int) -> None:
        self.overview.append(values)

    def child(self, **values: int) -> None:
        """An attempt to start a process."""
        self.children.append({"start_ns": START_NS} | values)

    def covered_code(
        self,
        file: str,
        function: str,
        places: list[tuple[int, int, int]],
        branches: list[tuple[int, int, int, int, int]] | None = None,
        *,
        module: str = "__main__",
        context: str = "",
        **values: int,
    ) -> int:
        """A code object under coverage. Places are line, column from 1, executed; branches are origin, next and other
        as numbers of places from 1, or 0, and whether it went there."""
        code = len(self.covered["covered"]) + 1
        names = {"file": self.string(file), "function": self.string(function), "module": self.string(module)}
        first_place, first_branch = len(self.covered["places"]) + 1, len(self.covered["branches"]) + 1
        shape = {"places": len(places), "first_place": first_place}
        if branches:
            shape |= {"branches": len(branches), "first_branch": first_branch}
        told = {"kind": 1, "own": 1, "has_columns": 1, "context": self.string(context) if context else 0}
        self.covered["covered"].append(pack("COVERED", **{**names, **shape, **told, **values}))
        for line, column, executed in places:
            self.covered["places"].append(pack("PLACE", code=code, line=line, column=column, executed=executed))
        for origin, *ways, went_next, went_other in branches or ():
            next_, other = (each and first_place + each - 1 for each in ways)
            numbers = {"code": code, "origin": first_place + origin - 1, "next": next_, "other": other}
            self.covered["branches"].append(pack("BRANCH", **numbers, went_next=went_next, went_other=went_other))
        return code

    def sampled_stack(self, *frames: tuple[str, int, str]) -> int:
        """A stack of the samples: file, line and function of each frame, the outermost first; gives its number. Code
        in a path with /lib/, or frozen, is not the application's."""
        outer = 0
        for file, line, function in frames:
            names = {"file": self.sampled_string(file), "function": self.sampled_string(function)}
            self.sampled_sites.append(pack("SITE", **names, line=line, own="/lib/" not in file and file[0] != "<"))
            self.sampled_stacks.append(pack("STACK", site=len(self.sampled_sites), outer=outer))
            outer = len(self.sampled_stacks)
        return outer

    def sampled_string(self, text: str) -> int:
        if text.encode() not in self.sampled_strings:
            self.sampled_strings.append(text.encode())
        return self.sampled_strings.index(text.encode()) + 1

    def thread_sample(self, time_ns: int, *, cpu_ns: int, stack: int = 0, **values: int) -> None:
        """A sample of a thread; it ran, unless `state` says otherwise (1 ran, 2 waited, 3 had no processor)."""
        told = {"last_ns": time_ns, "samples": 1, "state": 1, "thread": 1, "tid": 1}
        self.sampled.append({**told, "time_ns": time_ns, "cpu_ns": cpu_ns, "stack": stack, **values})

    def resident(self, time_ns: int, resident_bytes: int, *, stack: int = 0, limit_bytes: int = 0) -> None:
        """What the process had of memory, when the code of this stack had run."""
        values = {"time_ns": time_ns, "resident_bytes": resident_bytes, "stack": stack, "limit_bytes": limit_bytes}
        self.sampled_memory.append(pack("MEMORY", thread=1, **values))

    def counted(self, counted: int, *, sample: int = 0, counter: int = 0, kind: int = 1, **values: int) -> None:
        """What a counter of a thread has counted up to the sample with that number; without one, after its last."""
        told = {"thread": 1, "tid": 1} | values
        self.sampled_counts.append(
            pack("SAMPLED_COUNT", counted=counted, sample=sample, counter=counter, kind=kind, **told)
        )

    def context(self, trace: int, parent: int, *, call: int, thread: int = 1, flags: int = 1) -> None:
        """The trace context that the request came with which the call served."""
        halves = {"trace_high": trace >> 64, "trace_low": trace & (1 << 64) - 1}
        self.contexts.append(pack("CONTEXT", **halves, parent=parent, call=call, thread=thread, flags=flags))

    def block(self, events: list[dict[str, int]], **head: int) -> None:
        """A block that holds `events`; what `head` does not say is as the events have it."""
        starts = [event.get("start_ns", 0) for event in events]
        ends = [event.get("start_ns", 0) + event.get("wall_ns", 0) for event in events]
        thread = events[-1].get("thread", 0) if events else 0
        made = {"magic": BLOCK_MAGIC, "state": 2, "used": len(events), "sequence": len(self.blocks) + 1}
        made |= {"first_ns": min(starts, default=0) & 2**64 - 1, "last_ns": max(ends, default=0) & 2**64 - 1}
        self.blocks.append((made | {"thread": thread} | head, events))

    def events(self, events: list[dict[str, int]]) -> None:
        """As many blocks as `events` need."""
        room = (BLOCK_BYTES - size_of("BLOCK")) // size_of("EVENT")
        for place in range(0, len(events), room):
            self.block(events[place : place + room])

    def ended(self, wall_ns: int, cpu_ns: int, status: int = 0) -> None:
        """The process began with no CPU time and ended after `wall_ns`."""
        start_ns = int(str(self.log["start_ns"]))
        self.sample(time_ns=start_ns, cpu_ns=0, kind=1)
        self.sample(time_ns=start_ns + wall_ns, cpu_ns=cpu_ns, kind=3, status=status & 0x7FFFFFFF)

    def write(self) -> Path:
        """Put everything on disk; gives the directory."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, data in self.files().items():
            (self.directory / name).write_bytes(data)
        return self.directory

    def files(self) -> dict[str, bytes]:
        started = self.table_file("children", "CHILD", [pack("CHILD", **each) for each in self.children])
        return {
            **({"children": started} if self.children else {}),
            **{name: self.table_file(name, COVERED_TABLES[name], each) for name, each in self.covered.items() if each},
            **self.contexts_file(),
            **({"dialogue": self.strings_file("dialogue", self.pieces)} if self.pieces else {}),
            **(self.sampled_files() if self.sampled or self.sampled_memory else {}),
            "log.xml": self.log_xml().encode(),
            "map.xml": self.map_xml().encode(),
            "strings": self.strings_file("strings", self.strings),
            "sites": self.table_file("sites", "SITE", self.sites),
            "stacks": self.table_file("stacks", "STACK", self.stacks),
            "threads": self.table_file(
                "threads", "THREAD", [self.thread_record(*each) for each in self.threads]
            ),
            "overview": self.table_file(
                "overview", "OVERVIEW", [pack("OVERVIEW", **each) for each in self.overview]
            ),
            "events": b"".join(
                bytes(BLOCK_BYTES) if number in self.moved else self.block_bytes(*each)
                for number, each in enumerate(self.blocks)
            ),
        } | ({"events.zst": self.compressed_file()} if self.moved else {})

    def contexts_file(self) -> dict[str, bytes]:
        made = self.table_file("trace_contexts", "CONTEXT", self.contexts)
        return {"trace_contexts": made} if self.contexts else {}

    def sampled_files(self) -> dict[str, bytes]:
        samples = [pack("SAMPLE", **each) for each in self.sampled]
        return {
            "samples": self.table_file("samples", "SAMPLE", samples),
            "sampled_sites": self.table_file("sampled_sites", "SITE", self.sampled_sites),
            "sampled_stacks": self.table_file("sampled_stacks", "STACK", self.sampled_stacks),
            "sampled_strings": self.strings_file("sampled_strings", self.sampled_strings),
            "sampled_memory": self.table_file("sampled_memory", "MEMORY", self.sampled_memory),
            "sampled_counts": self.table_file("sampled_counts", "SAMPLED_COUNT", self.sampled_counts),
        }

    def compressed_file(self) -> bytes:
        return b"".join(compressed(*self.blocks[number]) for number in self.moved)

    def block_bytes(self, head: dict[str, int], events: list[dict[str, int]]) -> bytes:
        data = pack("BLOCK", **head) + b"".join(pack("EVENT", **event) for event in events)
        return data.ljust(BLOCK_BYTES, b"\0")

    def thread_record(self, values: dict[str, int], opened: list[dict[str, int]]) -> bytes:
        data = pack("THREAD", **values) + b"".join(pack("OPEN", **each) for each in opened)
        return data.ljust(THREAD_BYTES, b"\0")

    def head(self, name: str, record_bytes: int) -> bytes:
        head_bytes = self.head_bytes(name)
        data = pack(
            "HEAD",
            magic=FILE_MAGIC,
            version=int(str(self.log["version"])),
            head_bytes=head_bytes,
            record_bytes=record_bytes,
            first=self.first.get(name, 1),
            window_bytes=BLOCK_BYTES,
            **self.heads.get(name, {}),
        )
        return data.ljust(head_bytes, b"\0")

    def head_bytes(self, name: str) -> int:
        sizes = {"threads": THREAD_BYTES, "overview": size_of("OVERVIEW"), "children": size_of("CHILD")}
        return sizes.get(name, size_of("HEAD"))

    def table_file(self, name: str, record: str, records: list[bytes]) -> bytes:
        record_bytes = THREAD_BYTES if name == "threads" else size_of(record)
        return self.filled(self.head(name, record_bytes) + b"".join(records))

    def strings_file(self, name: str, texts: list[bytes]) -> bytes:
        data = bytearray(self.head(name, 0))
        for text in texts:
            record = struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
            left = BLOCK_BYTES - len(data) % BLOCK_BYTES
            if len(record) > left:
                data += (b"\xff" * 4).ljust(left, b"\0") if left >= 4 else b""
            data += record
        return self.filled(bytes(data))

    def filled(self, data: bytes) -> bytes:
        return data + b"\0" * (-len(data) % BLOCK_BYTES) if self.whole_files else data

    def map_xml(self) -> str:
        lines = [
            f'<intrinsic number="{number}" name={quoteattr(name)} {self.kinds(kinds)} installed="1"{told(more)}/>'
            for number, name, kinds, more in self.intrinsics
        ]
        return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<map>", *lines, "</map>", ""])

    def kinds(self, kinds: tuple[str, ...]) -> str:
        several = f" kinds={quoteattr(' '.join(kinds))}" if len(kinds) > 1 else ""
        return f"kind={quoteattr(kinds[0])}{several}"

    def log_xml(self) -> str:
        log = {
            "cwd": "/home/u/shop",
            "arguments": ["orders.py"],
            "call_ns": 70,
            "inside_ns": 30,
            "statement_ns": 0,
            "host": "h",
            "ppid": 1,
            "pid_namespace": 0,
        } | self.log
        arguments = "".join(f"<argument>{escape(each)}</argument>" for each in log["arguments"])  # type: ignore[attr-defined]
        table = f'<table offset="{size_of("THREAD")}" record_bytes="{size_of("OPEN")}" records="{OPEN_CALLS}">'
        table += f"{describe('OPEN')}</table>"
        block = f'<block bytes="{size_of("BLOCK")}">{describe("BLOCK")}</block>'
        texts = f'record_bytes="0" head_bytes="{size_of("HEAD")}" block_bytes="{BLOCK_BYTES}"'
        process = f'pid="{log["pid"]}" ppid="{log["ppid"]}" start_ns="{log["start_ns"]}" time_ns="{log["time_ns"]}"'
        process += f' pid_namespace="{log["pid_namespace"]}"'
        cost = " ".join([f'{name}="{log[name]}"' for name in ("call_ns", "inside_ns", "statement_ns")])
        cwd = quoteattr(str(log["cwd"]))
        settings = log.get("settings", {})
        assert isinstance(settings, dict)
        return "\n".join(
            [
                '<?xml version="1.0" encoding="utf-8"?>',
                f'<experiment version="{log["version"]}">',
                '<collector name="interpose" version="0.1.0" python="3.11.7" implementation="cpython"/>',
                f'<system host="{log["host"]}" os="Linux" arch="x86_64" page_bytes="4096" cpus="2"/>',
                "<settings>",
                *(f"<setting name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in settings.items()),
                "</settings>",
                '<clock kind="rseq" why="self-test passed" read_ns="27" resolution_ns="1"/>',
                f"<cost {cost}/>",
                f"<head>{describe('HEAD')}</head>",
                f'<control offset="{size_of("HEAD")}">{describe("CONTROL")}</control>',
                self.data("events", "EVENT", 0, block),
                self.data("threads", "THREAD", THREAD_BYTES, table),
                self.data("overview", "OVERVIEW", self.head_bytes("overview")),
                self.data("children", "CHILD", self.head_bytes("children")),
                self.data("sites", "SITE", size_of("HEAD")),
                *(self.data(name, record, size_of("HEAD")) for name, record in COVERED_TABLES.items()),
                self.data("stacks", "STACK", size_of("HEAD")),
                self.data("trace_contexts", "CONTEXT", size_of("HEAD")),
                self.data("samples", "SAMPLE", size_of("HEAD")),
                self.data("sampled_sites", "SITE", size_of("HEAD")),
                self.data("sampled_stacks", "STACK", size_of("HEAD")),
                self.data("sampled_memory", "MEMORY", size_of("HEAD")),
                self.data("sampled_counts", "SAMPLED_COUNT", size_of("HEAD")),
                f'<data name="sampled_strings" {texts}/>',
                f'<data name="strings" {texts}/>',
                f'<data name="dialogue" {texts}/>',
                f'<data name="events.zst" record_bytes="0" head_bytes="0" block_bytes="{BLOCK_BYTES}">',
                f'<block bytes="{size_of("COMPRESSED")}">{describe("COMPRESSED")}</block></data>',
                f'<command executable="/usr/bin/python" cwd={cwd}>{arguments}</command>',
                f"<process {process}/>",
                *self.log_events,
                "</experiment>",
                "",
            ]
        )

    def data(self, name: str, record: str, head_bytes: int, more: str = "") -> str:
        record_bytes = THREAD_BYTES if name == "threads" else size_of(record)
        attributes = f'name="{name}" record_bytes="{record_bytes}" head_bytes="{head_bytes}"'
        attributes += f' block_bytes="{BLOCK_BYTES}"'
        return f"<data {attributes}>{describe(record)}{more}</data>"


def told(attributes: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())


def compressed(head: dict[str, int], events: list[dict[str, int]], frame: bytes | None = None, **more: int) -> bytes:
    """A block as it lies in events.zst; in `frame`, and with the fields `more` of its head, where they are given."""
    records = b"".join(pack("EVENT", **event) for event in events)
    if frame is None:
        frame = zstandard.ZstdCompressor().compress(records)
    kept = {name: head[name] for name in ("used", "thread", "sequence", "first_ns", "last_ns")}
    values = {"magic": COMPRESSED_MAGIC, "raw_bytes": len(records), "stored_bytes": len(frame)}
    values |= {"checksum": crc32(frame), **kept, **more}
    unsigned = pack("COMPRESSED", **values)[:-4]
    values["head_checksum"] = crc32(unsigned) ^ more.get("head_checksum", 0)
    data = pack("COMPRESSED", **values) + frame
    return data + bytes(-len(data) % 8)


def event(start_ns: int, wall_ns: int, cpu_ns: int = 0, **more: int) -> dict[str, int]:
    """An event of thread 1 and intrinsic 1, `start_ns` after the beginning of the process."""
    values = {"start_ns": START_NS + start_ns, "wall_ns": wall_ns, "cpu_ns": cpu_ns}
    return {"thread": 1, "call": 1, "intrinsic": 1} | values | more
