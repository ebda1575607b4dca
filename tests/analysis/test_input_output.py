"""Operations on files: calls of the C library count as those of Python do."""

import json

import pytest

from interpose.analysis.calls.input_output import CLOSE, OPEN, OTHER, READ, WRITE, operation_of
from interpose.cli.main import main
from interpose.experiments.metadata.map import Intrinsic
from interpose.instrumentation.native import intrinsics
from tests.build import SECOND, START_NS, Build, event

MS = SECOND // 1000
NEITHER = {"copy_file_range", "splice", "tee", "vmsplice"}  # between two descriptors


@pytest.mark.parametrize(
    ("name", "kind", "operation"),
    [
        *((f"libc.{name}", "file", READ) for name in ("read", "pread", "pread64", "readv", "preadv64", "fread")),
        *((f"libc.{name}", "file", WRITE) for name in ("write", "pwrite", "pwrite64", "writev", "fwrite", "fputs")),
        *((f"libc.{name}", "file", OPEN) for name in ("open", "open64", "openat", "creat", "fopen")),
        *((f"libc.{name}", "file", CLOSE) for name in ("close", "fclose")),
        *((f"libc.{name}", "file", OTHER) for name in ("lseek", "fsync", "stat", "unlink", "dup")),
        ("libc.recvmmsg", "net", READ),
        ("libc.sendto", "net", WRITE),
        ("libc.read", "process", READ),
        ("libc.write", "screen", WRITE),
        ("libc.waitpid", "process", ""),
        ("libc.popen", "process", ""),
        ("libc.pthread_join", "sync", ""),
        ("libssl.SSL_read", "net", OTHER),
        ("os.pread", "file", READ),
    ],
)
def test_an_operation_is_told_by_the_name_of_the_call(name, kind, operation):
    assert operation_of(Intrinsic(name, kind)) == operation


def test_each_native_call_that_moves_bytes_of_a_descriptor_or_stream_reads_or_writes():
    moving = {
        each.name
        for each in intrinsics()
        if each.bytes and each.name.startswith("libc.") and each.kinds[0] in ("file", "net")
    }

    others = {name for name in moving if operation_of(Intrinsic(name, "file")) not in (READ, WRITE)}
    assert len(moving) > 30
    assert others == {f"libc.{name}" for name in NEITHER}


def test_the_section_of_files_has_the_bytes_of_native_calls(tmp_path, capsys):
    build = Build(tmp_path / "t.1.er")
    done = [("open", 0), ("read", 100), ("pread64", 20), ("writev", 3), ("lseek", 0), ("close", 0)]
    file = build.string("/srv/orders")
    of_file = [build.intrinsic(f"libc.{name}", "file") for name, _ in done]
    build.events(
        [
            event(number * MS, MS, call=number, intrinsic=intrinsic, detail=file, bytes=moved)
            for number, (intrinsic, (_, moved)) in enumerate(zip(of_file, done, strict=True), 1)
        ]
    )
    build.thread(tid=1, main=1, end_ns=START_NS + SECOND, end_cpu_ns=0, recorded=6, made=6)
    build.ended(SECOND, 0)

    main(["profile", "--section", "files", "--format", "json", str(build.write())])

    (row,) = json.loads(capsys.readouterr().out)
    counts = {name: row[name] for name in ("access", "operations", "opened", "read", "written", "closed", "other")}
    assert counts == {"access": "rw", "operations": 6, "opened": 1, "read": 2, "written": 1, "closed": 1, "other": 1}
    assert (row["read_bytes"], row["written_bytes"], row["time_ns"]) == (120, 3, 6 * MS)
