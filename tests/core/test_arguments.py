"""How much is kept of what calls were about, by kind."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from recorder_library import RecorderLibrary

from interpose.config import levels

DB, SCREEN, FILE, NET, PROCESS = range(5)
PROGRAM = """
    import os, socket, sqlite3, subprocess

    shop = sqlite3.connect("shop17.db")
    shop.execute("create table if not exists customers(name)")
    shop.execute("insert into customers values ('Ann')")
    for path in ("/data/orders/2024/o-17.csv", b"/data/orders/2024/o-17.csv", "/d\\u00e4ta/x"):
        try: os.stat(path)
        except OSError: pass
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    subprocess.run(["/bin/echo", "--password=hunter2"], stdout=subprocess.DEVNULL)
    os.system("exit 0 # comment")
"""
CALLED = ("sqlite3.connect", "sqlite3.Connection.execute", "os.stat", "subprocess._fork_exec", "os.system")


@pytest.fixture
def details(traced):
    """The details of the program's calls, by the intrinsic, recorded with those arguments kept."""

    def run(kept: str) -> dict[str, list[str]]:
        ran = traced(PROGRAM, INTERPOSE_ARGUMENTS=kept)
        assert ran.returncode == 0, ran.stderr
        founder = ran.experiment.founder
        found: dict[str, list[str]] = {}
        for event in ran.events():
            text = founder.string(event.detail)
            if "python" not in text and "site-packages" not in text:
                found.setdefault(founder.intrinsic(event.intrinsic).name, []).append(text)
        found["children"] = [child.command for child in founder.children]
        return found

    return run


def test_what_is_usual_is_a_statement_without_its_literals_a_program_and_the_rest_as_given(details):
    found = details("usual")

    assert found["sqlite3.Connection.execute"][1] == "insert into customers values (?)"
    assert found["sqlite3.connect"] == ["shop17.db"]
    assert {"/data/orders/2024/o-17.csv", "/däta/x"} <= set(found["os.stat"])
    assert "sh" in found["os.system"] or "exit" in found["os.system"]
    assert "/bin/echo" in found["children"]


def test_nothing_is_kept_of_the_kinds_of_which_nothing_is_wanted(details):
    found = details("db=nothing,file=nothing,net=nothing,process=nothing")

    assert {text for name in CALLED for text in found.get(name, [""])} == {""}
    assert set(found["children"]) == {""}


def test_of_a_shape_no_name_and_no_value_is_left(details):
    found = details("db=shape,file=shape,net=shape,process=shape")

    assert found["sqlite3.Connection.execute"] == ["create", "insert"]
    assert found["sqlite3.connect"] == ["*"]
    assert {"/*/*/*/*.csv", "/*/*"} <= set(found["os.stat"])
    assert "echo" in found["children"]


def test_normalised_paths_have_no_numbers(details):
    found = details("file=normalised")

    assert "/data/orders/*/o-*.csv" in found["os.stat"]
    assert found["sqlite3.Connection.execute"][1] == "insert into customers values (?)"


def test_what_stands_in_angle_brackets_is_an_argument_too(traced):
    ran = traced(
        """
        import os
        for path in ("<hunter2>", "<hunter2>/b.csv"):
            try: os.stat(path)
            except OSError: pass
        """,
        INTERPOSE_ARGUMENTS="file=shape",
    )

    details = set(ran.details("os.stat"))
    assert {"*", "*/*.csv"} <= details
    assert not [text for text in details if "hunter2" in text]


def test_of_a_host_nobody_keeps_who_asks_for_it(traced):
    ran = traced("""
        import socket
        try: socket.getaddrinfo("ann:hunter2@127.0.0.1", 80)
        except OSError: pass
    """)

    (event,) = ran.events("socket.getaddrinfo")
    assert ran.experiment.founder.string(event.detail) == "127.0.0.1:80"


def test_whole_is_with_values_and_arguments(details):
    found = details("db=whole,process=whole")

    assert found["sqlite3.Connection.execute"][1] == "insert into customers values ('Ann')"
    assert "exit 0 # comment" in found["os.system"]


def test_by_default_no_value_reaches_the_disk(traced):
    ran = traced(PROGRAM, INTERPOSE_ARCHIVE="off")

    everything = b"".join(path.read_bytes() for path in Path(ran.path).rglob("*") if path.is_file())
    assert b"Ann" not in everything
    assert b"hunter2" not in everything


def test_children_keep_as_much_as_their_founder(traced):
    ran = traced(
        """
        import os
        if os.fork() == 0:
            try: os.stat("/data/secret")
            except OSError: pass
            os._exit(0)
        os.wait()
        """,
        INTERPOSE_ARGUMENTS="file=shape",
    )

    (child,) = [process for process in ran.experiment.processes if process.lineage == "_f1"]
    assert {child.string(event.detail) for event in ran.events("os.stat", child)} == {"/*/*"}


def test_descriptors_are_called_by_what_may_be_kept_of_their_paths(traced):
    ran = traced(
        """
        import os
        with open("secret-17.txt", "w", buffering=1) as file: file.write("x\\n")
        read = os.open("/etc/hostname", os.O_RDONLY); os.read(read, 1)
        """,
        INTERPOSE_ARGUMENTS="file=shape",
    )

    writes = set(ran.details("io.FileIO.write"))
    reads = set(ran.details("os.read"))
    assert "*.txt" in writes
    assert reads == {"/*/*"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("usual", {}),
        ("db=whole", {"db": 4}),
        ("db=normalised, file=shape,net=nothing", {"db": 3, "file": 2, "net": 1}),
        ("process=usual", {"process": 0}),
    ],
)
def test_how_much_is_kept_is_said_by_kind(text, kept):
    assert levels.parse_arguments(text) == kept


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dbs=whole", "'dbs' is not one of usual, db, screen"),
        ("db=all", "'all' is not one of usual, nothing, shape, normalised, whole"),
        ("db", "'' is not one of usual, nothing"),
        ("whole", "'whole' is not one of usual, db"),
        ("", "'' is not one of usual, db"),
    ],
)
def test_what_is_no_kind_and_no_measure_is_told(text, why):
    with pytest.raises(ValueError, match="^" + why):
        levels.parse_arguments(text)


def test_a_setting_that_means_nothing_is_told(interpose):
    done = interpose("run", "--arguments", "db=all", "-m", "this")

    assert done.returncode == 2
    why = "'all' is not one of usual, nothing, shape, normalised, whole"
    assert done.stderr == f"interpose: --arguments db=all: {why}\n"


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return RecorderLibrary()


def reduced(library: ctypes.CDLL, function: str, kind: int, text: str) -> str:
    room = ctypes.create_string_buffer(4096)
    given = text.encode()
    reduce = getattr(library, function)
    reduce.restype, reduce.argtypes = ctypes.c_size_t, [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    length = reduce(kind, given, len(given), room)
    assert length <= len(given)
    return room.raw[:length].decode()


@pytest.mark.parametrize(
    ("kind", "text", "shape", "normalised"),
    [
        (FILE, "/var/log/app-17.log", "/*/*/*.log", "/var/log/app-*.log"),
        (FILE, "relative", "*", "relative"),
        (FILE, ".profile", "*", ".profile"),
        (FILE, "a.tar.gz", "*.gz", "a.tar.gz"),
        (FILE, "v1.23456", "*", "v*.*"),
        (FILE, "/x/dead.beef/", "/*/*/", "/x/dead.beef/"),
        (FILE, "/u/0f3adeadbeef01", "/*/*", "/u/*"),
        (FILE, "", "", ""),
        (FILE, "//", "//", "//"),
        (NET, "db.example.org:5432", "*:5432", "db.example.org:5432"),
        (NET, "10.0.0.5:80", "*:80", "*.*.*.*:80"),
        (NET, "GET https://a.example.org:8443/v1/u/17", "GET https://*:8443/*/*/*", "GET https://a.example.org:8443/v*/u/*"),
        (NET, "https://example.org/a", "https://*/*", "https://example.org/a"),
        (NET, "0a1b2c3d-0000-4000-8000-000000000001", "*", "*-*-*-*-*"),
        (DB, "db.local/shop", "*/*", "db.local/shop"),
    ],
)
def test_texts_are_reduced_to_their_shape_or_to_what_does_not_differ(library, kind, text, shape, normalised):
    assert reduced(library, "argument_shape", kind, text) == shape
    assert reduced(library, "argument_normalise", kind, text) == normalised
